"""Runs as exporters see them, from rows, as far as the index stores them."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from copy import replace
from itertools import count

import duckdb
from msgspec import Struct, field

from traces.dialects.types import TokenUsage
from traces.exporters.run_model import ExportedCall, ExportedRun, ExportedStep
from traces.exporters.sent_messages import SentMessage, SentMessages
from traces.importers.shared.exported_runs import EXPORTED_FACTS
from traces.store.hosted_calls import load_hosted_calls

_CHOSEN = "where trajectory_id in (select unnest(?))"
_FACTS = ("source", *EXPORTED_FACTS)
_RUNS = f"""
    select trajectory_id, agent, model, epoch(recorded_at), {", ".join(_FACTS)}
    from trajectories {_CHOSEN}
"""
_STEPS = f"""
    select trajectory_id, step, source, message, model, finish_reason, hosted, seqs[-1],
        (select any_value(lane) from exchanges
            where exchanges.trajectory_id = steps.trajectory_id and seq = seqs[1])
    from steps {_CHOSEN} order by step
"""
_CALLS = f"""
    select trajectory_id, step, call_id, tool, arguments, result, is_error, arguments_bytes,
        result_bytes
    from tool_calls {_CHOSEN}
"""
_USAGE = f"""
    select trajectory_id, seq, cost_reported_usd, prompt_tokens, cached_tokens,
        completion_tokens, reasoning_tokens
    from usage {_CHOSEN}
"""

type Usage = tuple[TokenUsage, float | None]


def read_exported_runs(
    connection: duckdb.DuckDBPyConnection, ids: Sequence[str]
) -> dict[str, ExportedRun]:
    """Read runs by id; ids that are not in the store are missing.

    A conversation without steps has an empty tuple of them.
    """
    calls: dict[tuple[str, int], list[ExportedCall]] = defaultdict(list)
    for id, number, call_id, *call in connection.execute(_CALLS, [list(ids)]).fetchall():
        own = calls[id, number]  # in file order
        own.append(_to_exported_call(call_id or f"call-{number}-{len(own) + 1}", *call))
    usages: dict[tuple[str, int], Usage] = {
        (id, seq): (
            TokenUsage(**dict(zip(TokenUsage.__struct_fields__, counts, strict=True))),
            cost,
        )
        for id, seq, cost, *counts in connection.execute(_USAGE, [list(ids)]).fetchall()
    }
    steps: dict[str, list[ExportedStep]] = defaultdict(list)
    requests: dict[str, count[int]] = defaultdict(lambda: count(1))
    for id, number, source, message, model, finish, hosted, seq, lane in connection.execute(
        _STEPS, [list(ids)]
    ).fetchall():
        seq = seq if seq is not None or source != "agent" else next(requests[id])
        usage, cost = usages.get((id, seq), (None, None)) if source == "agent" else (None, None)
        step = ExportedStep(
            source=source,
            message=message or "",
            model=model,
            calls=tuple(calls[id, number]),
            usage=usage,
            cost=cost,
            finish=finish,
            hosted=load_hosted_calls(hosted),
            lane=lane or 0,
        )
        steps[id].append(step)
    return {
        id: ExportedRun(
            id=id,
            steps=tuple(add_sent_messages(steps[id])),
            agent=agent,
            model=model,
            recorded_at=at,
            facts={k: v for k, v in zip(_FACTS, facts, strict=True) if v is not None},
        )
        for id, agent, model, at, *facts in connection.execute(_RUNS, [list(ids)]).fetchall()
    }


class _Conversation(Struct):
    """What is in a lane so far: its last response, and the messages after that."""

    follows: int | None = None
    history: int = 0
    messages: list[SentMessage] = field(default_factory=list)


def add_sent_messages(steps: Iterable[ExportedStep]) -> Iterator[ExportedStep]:
    """Yield the steps, each response with what came before it in its lane."""
    lanes: dict[int, _Conversation] = defaultdict(_Conversation)
    for place, step in enumerate(steps):
        lane = lanes[step.lane]
        if step.source != "agent":
            lane.messages.append(SentMessage(role=step.source, text=step.message))
            yield step
            continue
        sent = SentMessages(
            follows=lane.follows, history=lane.history, messages=tuple(lane.messages)
        )
        yield replace(step, sent=sent)
        lanes[step.lane] = _Conversation(
            follows=place,
            history=lane.history + len(lane.messages) + 1,
            messages=[
                SentMessage(role="tool", text=call.result, call_id=call.id)
                for call in step.calls
                if call.result is not None
            ],
        )


def _to_exported_call(
    id: str,
    tool: str,
    arguments: str,
    result: str | None,
    is_error: bool | None,
    arguments_bytes: int | None,
    result_bytes: int | None,
) -> ExportedCall:
    cut = {
        name: size
        for name, text, size in (
            ("arguments", arguments, arguments_bytes),
            ("result", result, result_bytes),
        )
        if text is not None and size is not None and size > len(text.encode("utf-8", "replace"))
    }
    return ExportedCall(
        id=id, tool=tool, arguments=arguments or "", result=result, is_error=is_error, cut=cut
    )
