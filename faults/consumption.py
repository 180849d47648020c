"""Whether what a fault did is in the tool result that the agent's next model request carries.

Only a consumed injection says anything about the agent: what an SDK's own retry swallowed was
never seen by it. True, False with a reason, or None where it cannot be decided.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from faults.atoms import atoms
from traces.model import Exchange, Injection
from traces.story import Story, ToolUse


@dataclass(frozen=True, slots=True)
class Consumption:
    """The verdict, the model request that decides it, and why."""

    consumed: bool | None
    seq: int | None
    why: str


def consumption(injection: Injection, story: Story, exchanges: Sequence[Exchange]) -> Consumption:
    """Whether this injection reached the model, by the family rules of the taxonomy."""
    if injection.place == "model-boundary":
        return _at_boundary(injection, exchanges)
    use = story.use(injection.call_id) if injection.call_id else None
    if use is None:
        return Consumption(None, None, "undecidable")
    if use.result is None or use.result_seq is None:
        return Consumption(False, None, "ended_before")
    return _in_result(injection, use, use.result, exchanges)


def _at_boundary(injection: Injection, exchanges: Sequence[Exchange]) -> Consumption:
    """What was forwarded is known byte for byte; it counts once a model answered it."""
    for exchange in exchanges:
        if exchange.seq >= injection.seq and (exchange.edits or injection.sham):
            answer = exchange.response
            if answer is not None and answer.status < 400 and exchange.error is None:
                return Consumption(True, exchange.seq, "forwarded bytes")
    return Consumption(False, None, "ended_before")


def _in_result(
    injection: Injection, use: ToolUse, result: str, exchanges: Sequence[Exchange]
) -> Consumption:
    original, mutated = _text(injection.original), _text(injection.mutated)
    match injection.family:
        case "sham":
            same = original is None or original in result or bool(atoms(original) & atoms(result))
            return _verdict(same, use, "clean result is there", "absorbed")
        case "E":
            if _later_success(injection, use, exchanges):
                return Consumption(False, use.result_seq, "absorbed")
            return _verdict(result != original, use, "the error is the result", "absorbed")
        case "T":
            late = _lasted(injection, use, exchanges)
            return _verdict(late, use, "the result came late", "absorbed")
        case _:
            return _bent(original, mutated, use, result)


def _bent(original: str | None, mutated: str | None, use: ToolUse, result: str) -> Consumption:
    if original is None or mutated is None:
        return Consumption(None, use.result_seq, "undecidable")
    if mutated.strip() and mutated.strip() in result and original not in result:
        return Consumption(True, use.result_seq, "the bent text is the result")
    here = atoms(result)
    shared = sorted((atoms(mutated) - atoms(original)) & here)
    if shared:
        return Consumption(True, use.result_seq, f"introduced {shared[0]} is in the result")
    clean = atoms(original) <= here and original in result
    return Consumption(
        False if clean else None, use.result_seq, "absorbed" if clean else "undecidable"
    )


def _verdict(fact: bool | None, use: ToolUse, yes: str, no: str) -> Consumption:
    why = "undecidable" if fact is None else yes if fact else no
    return Consumption(fact, use.result_seq, why)


def _later_success(injection: Injection, use: ToolUse, exchanges: Sequence[Exchange]) -> bool:
    return any(
        exchange.seq in use.seqs
        and exchange.seq > injection.seq
        and exchange.error is None
        and exchange.response is not None
        and exchange.response.status < 400
        for exchange in exchanges
    )


def _lasted(injection: Injection, use: ToolUse, exchanges: Sequence[Exchange]) -> bool | None:
    """True if the struck exchange took the injected time and was the last of its call."""
    struck = next((x for x in exchanges if x.seq == injection.seq), None)
    ms = injection.params.get("ms", 1000)
    if struck is None or struck.response is None or not isinstance(ms, int | float):
        return None
    if use.seqs and use.seqs[-1] != injection.seq:
        return False
    jitter = injection.params.get("jitter_ms", 0)
    least = (ms - (jitter if isinstance(jitter, int | float) else 0)) / 1000
    return struck.response.at - struck.started >= max(0.0, least) * 0.99


def _text(data: bytes | None) -> str | None:
    return None if data is None else data.decode("utf-8", "replace")
