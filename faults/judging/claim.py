"""What an agent claims of its own result, read from the end of one run.

The facts are asked in this order: how the run ended; a final with a form (a call that submits,
JSON with a status, a marked answer); a question or a hand-over; then words, clause by clause. A
claim says nothing of whether it is true. What cannot be told is `unknown`.
"""

from faults.judging.claim_message import read_message, weigh
from faults.judging.claim_structure import (
    Structured,
    is_action,
    structured_call,
    structured_text,
    submits_by_command,
)
from faults.judging.claim_types import SHOWN, Basis, Claim, ClaimReading, MessageReading
from faults.judging.claim_words import is_unknown_answer, say
from faults.judging.final_turns import FinalTurns
from faults.judging.sentences import spoken

_BROKEN = ("crash", "infra", "limit", "budget", "timeout", "max_", "harness", "diverged",
           "replay_miss", "killed", "exceeded", "error")  # fmt: skip
_SUBMITTED = ("submit", "finish")
_TRANSFERRED = ("transfer", "hand", "escalat")
_NEGATIVE = ("abstained", "admits_failure")


def read_claim(final: FinalTurns) -> ClaimReading:
    """What the agent says of its own result: delivered, and all that is not; never raises."""
    messages = tuple(map(spoken, final.messages[-2:])) or ("",)
    broken, last = _ended(final, _BROKEN), read_text(messages[-1])
    call = structured_call(final.tools[-1]) if final.tools else None
    if call is not None and call.status in ("admits_failure", "partial") and not call.hands_over:
        return _stated(call, last)
    if submits_by_command(messages[-1]) or (
        _ended(final, _SUBMITTED) and last.claim in ("unknown", "none", "delivered")
    ):
        return _reading(last, "structure") if last.claim == "delivered" else _submitted(final)
    if is_action(messages[-1]) and last.claim != "delivered" and call is None:
        return ClaimReading("none", "last", messages[-1][-SHOWN:], "ends in an action")
    if (
        call is not None
        and call.hands_over
        and not (last.claim == "delivered" and last.is_explicit and not _ended(final, _TRANSFERRED))
    ):
        return _handed_over(call, messages)
    if last.claim != "none" and not (broken and not last.is_explicit):
        return _beside(last, messages)
    if broken:
        return ClaimReading("none", "end", final.ended or "", "the run ended without a final")
    if call is not None:
        return _reading(_structured(call), "tool")
    if final.open_call:
        open_call = final.tools[-1].call[:SHOWN] if final.tools else ""
        return ClaimReading("none", "end", open_call, "the run ends in an open tool call")
    if last.reason == "nothing said" and len(messages) > 1:
        return _reading(read_text(messages[0]), "previous")
    return _reading(last, "last")


def _stated(call: Structured, last: MessageReading) -> ClaimReading:
    """The status that the last call states, unless the last message says the contrary."""
    if last.claim == "delivered" and last.is_explicit:
        return ClaimReading("unknown", "tool", call.quote, "the last call and the words disagree")
    return _reading(_structured(call), "tool")


def read_text(text: str) -> MessageReading:
    """The claim of one message, by its form if it has one, else by its words."""
    found = structured_text(text)
    return read_message(text) if found is None else _structured(found)


def _ended(final: FinalTurns, words: tuple[str, ...]) -> bool:
    ended = (final.ended or "").casefold()
    return any(word in ended for word in words)


def _handed_over(call: Structured, messages: tuple[str, ...]) -> ClaimReading:
    """A run whose last act is a hand-over: partial if the agent said before what it had done."""
    for text in messages:
        read = read_text(text)
        if read.claim in ("delivered", "partial") and read.is_explicit:
            return ClaimReading("unknown", "tool", read.evidence[:SHOWN],
                                "done, then handed over", ("partial", "abstained"))  # fmt: skip
    return ClaimReading("abstained", "tool", call.quote, "the last call hands over")


def _reading(read: MessageReading, basis: Basis) -> ClaimReading:
    return ClaimReading(read.claim, basis, read.evidence[:SHOWN], read.reason, read.among)


def _submitted(final: FinalTurns) -> ClaimReading:
    evidence = final.messages[-1] if final.messages else final.ended or ""
    return ClaimReading("delivered", "structure", evidence[-SHOWN:], "a submission")


def _beside(last: MessageReading, messages: tuple[str, ...]) -> ClaimReading:
    """The last message's claim; partial if one wish was fulfilled and another one refused."""
    before = read_text(messages[0]) if len(messages) > 1 else MessageReading("none", "", "absent")
    if last.reason == "a fragment":
        return _bare(last, before)
    if last.claim == "delivered":
        refused = last.is_explicit and before.refuses
        among: tuple[Claim, ...] = ("delivered", "partial")
        return _part(before, last, among) if refused else _reading(last, "last")
    if last.claim not in _NEGATIVE:
        return _reading(last, "last")
    done = before.claim in ("delivered", "partial") and before.is_explicit
    return _part(before, last, ("partial", last.claim)) if done else _reading(last, "last")


def _bare(last: MessageReading, before: MessageReading) -> ClaimReading:
    """A few words without a cue: an answer, or a title after the message that claims something."""
    claimed = before.is_explicit and before.claim not in ("none", "unknown")
    if claimed and not any(map(str.isdigit, last.evidence)):
        return _reading(before, "previous")
    return ClaimReading("delivered", "last", last.evidence[:SHOWN], "a bare answer")


def _part(before: MessageReading, last: MessageReading, among: tuple[Claim, ...]) -> ClaimReading:
    """Two messages that say unlike things: of one wish and another, or of one and the same."""
    reason = f"the message before {before.reason}, the last one {last.reason}"
    return ClaimReading("unknown", "previous", before.evidence[:SHOWN], reason, among)


def _structured(found: Structured) -> MessageReading:
    if found.status is not None:
        return MessageReading(found.status, found.quote, "a status")
    text = found.text or ""
    if not found.is_answer:
        return read_message(text)
    if not text.strip():
        return MessageReading("none", found.quote, "an empty answer")
    if is_unknown_answer(text):
        return MessageReading("admits_failure", found.quote, "an answer that names none")
    # What an answer says was not done may be what was asked for: a doctor orders nothing.
    said = tuple(each for each in say(text) if each.kind != "undone")
    read = weigh(said)
    if read.claim in (*_NEGATIVE, "asks") and not {"done", "found"} & {s.kind for s in said}:
        return MessageReading(read.claim, read.evidence, "the answer says so")
    return MessageReading("delivered", found.quote, "a marked answer")
