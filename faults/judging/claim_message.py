"""The claim of one message, from what each of its clauses does."""

from collections.abc import Iterable

from faults.judging.claim_types import Claim, MessageReading
from faults.judging.claim_words import Kind, Said, say

_SILENT: tuple[Kind, ...] = ("bye", "offer", "fragment")
"""Clauses that claim nothing of the task."""
NEAR = 3
"""Clauses from the end within which a question is the end."""
_WAITING: frozenset[Kind] = frozenset(
    ("ask", "question", "undone", "statement", "self", "found", "referral", "intent", "trouble")
)
_STEPS: frozenset[Kind] = frozenset(("statement", "self", "intent", "found"))


def read_message(text: str) -> MessageReading:
    """The claim of a free text; `none` if it is only courtesy, `unknown` if nothing tells."""
    said = say(text)
    if "```" in text and any(each.kind == "intent" for each in said[-NEAR + 1 :]):
        return MessageReading("none", said[-1].text, "code that is yet to be run")
    return weigh(said)


def weigh(said: tuple[Said, ...]) -> MessageReading:
    """The claim that the clauses of a message make together."""
    heard = [each for each in said if each.kind not in _SILENT]
    if not heard:
        return _unsaid(said)
    kinds = [each.kind for each in heard]
    if said[-1].is_cut and set(kinds) <= _STEPS:
        return MessageReading("none", said[-1].text, "the text breaks off")
    if kinds[-1] in ("ask", "question"):
        return _asking(said, heard, kinds)
    asking = [each for each in heard if each.kind in ("ask", "question")]
    asking = [each for each in asking if not each.is_question or each in heard[-NEAR:]]
    if asking and set(kinds) <= _WAITING:
        return MessageReading("asks", asking[0].text, "asks before anything is done")
    return _negative(heard, kinds) or _positive(heard, kinds)


def _unsaid(said: tuple[Said, ...]) -> MessageReading:
    fragment = next((each for each in said if each.kind == "fragment"), None)
    if fragment is None:
        return MessageReading("none", "", "nothing said", False)
    return MessageReading("unknown", fragment.text, "a fragment", False)


def _asking(said: tuple[Said, ...], heard: list[Said], kinds: list[Kind]) -> MessageReading:
    """The claim of a message that ends in a question.

    After something was done, an offering question is courtesy; after a refusal, an offer to hand
    over is part of it.
    """
    last = heard[-1]
    before = [each for each in heard if each.kind not in ("ask", "question")]
    if "done" in kinds and last.kind == "question":
        return _negative(before, kinds) or _positive(before, kinds)
    if last.offers_handover or (last.kind == "question" and _offers(said)):
        claim: Claim = "partial" if "done" in kinds else "abstained"
        return MessageReading(claim, last.text, "offers to hand over")
    if {"refuse", "fail", "handover"} & set(kinds):
        among: tuple[Claim, ...] = ("asks", "abstained", "admits_failure")
        refuses = "refuse" in kinds
        return MessageReading("unknown", last.text, "fails, and asks", False, refuses, among)
    if last.kind == "question" and {"found", "statement"} & set(kinds):
        return MessageReading("unknown", last.text, "says something, and offers more", False,
                              among=("asks", "delivered"))  # fmt: skip
    return MessageReading("asks", last.text, "ends with a question")


def _offers(said: tuple[Said, ...]) -> bool:
    """Whether the last question is about the offer to hand over before it."""
    return len(said) > 1 and any(each.offers_handover for each in said[-3:])


def _first(heard: Iterable[Said], *kinds: Kind) -> Said | None:
    return next((each for each in heard if each.kind in kinds), None)


def _negative(heard: list[Said], kinds: list[Kind]) -> MessageReading | None:
    """The claim of a message that hands over, refuses, or says what is not done; or None."""
    if (part := _first(heard, "partial")) is not None:
        return MessageReading("partial", part.text, "says that a part is done")
    for among, alone, reason in _NEGATIVE:
        found = _first(heard, *among)
        if found is None:
            continue
        if "done" in kinds:
            return _mixed(heard, kinds, among)
        if alone == "admits_failure" and "referral" in kinds:
            return MessageReading("unknown", found.text, "fails, and sends elsewhere",
                                  among=("abstained", "admits_failure"))  # fmt: skip
        if alone == "admits_failure" and found.kind == "undone" and _is_cautious(heard):
            return MessageReading("abstained", found.text, "holds back out of caution")
        return MessageReading(alone, found.text, reason)
    return None


def _is_cautious(heard: list[Said]) -> bool:
    return any(each.is_cautious for each in heard)


_NEGATIVE: tuple[tuple[tuple[Kind, ...], Claim, str], ...] = (
    (("handover",), "abstained", "hands over"),
    (("refuse",), "abstained", "refuses"),
    (("undone", "fail"), "admits_failure", "says what is not done"),
)


def _mixed(heard: list[Said], kinds: list[Kind], among: tuple[Kind, ...]) -> MessageReading:
    """Something is done and something is not: partial, unless what was done came afterwards.

    What comes afterwards may be another wish that was fulfilled, or the same one in another way.
    """
    last_done = len(kinds) - 1 - kinds[::-1].index("done")
    after = next((each for each in heard[last_done:] if each.kind in among), None)
    if after is not None:
        return MessageReading("partial", after.text, "says what is not done beside what is")
    return MessageReading("unknown", heard[last_done].text, "done, after something was not",
                          among=("delivered", "partial"))  # fmt: skip


def _hedged(hedge: Said, *, answers: bool) -> MessageReading:
    if answers:
        among: tuple[Claim, ...] = ("delivered", "partial", "admits_failure")
        return MessageReading("unknown", hedge.text, "an answer with a caveat", among=among)
    return MessageReading("admits_failure", hedge.text, "says what could not be verified")


def _positive(heard: list[Said], kinds: list[Kind]) -> MessageReading:
    """The claim of a message that says nothing of a failure, a refusal or a hand-over."""
    hedge = _first(heard, "hedge")
    if hedge is not None and "done" not in kinds:
        answers = bool({"found", "statement", "self"} & set(kinds))
        return _hedged(hedge, answers=answers)
    if found := _first(heard, "done"):
        return MessageReading("delivered", found.text, "says that it is done")
    if found := _first(heard, "referral"):
        return MessageReading("abstained", found.text, "somebody else is to do it")
    if found := _first(heard, "trouble"):
        return MessageReading("admits_failure", found.text, "trouble")
    last = heard[-1]
    if last.kind == "intent":
        return MessageReading("none", last.text, "says what comes next")
    if found := _first(heard, "found"):
        return MessageReading("delivered", found.text, "says what was found", False)
    if found := _first(heard, "ask", "question"):
        return MessageReading("asks", found.text, "asks", False)
    stated = [each for each in heard if each.kind == "statement"]
    answers = any(each.holds_value for each in stated)
    if last.kind == "statement" and answers and 2 * kinds.count("self") <= len(kinds):
        return MessageReading("delivered", last.text, "states an answer", False)
    return MessageReading("unknown", last.text, "no cue", False)
