"""Rows of the store, derived from a tape: pure, so that a better rule improves old tapes.

Injections and outcomes are verdicts of another package and are not created here.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping

from traces.agent_name import name_agent_command
from traces.conversation.derived_steps import (
    DerivedSteps,
    ToolUse,
    derive_tape_steps,
    find_answer_end,
)
from traces.conversation.prefix_changes import find_prefix_changes
from traces.dialects.rpc_method import read_rpc_method
from traces.model import Exchange, RunEnding, Trajectory
from traces.model_family import find_model_family
from traces.pipeline.attempts import collect_stage_attempts
from traces.pipeline.failure_causes import PASSING_SCORE, find_failure_causes
from traces.pipeline.interrupted_stage import measure_interrupted_stage
from traces.pipeline.stages import ModelCharge, derive_stage_cases, derive_stage_rows
from traces.pipeline.unwritten_text import find_unwritten_text
from traces.store.control_groups import digest_control_group
from traces.store.hosted_calls import dump_hosted_calls
from traces.store.schema import clip_stored_text, make_relation_row
from traces.store.usage_rows import (
    TOKEN_COLUMNS,
    PriceFunction,
    UsageColumns,
    iter_usage,
    sum_costs,
)
from traces.tape import Tape

type RelationRows = dict[str, list[tuple[object, ...]]]

READ_METHODS = ("GET", "HEAD", "OPTIONS")


def build_tape_rows(
    tape: Tape, told: DerivedSteps | None = None, price: PriceFunction = lambda model, usage: None
) -> RelationRows:
    """Return the rows of one tape by relation, each a tuple in the order of its schema."""
    told = told or derive_tape_steps(tape)
    usage = list(iter_usage(tape, told, price))
    return {
        "trajectories": [_build_trajectory_row(tape, told, usage)],
        "exchanges": list(_iter_exchange_rows(tape, told)),
        "steps": list(_iter_step_rows(tape, told)),
        "tool_calls": list(_iter_tool_call_rows(tape, told)),
        "messages": list(_iter_message_rows(tape, told)),
        "usage": [make_relation_row("usage", each) for each in usage],
        "stages": list(_iter_stage_rows(tape, told, usage)),
        "stage_cases": list(_iter_case_rows(tape)),
    }


def _build_trajectory_row(
    tape: Tape, told: DerivedSteps, usage: list[UsageColumns]
) -> tuple[object, ...]:
    run, ending = tape.trajectory, tape.ending
    model = run.model or next((turn.model for turn in told.agent_steps if turn.model), None)
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
            "n_steps": len(told.agent_steps),
            "cost_usd": sum_costs(usage),
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
            **_count_fork_effects(tape, told),
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


def _count_fork_effects(tape: Tape, told: DerivedSteps) -> dict[str, int]:
    """Count the lanes that a fork cascaded into, and what of results differed; {} if no fork."""
    if tape.trajectory.forked_at is None:
        return {}
    lanes = {told.contexts[x.seq].lane for x in tape.exchanges if x.cascade}
    changes = find_prefix_changes(tape.exchanges)
    return {
        "cascades": len(lanes),
        "drifted": len(_find_pinned_calls(tape)),
        "substituted": len(changes.substituted),
        "renamed": len(changes.renamed),
        "remade": tape.trajectory.remade,
    }


def _find_pinned_calls(tape: Tape) -> frozenset[str]:
    return frozenset(id for exchange in tape.exchanges for id in exchange.pinned)


def derive_agent_name(run: Trajectory) -> str | None:
    """Return the agent's given name, else its script or module, else its program."""
    return run.agent if run.agent or not run.command else name_agent_command(run.command)


def _iter_exchange_rows(tape: Tape, told: DerivedSteps) -> Iterator[tuple[object, ...]]:
    timed = tape.trajectory.timed
    for exchange in tape.exchanges:
        placed = told.contexts[exchange.seq]
        answer = exchange.response
        offset, length = tape.spans[exchange.seq]
        yield make_relation_row(
            "exchanges",
            {
                "trajectory_id": tape.trajectory.id,
                "seq": exchange.seq,
                "lane": placed.lane,
                "kind": placed.kind,
                "transport": exchange.transport,
                "method": exchange.request.method,
                "url": exchange.request.url,
                "status": answer.status if answer else None,
                "error": exchange.error,
                "started": exchange.started if timed else None,
                "duration": _measure_exchange_time(exchange) if timed else None,
                "ttfb": answer.at - exchange.started if answer and timed else None,
                "request_bytes": len(exchange.request.body),
                "response_bytes": sum(len(chunk.data) for chunk in answer.chunks)
                if answer
                else None,
                "n_chunks": len(answer.chunks) if answer else None,
                "attempt_of": placed.attempt_of,
                "answered_by": exchange.answered_by,
                "tape": str(tape.path),
                "offset": offset,
                "length": length,
                "cascade": exchange.cascade,
                "rpc": read_rpc_method(exchange.request),
            },
        )


def _measure_exchange_time(exchange: Exchange) -> float | None:
    return find_answer_end(exchange) - exchange.started if exchange.response else None


def _iter_step_rows(tape: Tape, told: DerivedSteps) -> Iterator[tuple[object, ...]]:
    for step in told.steps:
        yield make_relation_row(
            "steps",
            {
                "trajectory_id": tape.trajectory.id,
                "step": step.number,
                "source": step.source,
                "message": clip_stored_text(step.message),
                "model": step.model,
                "seqs": list(step.seqs),
                "finish_reason": step.finish,
                "hosted": dump_hosted_calls(step.hosted),
            },
        )


def _iter_tool_call_rows(tape: Tape, told: DerivedSteps) -> Iterator[tuple[object, ...]]:
    by_seq = {exchange.seq: exchange for exchange in tape.exchanges}
    faulted_calls = {injection.call_id for injection in tape.injections if not injection.sham}
    pinned = _find_pinned_calls(tape)
    positions: Counter[int] = Counter()
    for use in told.tool_uses:
        positions[use.step] += 1
        exchanges = [by_seq[seq] for seq in use.seqs]
        durations = [took for x in exchanges if (took := _measure_exchange_time(x)) is not None]
        yield make_relation_row(
            "tool_calls",
            {
                "trajectory_id": tape.trajectory.id,
                "step": use.step,
                "call_id": use.call_id,
                "tool": use.tool,
                "arguments": clip_stored_text(use.arguments),
                "result": None if use.result is None else clip_stored_text(use.result),
                "is_error": use.is_error,
                "place": use.place,
                "read_only": _is_read_only_call(use, exchanges),
                "join": use.join,
                "seq": exchanges[0].seq if exchanges else None,
                "duration": sum(durations) if durations and tape.trajectory.timed else None,
                "faulted": use.call_id in faulted_calls,
                "arguments_bytes": len(use.arguments.encode("utf-8", "replace")),
                "result_bytes": None
                if use.result is None
                else len(use.result.encode("utf-8", "replace")),
                "answered_by": exchanges[-1].answered_by if exchanges else None,
                "drifted": use.call_id in pinned,
                "position": positions[use.step],
                "incomplete": use.incomplete,
            },
        )


def _is_read_only_call(use: ToolUse, own: list[Exchange]) -> bool | None:
    """Whether a call changed nothing: as its MCP server declares, else by the HTTP methods."""
    if use.read_only is not None:
        return use.read_only
    return True if own and all(x.request.method in READ_METHODS for x in own) else None


def _iter_message_rows(tape: Tape, told: DerivedSteps) -> Iterator[tuple[object, ...]]:
    """Yield each message once per lane, at the exchange where it first occurs."""
    placed = [(seq, each) for seq, each in sorted(told.contexts.items()) if each.lane is not None]
    last: dict[int | None, list[int]] = defaultdict(list)
    for seq, each in reversed(placed):
        last[each.lane] += [seq] * (len(each.messages) - len(last[each.lane]))
    seen = Counter[int | None]()
    for seq, each in placed:
        for position in range(seen[each.lane], len(each.messages)):
            message = each.messages[position]
            yield make_relation_row(
                "messages",
                {
                    "trajectory_id": tape.trajectory.id,
                    "first_seq": seq,
                    "position": position,
                    "last_seq": last[each.lane][position],
                    "role": message.role,
                    "content": clip_stored_text(message.content),
                    "content_bytes": len(message.content.encode("utf-8", "replace")),
                    "lane": each.lane,
                    "media": list(message.media),
                },
            )
        seen[each.lane] = max(seen[each.lane], len(each.messages))


def _iter_stage_rows(
    tape: Tape, told: DerivedSteps, usage: list[UsageColumns]
) -> Iterator[tuple[object, ...]]:
    """Yield the stages that run events report, with the model cost of each."""
    if not tape.marks:
        return
    stages = list(derive_stage_rows(tape.marks, _list_model_charges(tape, told, usage)))
    failed = find_failure_causes(
        collect_stage_attempts(stages, tape.exchanges, told), PASSING_SCORE
    )
    unwritten = find_unwritten_text(tape.marks, told)
    for each in stages:
        failure = failed.get(str(each["stage"]))
        failure_columns = (
            {"failure": failure.cause, "failure_evidence": failure.evidence} if failure else {}
        )
        yield make_relation_row(
            "stages",
            {
                "trajectory_id": tape.trajectory.id,
                **each,
                **failure_columns,
                **unwritten.get(str(each["stage"]), {}),
            },
        )


def _iter_case_rows(tape: Tape) -> Iterator[tuple[object, ...]]:
    """Yield the cases of the stages that run events report."""
    for case in derive_stage_cases(tape.marks):
        columns = {
            "trajectory_id": tape.trajectory.id,
            "stage": case.stage,
            "program": case.case,
            "result": case.result,
            "score": case.score,
            "reached": case.reached,
            "why": case.why,
        }
        yield make_relation_row("stage_cases", columns)


def measure_interrupted_tape(
    tape: Tape, price: PriceFunction
) -> tuple[str, Mapping[str, object]] | None:
    """Return the stage that a pipeline run was interrupted in, and what it had spent at it."""
    told = derive_tape_steps(tape)
    usage = list(iter_usage(tape, told, price))
    ends = (find_answer_end(exchange) for exchange in tape.exchanges)
    until = max([*ends, *(mark.at for mark in tape.marks)], default=0.0)
    return measure_interrupted_stage(tape.marks, _list_model_charges(tape, told, usage), until)


def _list_model_charges(
    tape: Tape, told: DerivedSteps, usage: list[UsageColumns]
) -> list[ModelCharge]:
    """Return the cost of each model response, but for those that a budget refused."""
    used = {each["seq"]: each for each in usage}
    return [
        _to_model_charge(exchange, used.get(exchange.seq))
        for exchange in tape.exchanges
        if told.contexts[exchange.seq].kind == "model" and exchange.answered_by != "refused"
    ]


def _to_model_charge(exchange: Exchange, used: UsageColumns | None) -> ModelCharge:
    if used is None:
        return ModelCharge(at=exchange.started)
    return ModelCharge(at=exchange.started, tokens=_count_tokens(used), dollars=used["cost_usd"])
