"""Rows of the store, derived from a tape: pure, so that a better rule improves old tapes.

Injections and outcomes are verdicts of another package and are not created here.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping

from traces.agent_name import name_agent_command
from traces.conversation.derived_steps import (
    DerivedSteps,
    ToolUse,
    TrajectoryStep,
    derive_tape_steps,
    find_answer_end,
)
from traces.conversation.prefix_changes import find_prefix_changes
from traces.dialects.rpc_method import read_rpc_method
from traces.dialects.types import ChatMessage
from traces.model import Exchange, RunEnding, Trajectory
from traces.model_family import find_model_family
from traces.pipeline.attempts import collect_stage_attempts
from traces.pipeline.failure_causes import PASSING_SCORE, find_failure_causes
from traces.pipeline.interrupted_stage import measure_interrupted_stage
from traces.pipeline.stages import ModelCharge, StageCase, derive_stage_cases, derive_stage_rows
from traces.pipeline.unwritten_text import find_unwritten_text
from traces.store.control_groups import digest_control_group
from traces.store.hosted_calls import dump_hosted_calls
from traces.store.schema import RelationRowMaker, clip_stored_text, make_relation_row
from traces.store.usage_rows import (
    TOKEN_COLUMNS,
    PriceFunction,
    UsageColumns,
    iter_usage,
    sum_costs,
)
from traces.tape.reader import Tape

type RelationRows = dict[str, list[tuple[object, ...]]]

READ_METHODS = ("GET", "HEAD", "OPTIONS")


def build_tape_rows(
    tape: Tape,
    derived_steps: DerivedSteps | None = None,
    price: PriceFunction = lambda model, usage: None,
) -> RelationRows:
    """Return the rows of one tape by relation, each a tuple in the order of its schema."""
    derived_steps = derived_steps or derive_tape_steps(tape)
    usage, run = list(iter_usage(tape, derived_steps, price)), tape.trajectory.id
    return {
        "trajectories": [_build_trajectory_row(tape, derived_steps, usage)],
        "exchanges": list(_iter_exchange_rows(tape, derived_steps)),
        "steps": [_make_step_row(step, trajectory_id=run) for step in derived_steps.steps],
        "tool_calls": list(_iter_tool_call_rows(tape, derived_steps)),
        "messages": list(_iter_message_rows(tape, derived_steps)),
        "usage": [make_relation_row("usage", each) for each in usage],
        "stages": list(_iter_stage_rows(tape, derived_steps, usage)),
        "stage_cases": [
            _make_case_row(case, trajectory_id=run) for case in derive_stage_cases(tape.marks)
        ],
    }


def _build_trajectory_row(
    tape: Tape, derived_steps: DerivedSteps, usage: list[UsageColumns]
) -> tuple[object, ...]:
    run, ending = tape.trajectory, tape.ending
    model = run.model or next(
        (turn.model for turn in derived_steps.agent_steps if turn.model), None
    )
    last = max((find_answer_end(x) for x in tape.exchanges), default=0.0)
    return make_relation_row(
        "trajectories",
        {
            "trajectory_id": run.id,
            "agent": derive_agent_name(run),
            "model": model,
            "scenario": run.scenario,
            "task": run.task,
            "trial": run.trial,
            "condition": run.condition,
            "world": run.world,
            "seed": run.seed,
            "parent_id": run.parent,
            "forked_at": run.forked_at,
            "recorded_at": run.recorded_at,
            "source": run.source,
            "n_steps": len(derived_steps.agent_steps),
            "cost_usd": sum_costs(usage),
            "cost_source": None if sum_costs(usage) is None else "list_price",
            "seconds": (ending.at if ending else last) if run.timed else None,
            "tokens": sum(map(_count_tokens, usage)) if usage else None,
            "campaign": run.campaign,
            "cell": run.cell,
            "experiment": run.experiment,
            "control_group": digest_control_group(run, ending),
            "controls": list(run.controls),
            "passed_reason": _explain_unknown_result(tape),
            "seal": run.seal,
            "cut_at": tape.cut_at,
            "fidelity": "bytes",
            "model_family": find_model_family(model),
            **_describe_ending(ending),
            **_count_fork_effects(tape, derived_steps),
            **{column: _sum_known_counts(row[column] for row in usage) for column in TOKEN_COLUMNS},
        },
    )


def _describe_ending(ending: RunEnding | None) -> dict[str, object]:
    if ending is None:
        return {}
    return {
        "passed": ending.passed,
        "reward": ending.reward,
        "ended": ending.ended,
        "agent_exit": ending.exit_code,
        "verifier": ending.verifier,
        "verifier_of": ending.verifier_of,
        "state": ending.state,
        "passed_by": "verifier" if ending.passed is not None else None,
    }


def _count_tokens(usage: UsageColumns) -> int:
    prompt, completion = usage["prompt_tokens"], usage["completion_tokens"]
    return (prompt or 0) + (completion or 0)


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


def _count_fork_effects(tape: Tape, derived_steps: DerivedSteps) -> dict[str, int]:
    """Count the lanes that a fork cascaded into, and what of results differed; {} if no fork."""
    if tape.trajectory.forked_at is None:
        return {}
    lanes = {derived_steps.contexts[x.seq].lane for x in tape.exchanges if x.cascade}
    changes = find_prefix_changes(tape)
    return {
        "cascades": len(lanes),
        "drifted": len(_find_pinned_calls(tape)),
        "substituted": len(changes.substituted),
        "renamed": len(changes.renamed),
        "remade": changes.remade,
    }


def _find_pinned_calls(tape: Tape) -> frozenset[str]:
    return frozenset(id for exchange in tape.exchanges for id in exchange.pinned)


def derive_agent_name(run: Trajectory) -> str | None:
    """Return the agent's given name, else its script or module, else its program."""
    return run.agent if run.agent or not run.command else name_agent_command(run.command)


_make_exchange_row = RelationRowMaker(
    "exchanges",
    Exchange,
    {
        "method": lambda exchange: exchange.request.method,
        "url": lambda exchange: exchange.request.url,
        "status": lambda exchange: exchange.response.status if exchange.response else None,
        "request_bytes": lambda exchange: len(exchange.request.body),
        "response_bytes": lambda exchange: (
            sum(len(chunk.data) for chunk in exchange.response.chunks)
            if exchange.response
            else None
        ),
        "n_chunks": lambda exchange: len(exchange.response.chunks) if exchange.response else None,
        "rpc": lambda exchange: read_rpc_method(exchange.request),
    },
    given=(
        *("trajectory_id", "lane", "kind", "attempt_of", "tape", "offset", "length"),
        *("started", "duration", "ttfb"),
    ),
    left_out=(
        *("request", "response", "started", "connection", "stream", "edits", "redacted"),
        *("pinned", "renamed", "substituted", "unparsed"),
    ),
)


def _iter_exchange_rows(tape: Tape, derived_steps: DerivedSteps) -> Iterator[tuple[object, ...]]:
    timed = tape.trajectory.timed
    for exchange in tape.exchanges:
        placed, answer = derived_steps.contexts[exchange.seq], exchange.response
        offset, length = tape.spans[exchange.seq]
        yield _make_exchange_row(
            exchange,
            trajectory_id=tape.trajectory.id,
            lane=placed.lane,
            kind=placed.kind,
            attempt_of=placed.attempt_of,
            tape=str(tape.path),
            offset=offset,
            length=length,
            started=exchange.started if timed else None,
            duration=_measure_exchange_time(exchange) if timed else None,
            ttfb=answer.at - exchange.started if answer and timed else None,
        )


def _measure_exchange_time(exchange: Exchange) -> float | None:
    return find_answer_end(exchange) - exchange.started if exchange.response else None


_make_step_row = RelationRowMaker(
    "steps",
    TrajectoryStep,
    {
        "step": lambda step: step.number,
        "message": lambda step: clip_stored_text(step.message),
        "seqs": lambda step: list(step.seqs),
        "finish_reason": lambda step: step.finish,
        "hosted": lambda step: dump_hosted_calls(step.hosted),
        "media": lambda step: list(step.media),
    },
    given=("trajectory_id",),
    left_out=(*("number", "lane", "missing", "finish", "usage", "calls", "at", "reasoning"),),
)
_make_call_row = RelationRowMaker(
    "tool_calls",
    ToolUse,
    {
        "arguments": lambda use: clip_stored_text(use.arguments),
        "result": lambda use: None if use.result is None else clip_stored_text(use.result),
        "arguments_bytes": lambda use: len(use.arguments.encode("utf-8", "replace")),
        "result_bytes": lambda use: (
            None if use.result is None else len(use.result.encode("utf-8", "replace"))
        ),
    },
    given=(
        *("trajectory_id", "seq", "duration", "faulted", "answered_by", "drifted", "position"),
        "read_only",
    ),
    left_out=(
        *("lane", "asked_by", "prefix", "ordinal", "result_seq", "server", "stdio", "read_only"),
        *("seqs", "stage", "media"),
    ),
)
_make_message_row = RelationRowMaker(
    "messages",
    ChatMessage,
    {
        "content": lambda message: clip_stored_text(message.content),
        "content_bytes": lambda message: len(message.content.encode("utf-8", "replace")),
        "media": lambda message: list(message.media),
    },
    given=("trajectory_id", "first_seq", "position", "last_seq", "lane", "digest"),
    left_out=("address",),
)
_make_case_row = RelationRowMaker(
    "stage_cases",
    StageCase,
    {"program": lambda case: case.case},
    given=("trajectory_id",),
    left_out=("case",),
)


def _iter_tool_call_rows(tape: Tape, derived_steps: DerivedSteps) -> Iterator[tuple[object, ...]]:
    by_seq = {exchange.seq: exchange for exchange in tape.exchanges}
    faulted_calls = {injection.call_id for injection in tape.injections if not injection.sham}
    pinned = _find_pinned_calls(tape)
    positions: Counter[int] = Counter()
    for use in derived_steps.tool_uses:
        positions[use.step] += 1
        exchanges = [by_seq[seq] for seq in use.seqs]
        durations = [took for x in exchanges if (took := _measure_exchange_time(x)) is not None]
        yield _make_call_row(
            use,
            trajectory_id=tape.trajectory.id,
            seq=exchanges[0].seq if exchanges else None,
            duration=sum(durations) if durations and tape.trajectory.timed else None,
            faulted=use.call_id in faulted_calls,
            answered_by=exchanges[-1].answered_by if exchanges else None,
            drifted=use.call_id in pinned,
            position=positions[use.step],
            read_only=_is_read_only_call(use, exchanges),
        )


def _is_read_only_call(use: ToolUse, exchanges: list[Exchange]) -> bool | None:
    """Whether a call changed nothing: as its MCP server declares, else by the HTTP methods."""
    if use.read_only is not None:
        return use.read_only
    return True if exchanges and all(x.request.method in READ_METHODS for x in exchanges) else None


def _iter_message_rows(tape: Tape, derived_steps: DerivedSteps) -> Iterator[tuple[object, ...]]:
    """Yield each message once per lane, at the exchange where it first occurs."""
    placed = [
        (seq, each) for seq, each in sorted(derived_steps.contexts.items()) if each.lane is not None
    ]
    last: dict[int | None, list[int]] = defaultdict(list)
    for seq, each in reversed(placed):
        last[each.lane] += [seq] * (len(each.messages) - len(last[each.lane]))
    seen = Counter[int | None]()
    for seq, each in placed:
        for position in range(seen[each.lane], len(each.messages)):
            yield _make_message_row(
                each.messages[position],
                trajectory_id=tape.trajectory.id,
                first_seq=seq,
                position=position,
                last_seq=last[each.lane][position],
                lane=each.lane,
                digest=None,
            )
        seen[each.lane] = max(seen[each.lane], len(each.messages))


def _iter_stage_rows(
    tape: Tape, derived_steps: DerivedSteps, usage: list[UsageColumns]
) -> Iterator[tuple[object, ...]]:
    """Yield the stages that run events report, with the model cost of each."""
    if not tape.marks:
        return
    stages = list(derive_stage_rows(tape.marks, _list_model_charges(tape, derived_steps, usage)))
    failed = find_failure_causes(
        collect_stage_attempts(
            stages,
            tape.exchanges,
            derived_steps,
            is_builtin=tape.marks[0].data.get("agent") == "builtin",
        ),
        PASSING_SCORE,
    )
    unwritten = find_unwritten_text(tape.marks, derived_steps)
    for each in stages:
        failure = failed.get(str(each["stage"]))
        failure_columns: dict[str, object] = {}
        if failure is not None:
            failure_columns = {"failure": failure.cause, "failure_evidence": failure.evidence}
        if failure is not None and failure.outage and not tape.injections:
            failure_columns |= {"score": None, "passed": None, "outcome": "provider"}
        yield make_relation_row(
            "stages",
            {
                "trajectory_id": tape.trajectory.id,
                **each,
                **failure_columns,
                **unwritten.get(str(each["stage"]), {}),
            },
        )


def measure_interrupted_tape(
    tape: Tape, price: PriceFunction
) -> tuple[str, Mapping[str, object]] | None:
    """Return the stage that a pipeline run was interrupted in, and what it had spent at it."""
    derived_steps = derive_tape_steps(tape)
    usage = list(iter_usage(tape, derived_steps, price))
    ends = (find_answer_end(exchange) for exchange in tape.exchanges)
    until = max([*ends, *(mark.at for mark in tape.marks)], default=0.0)
    return measure_interrupted_stage(
        tape.marks, _list_model_charges(tape, derived_steps, usage), until
    )


def _list_model_charges(
    tape: Tape, derived_steps: DerivedSteps, usage: list[UsageColumns]
) -> list[ModelCharge]:
    """Return the cost of each model response, but for those that a budget refused."""
    used = {each["seq"]: each for each in usage}
    return [
        _to_model_charge(exchange, used.get(exchange.seq))
        for exchange in tape.exchanges
        if derived_steps.contexts[exchange.seq].kind == "model"
        and exchange.answered_by != "refused"
    ]


def _to_model_charge(exchange: Exchange, used: UsageColumns | None) -> ModelCharge:
    if used is None:
        return ModelCharge(at=exchange.started)
    return ModelCharge(at=exchange.started, tokens=_count_tokens(used), dollars=used["cost_usd"])
