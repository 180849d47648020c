"""Rows of the store, derived from a tape: pure, so that a better rule improves old tapes.

Injections and outcomes are verdicts of another package and are not created here.
"""

from collections.abc import Callable, Iterable, Iterator

from traces.conversation.derived_steps import (
    DerivedSteps,
    ToolUse,
    derive_tape_steps,
    find_answer_end,
)
from traces.dialects.types import TokenUsage
from traces.model import Exchange, Trajectory
from traces.pipeline.attempts import collect_stage_attempts
from traces.pipeline.failure_causes import PASSING_SCORE, find_failure_causes
from traces.pipeline.stages import ModelCharge, derive_stage_rows
from traces.store.control_groups import digest_control_group
from traces.store.schema import clip_stored_text, make_relation_row
from traces.tape import Tape

type RelationRows = dict[str, list[tuple[object, ...]]]
type PriceFunction = Callable[[str, TokenUsage], float | None]
"""US dollars for this usage of this model; None if no price is known."""

READ_METHODS = ("GET", "HEAD", "OPTIONS")


def build_tape_rows(
    tape: Tape, told: DerivedSteps | None = None, price: PriceFunction = lambda model, usage: None
) -> RelationRows:
    """Return the rows of one tape by relation, each a tuple in the order of its schema."""
    told = told or derive_tape_steps(tape)
    usage = list(_iter_usage_rows(tape, told, price))
    return {
        "trajectories": [_build_trajectory_row(tape, told, usage)],
        "exchanges": list(_iter_exchange_rows(tape, told)),
        "steps": list(_iter_step_rows(tape, told)),
        "tool_calls": list(_iter_tool_call_rows(tape, told)),
        "messages": list(_iter_message_rows(tape, told)),
        "usage": usage,
        "stages": list(_iter_stage_rows(tape, told, usage)),
    }


def _build_trajectory_row(
    tape: Tape, told: DerivedSteps, usage: list[tuple[object, ...]]
) -> tuple[object, ...]:
    run, ending = tape.trajectory, tape.ending
    costs = [row[7] for row in usage]
    counts = [(row[3] or 0) + (row[5] or 0) for row in usage]  # type: ignore[operator]
    model = run.model or next((turn.model for turn in told.agent_steps if turn.model), None)
    last = max((find_answer_end(x) for x in tape.exchanges), default=0.0)
    last = ending.at if ending else last
    return (
        run.id,
        derive_agent_name(run),
        model,
        run.scenario,
        run.task,
        run.trial,
        run.condition,
        run.world,
        run.seed,
        run.parent,
        run.forked_at,
        run.recorded_at,
        run.source,
        len(told.agent_steps),
        ending.passed if ending else None,
        ending.reward if ending else None,
        ending.ended if ending else None,
        sum(costs) if costs and None not in costs else None,  # type: ignore[arg-type]
        last if run.timed else None,
        sum(counts) if counts else None,
        ending.exit_code if ending else None,
        ending.verifier if ending else None,
        None,
        *_count_fork_effects(tape, told),
        run.campaign,
        run.cell,
        *(_sum_known_counts(row[column] for row in usage) for column in (3, 4, 5, 6)),
        None,
        run.experiment,
        digest_control_group(run, ending),
        list(run.controls),
        ending.verifier_of if ending else None,
        ending.state if ending else None,
        "verifier" if ending and ending.passed is not None else None,
        _explain_unknown_result(tape),
        run.seal,
        tape.cut_at,
    )


def _explain_unknown_result(tape: Tape) -> str | None:
    """Return the reason why the correctness of the end is unknown; None if it is known."""
    ending = tape.ending
    if ending is None:
        cut = f": cut at exchange {tape.cut_at}" if tape.cut_at is not None else ""
        return f"the recording has no end{cut}"
    if ending.passed is not None:
        return None
    return ending.detail or "no verifier judged the end state"


def _sum_known_counts(counts: Iterable[object]) -> int | None:
    """Return the sum of the known counts; None if all are unknown."""
    known = [count for count in counts if isinstance(count, int)]
    return sum(known) if known else None


def _count_fork_effects(tape: Tape, told: DerivedSteps) -> tuple[int | None, int | None]:
    """Count the lanes that a fork cascaded into and the pinned results; (None, None) if not a
    fork."""
    if tape.trajectory.forked_at is None:
        return None, None
    lanes = {told.contexts[x.seq].lane for x in tape.exchanges if x.cascade}
    return len(lanes), len(_find_pinned_calls(tape))


def _find_pinned_calls(tape: Tape) -> frozenset[str]:
    return frozenset(id for exchange in tape.exchanges for id in exchange.pinned)


def derive_agent_name(run: Trajectory) -> str | None:
    """Return the agent's given name, else its script or module, else its program."""
    if run.agent or not run.command:
        return run.agent
    program, *rest = run.command
    name = program.rpartition("/")[2]
    if not rest or not name.startswith(("python", "node", "npx", "uvx")):
        return name
    script = rest[1] if rest[0] == "-m" and len(rest) > 1 else rest[0]
    return name if script.startswith("-") else script.rpartition("/")[2]


def _iter_exchange_rows(tape: Tape, told: DerivedSteps) -> Iterator[tuple[object, ...]]:
    timed = tape.trajectory.timed
    for exchange in tape.exchanges:
        placed = told.contexts[exchange.seq]
        answer = exchange.response
        offset, length = tape.spans[exchange.seq]
        yield (
            tape.trajectory.id,
            exchange.seq,
            placed.lane,
            placed.kind,
            exchange.transport,
            exchange.request.method,
            exchange.request.url,
            answer.status if answer else None,
            exchange.error,
            exchange.started if timed else None,
            _measure_exchange_time(exchange) if timed else None,
            answer.at - exchange.started if answer and timed else None,
            len(exchange.request.body),
            sum(len(chunk.data) for chunk in answer.chunks) if answer else None,
            len(answer.chunks) if answer else None,
            placed.attempt_of,
            exchange.answered_by,
            str(tape.path),
            offset,
            length,
            exchange.cascade,
        )


def _measure_exchange_time(exchange: Exchange) -> float | None:
    return find_answer_end(exchange) - exchange.started if exchange.response else None


def _iter_step_rows(tape: Tape, told: DerivedSteps) -> Iterator[tuple[object, ...]]:
    for step in told.steps:
        yield (
            tape.trajectory.id,
            step.number,
            step.source,
            clip_stored_text(step.message),
            step.model,
            list(step.seqs),
        )


def _iter_tool_call_rows(tape: Tape, told: DerivedSteps) -> Iterator[tuple[object, ...]]:
    by_seq = {exchange.seq: exchange for exchange in tape.exchanges}
    faulted_calls = {injection.call_id for injection in tape.injections if not injection.sham}
    pinned = _find_pinned_calls(tape)
    for use in told.tool_uses:
        exchanges = [by_seq[seq] for seq in use.seqs]
        durations = [took for x in exchanges if (took := _measure_exchange_time(x)) is not None]
        yield (
            tape.trajectory.id,
            use.step,
            use.call_id,
            use.tool,
            clip_stored_text(use.arguments),
            None if use.result is None else clip_stored_text(use.result),
            use.is_error,
            use.place,
            _is_read_only_call(use, exchanges),
            use.join,
            exchanges[0].seq if exchanges else None,
            sum(durations) if durations and tape.trajectory.timed else None,
            use.call_id in faulted_calls,
            len(use.arguments.encode("utf-8", "replace")),
            None if use.result is None else len(use.result.encode("utf-8", "replace")),
            exchanges[-1].answered_by if exchanges else None,
            use.call_id in pinned,
        )


def _is_read_only_call(use: ToolUse, own: list[Exchange]) -> bool | None:
    """Whether a call changed nothing: as its MCP server declares, else by the HTTP methods."""
    if use.read_only is not None:
        return use.read_only
    return True if own and all(x.request.method in READ_METHODS for x in own) else None


def _iter_message_rows(tape: Tape, told: DerivedSteps) -> Iterator[tuple[object, ...]]:
    """Yield each message once per lane, at the exchange where it first occurs."""
    first: dict[tuple[int, int], tuple[int, str, str]] = {}
    last: dict[tuple[int, int], int] = {}
    for seq, placed in sorted(told.contexts.items()):
        if placed.lane is None:
            continue
        for position, message in enumerate(placed.messages):
            key = (placed.lane, position)
            if key not in first:
                first[key] = (seq, message.role, message.content)
            last[key] = seq
    for (lane, position), (seq, role, content) in first.items():
        size = len(content.encode("utf-8", "replace"))
        text = clip_stored_text(content)
        yield tape.trajectory.id, seq, position, last[lane, position], role, text, size, lane


def _iter_usage_rows(
    tape: Tape, told: DerivedSteps, price: PriceFunction
) -> Iterator[tuple[object, ...]]:
    for seq, answer in sorted(told.answers.items()):
        usage = answer.usage
        if usage is None:
            continue
        yield (
            tape.trajectory.id,
            seq,
            answer.model,
            usage.prompt_tokens,
            usage.cached_tokens,
            usage.completion_tokens,
            usage.reasoning_tokens,
            price(answer.model, usage) if answer.model else None,
            None,
        )


def _iter_stage_rows(
    tape: Tape, told: DerivedSteps, usage: list[tuple[object, ...]]
) -> Iterator[tuple[object, ...]]:
    """Yield the stages that run events report, with the model cost of each."""
    if not tape.marks:
        return
    used = {each[1]: each for each in usage}
    charges = [
        _to_model_charge(exchange, used.get(exchange.seq))
        for exchange in tape.exchanges
        if told.contexts[exchange.seq].kind == "model" and exchange.answered_by != "refused"
    ]
    stages = list(derive_stage_rows(tape.marks, charges))
    failed = find_failure_causes(
        collect_stage_attempts(stages, tape.exchanges, told), PASSING_SCORE
    )
    for each in stages:
        failure = failed.get(str(each["stage"]))
        failure_columns = (
            {"failure": failure.cause, "failure_evidence": failure.evidence} if failure else {}
        )
        yield make_relation_row(
            "stages", {"trajectory_id": tape.trajectory.id, **each, **failure_columns}
        )


def _to_model_charge(exchange: Exchange, used: tuple[object, ...] | None) -> ModelCharge:
    if used is None:
        return ModelCharge(at=exchange.started)
    prompt, completion, cost = used[3], used[5], used[7]
    return ModelCharge(
        at=exchange.started,
        tokens=(prompt or 0) + (completion or 0),  # type: ignore[operator]
        dollars=cost,  # type: ignore[arg-type]
    )
