"""Whether what a fault did is in the tool result that the agent's next model request carries.

Only a consumed injection says anything about the agent: what an SDK's own retry swallowed was
never seen by it. True, False with a reason, or None where it cannot be decided.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from faults.atoms import atoms, pairs
from faults.judging.retries import is_unsafe_retry
from traces.conversation import failed
from traces.dialects import mcp
from traces.encoding import plain
from traces.model import Exchange, Injection
from traces.story import Story, ToolUse, text_is_error

SENT_AGAIN = "the client sent a write again that had been carried out"


@dataclass(frozen=True, slots=True)
class Consumption:
    """The verdict, the model request that decides it, and why."""

    consumed: bool | None
    seq: int | None
    why: str
    attempts: str | None = None
    """Those of a model's turn, as `attempts 3: 429, 4: 200`; None where a call was struck."""


def consumption(injection: Injection, story: Story, exchanges: Sequence[Exchange]) -> Consumption:
    """Whether this injection reached the model, by the family rules of the taxonomy."""
    if injection.place == "model-boundary":
        return _at_boundary(injection, story, exchanges)
    if injection.place == "model":
        return _at_model(injection, story, exchanges)
    use = story.use(injection.call_id) if injection.call_id else None
    if use is None:
        return Consumption(None, None, "undecidable")
    if use.result is None or use.result_seq is None:
        return Consumption(False, None, "ended_before")
    found = _in_result(injection, use, use.result, exchanges)
    if found.why == "absorbed" and is_unsafe_retry(injection, use, exchanges):
        # The model never saw it, and its client acted on it: what came of that is the agent's.
        return Consumption(True, use.result_seq, SENT_AGAIN)
    if found.consumed is None and injection.place == "mcp" and text_is_error(use.result):
        # A client that holds a result against its outputSchema refuses what is not of it.
        return Consumption(False, use.result_seq, "absorbed")
    if found.consumed and not any(found.seq in turn.seqs for turn in story.turns):
        # The agent took no step with it, so that nothing could be noticed.
        return Consumption(False, None, "ended_before")
    return found


def _at_boundary(injection: Injection, story: Story, exchanges: Sequence[Exchange]) -> Consumption:
    """What was forwarded is known byte for byte; it counts once a model answered it."""
    lie = {edit.data for edit in injection.edits}
    for exchange in exchanges:
        asked = exchange.seq in story.placed and story.placed[exchange.seq].kind == "model"
        told = injection.sham or any(edit.data in lie for edit in exchange.edits)
        if exchange.seq >= injection.seq and asked and told:
            answer = exchange.response
            if answer is not None and answer.status < 400 and exchange.error is None:
                return Consumption(True, exchange.seq, "forwarded bytes")
    return Consumption(False, None, "ended_before")


def _at_model(injection: Injection, story: Story, exchanges: Sequence[Exchange]) -> Consumption:
    """What the agent's client got is known byte for byte; what it tried again is absorbed."""
    struck = story.placed[injection.seq].attempt_of
    first = injection.seq if struck is None else struck
    tries = [x for x in exchanges if first in (x.seq, story.placed[x.seq].attempt_of)]
    last = tries[-1]
    said = "attempts " + ", ".join(f"{x.seq}: {_status(x)}" for x in tries)
    if last.seq == injection.seq:
        got = _text(_said(last))
        whole = got == _text(injection.mutated) and not _left(last)
        if whole or injection.op == "hang":  # signs of life are no answer, however many came
            return Consumption(True, last.seq, "forwarded bytes", said)
        why = "ended_before" if _left(last) else "undecidable"
        return Consumption(False if _left(last) else None, last.seq, why, said)
    if last.answered_by == "fault":
        return Consumption(True, last.seq, "the last attempt was struck too", said)
    answer = story.answers.get(last.seq)
    if failed(last) or answer is None or answer.finish is None:
        return Consumption(None, last.seq, "undecidable", said)
    return Consumption(False, last.seq, "absorbed", said)


def _left(exchange: Exchange) -> bool:
    """Whether the client went before it had all of the answer."""
    return (exchange.error or "").startswith("cancelled")


def _status(exchange: Exchange) -> str:
    answer = exchange.response
    if answer is None:
        return (exchange.error or "no answer").partition(":")[0]
    return str(answer.status) + (" cut" if exchange.error else "")


def _said(exchange: Exchange) -> bytes | None:
    answer = exchange.response
    if answer is None:
        return None
    data = plain(answer.headers, answer.body)
    return answer.body if data is None else data


type Proof = Literal["introduced", "gone", "other", "late", "same"]
"""What of a fault is looked for in the result: what it put there, that what it took is not, any
other result than the clean one, that it came late, or that it is the clean one still."""

_PROOF: Mapping[str, Proof] = {
    "delay": "late",
    "empty": "gone",
    "drop_rows": "gone",
    "silent_noop": "same",
    "lost_ack": "other",
}
_BY_FAMILY: Mapping[str, Proof] = {
    "T": "other",
    "E": "other",
    "S": "introduced",
    "V": "introduced",
    "X": "other",
    "sham": "same",
}


def proof(injection: Injection) -> Proof:
    """What proves that it was consumed: of a known operator, else by its family."""
    return _PROOF.get(injection.op) or _BY_FAMILY.get(injection.family, "introduced")


def _in_result(
    injection: Injection, use: ToolUse, result: str, exchanges: Sequence[Exchange]
) -> Consumption:
    original, mutated = _text(injection.original), _text(injection.mutated)
    match proof(injection):
        case "same":
            said = mutated if injection.family == "X" else original
            same = said is None or said in result or bool(atoms(said) & atoms(result))
            return _verdict(same, use, _KEPT[injection.family == "X"], "absorbed")
        case "other":
            if _later_success(injection, use, exchanges):
                return Consumption(False, use.result_seq, "absorbed")
            return _verdict(result != original, use, "the error is the result", "absorbed")
        case "late":
            late = _lasted(injection, use, exchanges)
            return _verdict(late, use, "the result came late", "absorbed")
        case "gone":
            return _gone(original, mutated, use, result)
        case _:
            return _bent(original, mutated, use, result)


_KEPT = {False: "the clean result is there", True: "the false acknowledgement is there"}


def _gone(original: str | None, mutated: str | None, use: ToolUse, result: str) -> Consumption:
    """Consumed where nothing that was left out is in the result."""
    if original is None or mutated is None:
        return Consumption(None, use.result_seq, "undecidable")
    if mutated.strip() and mutated.strip() == result.strip():
        return Consumption(True, use.result_seq, "the bent text is the result")
    lost = (atoms(original) | pairs(original)) - atoms(mutated) - pairs(mutated)
    if not lost:
        return Consumption(None, use.result_seq, "undecidable")
    still = sorted(lost & (atoms(result) | pairs(result)))
    if not still:
        return Consumption(True, use.result_seq, "nothing that was left out is in the result")
    # A client that adds words of its own may share a few; what holds all of it has the clean one.
    whole = len(still) == len(lost)
    why = "absorbed" if whole else "undecidable"
    return Consumption(False if whole else None, use.result_seq, why)


def _bent(original: str | None, mutated: str | None, use: ToolUse, result: str) -> Consumption:
    if original is None or mutated is None:
        return Consumption(None, use.result_seq, "undecidable")
    if mutated.strip() and mutated.strip() in result and original not in result:
        return Consumption(True, use.result_seq, "the bent text is the result")
    here, said = atoms(result), pairs(result)
    if shared := sorted((atoms(mutated) - atoms(original)) & here):
        return Consumption(True, use.result_seq, f"introduced {shared[0]} is in the result")
    # Two fields that changed places, and a truth value that was turned, bring no atom of their own.
    introduced, gone = pairs(mutated) - pairs(original), pairs(original) - pairs(mutated)
    if found := sorted(introduced & said):
        return Consumption(True, use.result_seq, f"introduced {found[0]} is in the result")
    clean = (atoms(original) <= here and original in result) or bool(gone and gone <= said)
    return Consumption(
        False if clean else None, use.result_seq, "absorbed" if clean else "undecidable"
    )


def _verdict(fact: bool | None, use: ToolUse, yes: str, no: str) -> Consumption:
    why = "undecidable" if fact is None else yes if fact else no
    return Consumption(fact, use.result_seq, why)


def _later_success(injection: Injection, use: ToolUse, exchanges: Sequence[Exchange]) -> bool:
    return any(
        exchange.seq in use.seqs and exchange.seq > injection.seq and _succeeded(exchange)
        for exchange in exchanges
    )


def _succeeded(exchange: Exchange) -> bool:
    """Whether a tool gave a result; over MCP a status of 200 may hold an error."""
    answer = exchange.response
    if answer is None or answer.status >= 400:
        return False
    reply = mcp.read(answer.headers, answer.body) if mcp.message(exchange.request) else None
    return exchange.error is None if reply is None else reply.is_error is False


def _lasted(injection: Injection, use: ToolUse, exchanges: Sequence[Exchange]) -> bool | None:
    """True if the struck exchange took the injected time and was the last of its call."""
    struck = next((x for x in exchanges if x.seq == injection.seq), None)
    ms = injection.params.get("ms", 1000)
    if struck is None or not isinstance(ms, int | float):
        return None
    if use.seqs and use.seqs[-1] != injection.seq:
        return False
    if struck.response is None:
        return True if _left(struck) else None  # the client waited less long than that
    jitter = injection.params.get("jitter_ms", 0)
    early = 4 if injection.params.get("dist") == "normal" else 1
    least = (ms - early * (jitter if isinstance(jitter, int | float) else 0)) / 1000
    return struck.response.at - struck.started >= max(0.0, least) * 0.99


def _text(data: bytes | None) -> str | None:
    return None if data is None else data.decode("utf-8", "replace")
