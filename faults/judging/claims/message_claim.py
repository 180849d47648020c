"""Read the claim of one message from the kinds of its clauses."""

from collections.abc import Iterable
from copy import replace

from faults.judging.claims.clause_kinds import ClassifiedClause, ClauseKind, classify_clauses
from faults.judging.claims.polarity import is_about_speaker
from faults.judging.claims.types import Claim, MessageReading

_SILENT: tuple[ClauseKind, ...] = ("bye", "offer", "fragment")
"""Clauses that make no claim about the task."""
END_CLAUSES = 3
"""Number of last clauses in which a question counts as the end."""
MAX_REQUEST_CLAUSES = 8
"""Number of clauses up to which a request for input may stand anywhere in a message."""
_WAITING: frozenset[ClauseKind] = frozenset(
    ("ask", "question", "undone", "statement", "self", "found", "referral", "intent", "trouble")
)
_AGAINST: frozenset[ClauseKind] = frozenset(
    ("handover", "refuse", "undone", "fail", "hedge", "referral", "trouble")
)
_TOLD: frozenset[ClauseKind] = frozenset(("statement", "self", "found", "done"))
REPORT_SENTENCES = 4
"""Number of sentences from which one cue is not the claim of the message: a report has many."""
NO_CUE = "no cue"
NOT_ALL_DONE = "a report in which something is not done"
MIN_REPORT_CLAUSES = 6
START_CLAUSES = 3
"""Number of clauses at each end of a report that state its result."""
_STEPS: frozenset[ClauseKind] = frozenset(("statement", "self", "intent", "found"))


def read_free_text_claim(text: str) -> MessageReading:
    """Return the claim of a free text; `none` for courtesy only, `unknown` without a cue."""
    clauses = classify_clauses(text)
    if "```" in text and any(each.kind == "intent" for each in clauses[-END_CLAUSES + 1 :]):
        return MessageReading("none", clauses[-1].text, "code that is yet to be run")
    return weigh_clauses(clauses)


def weigh_clauses(said: tuple[ClassifiedClause, ...]) -> MessageReading:
    """Return the claim of the clauses; unknown for a delivery with a reservation next to it."""
    read = _weigh_kinds(said)
    doubt = _find_end_doubt(said) if read.claim == "delivered" else None
    if doubt is None:
        return read
    reason = f"{read.reason}, with a reservation"
    among: tuple[Claim, ...] = ("delivered", "partial")
    return replace(read, claim="unknown", evidence=doubt.text, reason=reason, among=among)


def _find_end_doubt(said: tuple[ClassifiedClause, ...]) -> ClassifiedClause | None:
    """Return a clause with a reservation among the first and last; None if there is none.

    Between them a report names the problem that it solved.
    """
    heard = [each for each in said if each.kind not in ("bye", "offer")]
    ends = heard[: START_CLAUSES - 1] + heard[START_CLAUSES - 1 :][-START_CLAUSES:]
    return next((each for each in ends if each.has_doubt), None)


def _weigh_kinds(said: tuple[ClassifiedClause, ...]) -> MessageReading:
    """Return the claim that the kinds of the clauses make together."""
    telling = [each for each in said if each.kind not in _SILENT]
    if not telling:
        return _read_silent_clauses(said)
    kinds = [each.kind for each in telling]
    if said[-1].is_cut and said[-1].kind not in _SILENT and set(kinds) <= _STEPS:
        return MessageReading("none", said[-1].text, "the text breaks off")
    if kinds[-1] in ("ask", "question"):
        return _read_closing_question(said, telling, kinds)
    asking = [each for each in telling if each.kind in ("ask", "question")]
    is_report = len(telling) > MAX_REQUEST_CLAUSES
    asking = [
        each
        for each in asking
        if each in telling[-END_CLAUSES:] or not (each.is_question or is_report)
    ]
    if asking and set(kinds) <= _WAITING:
        return MessageReading("asks", asking[0].text, "asks before anything is done")
    return _read_negative_clauses(telling, kinds) or _read_positive_clauses(telling, kinds)


def _read_silent_clauses(said: tuple[ClassifiedClause, ...]) -> MessageReading:
    fragment = next((each for each in said if each.kind == "fragment"), None)
    if fragment is None:
        return MessageReading("none", "", "nothing said", False)
    return MessageReading("unknown", fragment.text, "a fragment", False)


def _read_closing_question(
    said: tuple[ClassifiedClause, ...], heard: list[ClassifiedClause], kinds: list[ClauseKind]
) -> MessageReading:
    """Return the claim of a message that ends in a question.

    After a completed action, an offering question is courtesy; after a refusal, an offer to hand
    over is part of the refusal.
    """
    last = heard[-1]
    before = [each for each in heard if each.kind not in ("ask", "question")]
    if "done" in kinds and last.kind == "question":
        return _read_negative_clauses(before, kinds) or _read_positive_clauses(before, kinds)
    if last.offers_handover or (last.kind == "question" and _has_handover_offer(said)):
        claim: Claim = "partial" if "done" in kinds else "abstained"
        return MessageReading(claim, last.text, "offers to hand over")
    if {"refuse", "fail", "handover"} & set(kinds):
        among: tuple[Claim, ...] = ("asks", "abstained", "admits_failure")
        refuses = "refuse" in kinds
        return MessageReading("unknown", last.text, "fails, and asks", False, refuses, among)
    if last.kind == "question" and {"found", "statement"} & set(kinds):
        return MessageReading("unknown", last.text, "says something, and offers more", False,
                              among=("asks", "delivered"))  # fmt: skip
    if {"done", *_AGAINST} & set(kinds) and _is_minor_part([*kinds, "trouble"]):
        return MessageReading("unknown", last.text, "a report that ends with a question", False,
                              among=("asks", "delivered"))  # fmt: skip
    if not last.is_question and any(each.has_doubt for each in before):
        return MessageReading("unknown", last.text, "a question after a reservation", False,
                              among=("asks", "abstained", "admits_failure"))  # fmt: skip
    return MessageReading("asks", last.text, "ends with a question")


def _has_handover_offer(said: tuple[ClassifiedClause, ...]) -> bool:
    """Return whether the last question refers to the offer to hand over before it."""
    return len(said) > 1 and any(each.offers_handover for each in said[-3:])


def _find_first_of_kind(
    heard: Iterable[ClassifiedClause], *kinds: ClauseKind
) -> ClassifiedClause | None:
    return next((each for each in heard if each.kind in kinds), None)


def _read_negative_clauses(
    heard: list[ClassifiedClause], kinds: list[ClauseKind]
) -> MessageReading | None:
    """Return the claim of a message that hands over, refuses, or names undone work; else None."""
    if (part := _find_first_of_kind(heard, "partial")) is not None:
        return MessageReading("partial", part.text, "says that a part is done")
    if (agreed := _read_report_ends(heard)) is not None:
        return agreed
    for among, alone, reason in _NEGATIVE:
        match = _find_first_of_kind(heard, *among)
        if match is None:
            continue
        if "done" in kinds:
            return _read_mixed_clauses(heard, kinds, among)
        if "handover" not in among and _is_minor_part(kinds):
            possible: tuple[Claim, ...] = ("delivered", "partial", alone, "admits_failure")
            return MessageReading("unknown", match.text, NOT_ALL_DONE,
                                  among=tuple(dict.fromkeys(possible)))  # fmt: skip
        if alone == "admits_failure" and "referral" in kinds:
            return MessageReading("unknown", match.text, "fails, and sends elsewhere",
                                  among=("abstained", "admits_failure"))  # fmt: skip
        if alone == "admits_failure" and match.kind == "undone" and _has_cautious_clause(heard):
            return MessageReading("abstained", match.text, "holds back out of caution")
        if alone == "abstained" and match.is_unable and not any(each.is_ruled for each in heard):
            return MessageReading("unknown", match.text, "is not able to, without a reason",
                                  refuses=True, among=_UNABLE)  # fmt: skip
        return MessageReading(alone, match.text, reason)
    return None


def _read_report_ends(heard: list[ClassifiedClause]) -> MessageReading | None:
    """Return `delivered` for a report that ends so, and does not begin with a failure; else None.

    A report states its result at the start or at the end. What went wrong between them is the
    problem that it solved, or a step on the way; trouble at the start is the task.
    """
    if len(heard) < MIN_REPORT_CLAUSES:
        return None
    start, end = heard[:START_CLAUSES], heard[-START_CLAUSES:]
    denies = any(each.kind in _AGAINST for each in end)
    denies |= any(each.kind in _AGAINST - {"trouble"} for each in start)
    last = _find_first_of_kind(end, "done")
    if denies or last is None:
        return None
    return MessageReading("delivered", last.text, "a report that ends with what is done")


def _is_minor_part(kinds: list[ClauseKind]) -> bool:
    """Return whether the negative clauses are a small part of the report."""
    against, positive = (sum(kind in group for kind in kinds) for group in (_AGAINST, _TOLD))
    return positive >= REPORT_SENTENCES and positive > 2 * against


def _has_cautious_clause(heard: list[ClassifiedClause]) -> bool:
    return any(each.is_cautious for each in heard)


_UNABLE: tuple[Claim, ...] = ("partial", "abstained", "asks", "admits_failure")
_NEGATIVE: tuple[tuple[tuple[ClauseKind, ...], Claim, str], ...] = (
    (("handover",), "abstained", "hands over"),
    (("refuse",), "abstained", "refuses"),
    (("undone", "fail"), "admits_failure", "says what is not done"),
)


def _read_mixed_clauses(
    heard: list[ClassifiedClause], kinds: list[ClauseKind], among: tuple[ClauseKind, ...]
) -> MessageReading:
    """Some work is done and some is not: partial, unless the done work came afterwards.

    Later work may fulfil another request, or the same one in another way.
    """
    last_done = len(kinds) - 1 - kinds[::-1].index("done")
    after = next((each for each in heard[last_done:] if each.kind in among), None)
    if after is not None and _is_minor_part(kinds):
        return MessageReading("unknown", after.text, NOT_ALL_DONE,
                              among=("delivered", "partial", "admits_failure"))  # fmt: skip
    if after is not None and _is_remark(after, heard):
        return MessageReading("unknown", after.text, "names what is not so, beside what is done",
                              among=("delivered", "partial"))  # fmt: skip
    if after is not None:
        return MessageReading("partial", after.text, "says what is not done beside what is")
    return MessageReading("unknown", heard[last_done].text, "done, after something was not",
                          among=("delivered", "partial"))  # fmt: skip


def _is_remark(undone: ClassifiedClause, heard: list[ClassifiedClause]) -> bool:
    """Return whether a clause on undone work may describe the result: `no bag was added`.

    It is a gap if its speaker names it as its own, or contrasts it with what is done.
    """
    contrasted = any(each.kind == "done" and each.text == undone.text for each in heard)
    return undone.kind == "undone" and not contrasted and not is_about_speaker(undone.text)


def _read_hedged_clause(hedge: ClassifiedClause, *, answers: bool) -> MessageReading:
    if answers:
        among: tuple[Claim, ...] = ("delivered", "partial", "admits_failure")
        return MessageReading("unknown", hedge.text, "an answer with a caveat", among=among)
    return MessageReading("admits_failure", hedge.text, "says what could not be verified")


def _read_trouble_clause(found: ClassifiedClause, kinds: list[ClauseKind]) -> MessageReading:
    """Trouble is named, and nothing else is claimed."""
    if _is_minor_part(kinds):
        return MessageReading("unknown", found.text, "a report that names trouble", False,
                              among=("delivered", "partial", "asks", "admits_failure"))  # fmt: skip
    return MessageReading("admits_failure", found.text, "trouble", False)


def _begins_with_trouble(heard: list[ClassifiedClause]) -> bool:
    """Return whether a report begins with trouble, and does not end with what is done."""
    starts = any(each.kind == "trouble" for each in heard[: START_CLAUSES - 1])
    ends = any(each.kind == "done" for each in heard[-START_CLAUSES:])
    return len(heard) >= MIN_REPORT_CLAUSES and starts and not ends


def _read_positive_clauses(
    heard: list[ClassifiedClause], kinds: list[ClauseKind]
) -> MessageReading:
    """Return the claim of a message without a failure, a refusal or a hand-over."""
    hedge = _find_first_of_kind(heard, "hedge")
    if hedge is not None and "done" not in kinds:
        answers = bool({"found", "statement", "self"} & set(kinds))
        return _read_hedged_clause(hedge, answers=answers)
    if match := _find_first_of_kind(heard, "done"):
        if _begins_with_trouble(heard):
            return MessageReading("unknown", heard[0].text, "trouble first, then something done",
                                  among=("delivered", "partial", "admits_failure"))  # fmt: skip
        return MessageReading("delivered", match.text, "says that it is done")
    if match := _find_first_of_kind(heard, "referral"):
        return MessageReading("abstained", match.text, "somebody else is to do it")
    last = heard[-1]
    if last.kind == "intent":
        return MessageReading("none", last.text, "says what comes next")
    if match := _find_first_of_kind(heard, "trouble"):
        return _read_trouble_clause(match, kinds)
    if match := _find_first_of_kind(heard, "found"):
        return MessageReading("delivered", match.text, "says what was found", False)
    if match := _find_first_of_kind(heard, "ask", "question"):
        return MessageReading("asks", match.text, "asks", False)
    stated = [each for each in heard if each.kind == "statement"]
    answers = any(each.holds_value for each in stated)
    if last.kind == "statement" and answers and 2 * kinds.count("self") <= len(kinds):
        return MessageReading("delivered", last.text, "states an answer", False)
    foreign = any(each.kind == "foreign" for each in heard)
    return MessageReading(
        "unknown", last.text, "no language with cues" if foreign else NO_CUE, False
    )
