"""Read what an agent claims of its own result, from the end of one run.

The facts are checked in this order: how the run ended; a structured final (a call that submits,
JSON with a status, a marked answer); a question or a hand-over; then words, clause by clause.
Whether a claim is true is not checked here. A claim that cannot be read is `unknown`.
"""

import re
from collections.abc import Mapping
from copy import replace
from typing import Literal

from faults.judging.claims.clause_kinds import (
    ClassifiedClause,
    classify_clauses,
    detect_languages,
    is_unknown_answer,
    load_languages,
)
from faults.judging.claims.final_turns import FinalToolCall, FinalTurns
from faults.judging.claims.message_claim import NO_CUE, read_free_text_claim, weigh_clauses
from faults.judging.claims.polarity import is_about_speaker
from faults.judging.claims.sentences import fold_text, strip_program_text
from faults.judging.claims.structured_claim import (
    StructuredFinal,
    has_final_action,
    has_submit_command,
    has_tagged_action,
    read_structured_call,
    read_structured_text,
)
from faults.judging.claims.types import (
    MAX_EVIDENCE_CHARS,
    Claim,
    ClaimReading,
    MessageReading,
    ReadingBasis,
)

MAX_RESULT_CHARS = 600
"""Characters of a tool's result that are searched for an error."""
_ERROR = re.compile(
    r"(?i)^\W*(?:\w+ )?(?:error|exception|traceback|fail(?:ed|ure)|http [45]\d\d)\b|timed? ?out|"
    r"\bnot found\b|is_?error\W+true|\berror\W{1,4}[\w{]|success\W+false|exit_?code\W+[1-9]"
)
_STACK = re.compile(r"(?m)Traceback \(most recent call last\)|^\s+at [\w.$<>]+ ?\(")
_BROKEN = ("crash", "infra", "limit", "budget", "timeout", "max_", "harness", "diverged",
           "replay_miss", "killed", "exceeded", "error", "cost", "context",
           "autosubmit")  # fmt: skip
_SUBMITTED = ("submit", "finish")
_TRANSFERRED = ("transfer", "hand", "escalat")
_END_REASONS: Mapping[str, tuple[str, ...]] = {
    "broken": _BROKEN, "submitted": _SUBMITTED, "transferred": _TRANSFERRED
}  # fmt: skip
HANDS_OVER = "the last call hands over"
DONE_THEN_HANDED_OVER = "done, then handed over"
CALL_AGAINST_WORDS = "the last call and the words disagree"
_NEGATIVE = ("abstained", "admits_failure")
_RESERVED = ("partial", "refuse", "hedge", "undone", "fail", "trouble")
"""Kinds of clauses by which a speaker qualifies its own answer."""


def read_claim(final: FinalTurns) -> ClaimReading:
    """Return what the agent claims of its own result; never raises."""
    read = _read_last_turns(final)
    if read.claim in ("delivered", "unknown") and _is_error_trace(final):
        among_ends: tuple[Claim, ...] = ("admits_failure", "none")
        return replace(read, claim="unknown", among=among_ends, reason="a stack trace")
    if read.claim != "delivered" or read.is_explicit:
        return read
    among: tuple[Claim, ...] = ("delivered", "partial", "admits_failure")
    if read.basis == "previous":
        return replace(read, claim="unknown", among=among, reason=f"{read.reason}, then a farewell")
    if _is_after_error(final):
        return replace(read, claim="unknown", among=among, reason=f"{read.reason}, after an error")
    return read


def _read_last_turns(final: FinalTurns) -> ClaimReading:
    messages = tuple(map(strip_program_text, final.messages[-2:])) or ("",)
    broken, last = has_end_reason(final, "broken"), read_message_claim(messages[-1])
    call = read_structured_call(final.tools[-1]) if final.tools else None
    if call is not None and call.status in ("admits_failure", "partial") and not call.hands_over:
        return _read_stated_status(call, last)
    if has_submit_command(messages[-1]) or (
        has_end_reason(final, "submitted")
        and not broken
        and last.claim in ("unknown", "none", "delivered")
    ):
        has_claim = last.claim == "delivered" or last.among
        return _to_claim_reading(last, "structure") if has_claim else _read_submission(final)
    acts = has_final_action(messages[-1]) and last.claim != "delivered" and call is None
    is_vague = last.claim == "unknown" or not last.is_explicit
    repeats_call = call is None and is_vague and _is_last_call(final)
    if acts or repeats_call or has_tagged_action(messages[-1]):
        return ClaimReading("none", "last", messages[-1][-MAX_EVIDENCE_CHARS:], "ends in an action")
    if (
        call is not None
        and call.hands_over
        and not (
            last.claim == "delivered"
            and last.is_explicit
            and not has_end_reason(final, "transferred")
        )
    ):
        return _read_handover(call, messages)
    is_quiet = last.reason == NO_CUE and not broken and not is_repeated_message(messages)
    if is_quiet and _is_after_success(final, messages[-1]):
        return ClaimReading("delivered", "tool", final.tools[-1].call[:MAX_EVIDENCE_CHARS],
                            "nothing against it, after a call that succeeded")  # fmt: skip
    is_final = last.claim != "none" or is_repeated_message(messages)
    if is_final and not (broken and not last.is_explicit):
        return _combine_messages(last, messages)
    if broken:
        return ClaimReading("none", "end", final.ended or "", "the run ended without a final")
    if call is not None:
        return _to_claim_reading(_read_structured_final(call), "tool")
    if final.open_call:
        open_call = final.tools[-1].call[:MAX_EVIDENCE_CHARS] if final.tools else ""
        return ClaimReading("none", "end", open_call, "the run ends in an open tool call")
    if last.reason == "nothing said" and len(messages) > 1:
        return _to_claim_reading(read_message_claim(messages[0]), "previous")
    return _to_claim_reading(last, "last")


def _is_error_trace(final: FinalTurns) -> bool:
    """Return whether the last message begins as an error and holds its stack."""
    last = final.messages[-1] if final.messages else ""
    return _ERROR.match(last) is not None and _STACK.search(last) is not None


def _is_last_call(final: FinalTurns) -> bool:
    """Return whether the last message is nothing but the last call: a command is a step."""
    message = final.messages[-1].strip() if final.messages else ""
    return bool(message and final.tools) and message == final.tools[-1].call.strip()


def _is_after_success(final: FinalTurns, text: str) -> bool:
    """Return whether the last call succeeded, and the text is in English.

    The cues of the other languages are too few for their absence to be evidence.
    """
    last = final.tools[-1] if final.tools else None
    if last is None or not (last.result or "").strip() or final.open_call:
        return False
    languages = detect_languages(fold_text(text))
    return languages[:1] == load_languages()[:1] and not _is_after_error(final)


def _is_after_error(final: FinalTurns) -> bool:
    """Return whether the result of the last call is an error."""
    return bool(final.tools) and is_error_result(final.tools[-1])


def is_error_result(tool: FinalToolCall) -> bool:
    """Return whether the result of a call is an error."""
    return bool(tool.is_error or _ERROR.search((tool.result or "")[:MAX_RESULT_CHARS]))


def _read_stated_status(call: StructuredFinal, last: MessageReading) -> ClaimReading:
    """Return the status in the last call, unless the last message contradicts it."""
    if last.claim == "delivered" and last.is_explicit:
        return ClaimReading("unknown", "tool", call.quote, CALL_AGAINST_WORDS)
    return _to_claim_reading(_read_structured_final(call), "tool")


def read_message_claim(text: str) -> MessageReading:
    """Return the claim of one message, by its structure if it has one, else by its words."""
    structured = read_structured_text(text)
    return read_free_text_claim(text) if structured is None else _read_structured_final(structured)


def has_end_reason(
    final: FinalTurns, reason: Literal["broken", "submitted", "transferred"]
) -> bool:
    """Return whether the recorder of the run names an end of this kind."""
    ended = (final.ended or "").casefold()
    return any(word in ended for word in _END_REASONS[reason])


def _read_handover(call: StructuredFinal, messages: tuple[str, ...]) -> ClaimReading:
    """Read a run whose last call hands over: partial if the agent reported results before."""
    for text in messages:
        read = read_message_claim(text)
        if read.claim in ("delivered", "partial") and read.is_explicit:
            return ClaimReading("unknown", "tool", read.evidence[:MAX_EVIDENCE_CHARS],
                                DONE_THEN_HANDED_OVER, ("partial", "abstained"))  # fmt: skip
    return ClaimReading("abstained", "tool", call.quote, HANDS_OVER)


def _to_claim_reading(read: MessageReading, basis: ReadingBasis) -> ClaimReading:
    return ClaimReading(
        read.claim, basis, read.evidence[:MAX_EVIDENCE_CHARS], read.reason, read.among,
        is_explicit=read.is_explicit,
    )  # fmt: skip


def _read_submission(final: FinalTurns) -> ClaimReading:
    """Return `delivered` for a submission, unless the words next to it have a reservation."""
    evidence = final.messages[-1] if final.messages else final.ended or ""
    doubt = next((each for each in classify_clauses(evidence) if each.has_doubt), None)
    if doubt is not None:
        return ClaimReading("unknown", "structure", doubt.text[:MAX_EVIDENCE_CHARS],
                            "a submission with a reservation",
                            ("delivered", "partial", "admits_failure"))  # fmt: skip
    return ClaimReading("delivered", "structure", evidence[-MAX_EVIDENCE_CHARS:], "a submission")


def _combine_messages(last: MessageReading, messages: tuple[str, ...]) -> ClaimReading:
    """Return the last message's claim; partial if one request was fulfilled and another refused."""
    before = (
        read_message_claim(messages[0])
        if len(messages) > 1
        else MessageReading("none", "", "absent")
    )
    if last.claim in ("unknown", "none") and is_repeated_message(messages):
        return _to_claim_reading(before, "previous")
    if last.reason == "a fragment":
        return _read_bare_answer(last, before)
    if last.claim == "delivered":
        among: tuple[Claim, ...] = ("delivered", "partial")
        denied = before.claim in _NEGATIVE and not last.is_explicit
        return (
            _read_unlike_messages(before, last, among)
            if before.refuses or denied
            else _to_claim_reading(last, "last")
        )
    if last.claim not in _NEGATIVE:
        return _to_claim_reading(last, "last")
    done = before.claim in ("delivered", "partial") and before.is_explicit
    return (
        _read_unlike_messages(before, last, ("partial", last.claim))
        if done
        else _to_claim_reading(last, "last")
    )


def is_repeated_message(messages: tuple[str, ...]) -> bool:
    """Return whether the last message only repeats words of the one before it."""
    last = " ".join(messages[-1].split())
    return len(messages) > 1 and bool(last) and last in " ".join(messages[0].split())


def _read_bare_answer(last: MessageReading, before: MessageReading) -> ClaimReading:
    """Read a few words without a cue: an answer, or a title after the message with the claim."""
    claimed = before.is_explicit and before.claim not in ("none", "unknown")
    if claimed and not any(map(str.isdigit, last.evidence)):
        return _to_claim_reading(before, "previous")
    return ClaimReading("delivered", "last", last.evidence[:MAX_EVIDENCE_CHARS], "a bare answer")


def _read_unlike_messages(
    before: MessageReading, last: MessageReading, among: tuple[Claim, ...]
) -> ClaimReading:
    """Two messages with different claims: of different requests, or of the same."""
    reason = f"the message before {before.reason}, the last one {last.reason}"
    return ClaimReading("unknown", "previous", before.evidence[:MAX_EVIDENCE_CHARS], reason, among)


def _reconcile_status(status: Claim, words: MessageReading, quote: str) -> MessageReading:
    """Return a status, unless the words next to it deny it: forms are filled by habit."""
    claims = words.among or (words.claim,)
    denied = words.is_explicit or words.among
    if status == "delivered" and words.among and "partial" in words.among:
        return MessageReading("unknown", words.evidence, "a status, and words that limit it", False,
                              among=words.among)  # fmt: skip
    if status == "delivered" and denied and not {"delivered", "none", "unknown"} & set(claims):
        return MessageReading("unknown", words.evidence, "a status, and words that deny it", False,
                              among=("delivered", *claims))  # fmt: skip
    return MessageReading(status, quote, "a status")


def _read_submitted_text(found: StructuredFinal, words: MessageReading) -> MessageReading:
    """Return the claim of words; a submission without a cue in its words is one of success."""
    if found.submits and words.claim == "unknown" and not words.among:
        return MessageReading("delivered", found.quote, "a submission", is_explicit=False)
    return words


def _read_negative_answer(read: MessageReading) -> MessageReading:
    """Return the claim of an answer that denies something: a fact, unless it is of its speaker."""
    if read.claim == "admits_failure" and not is_about_speaker(read.evidence):
        among: tuple[Claim, ...] = ("delivered", "admits_failure")
        return MessageReading("unknown", read.evidence, "an answer that denies", among=among)
    return MessageReading(read.claim, read.evidence, "the answer says so")


def _find_own_reservation(clauses: tuple[ClassifiedClause, ...]) -> ClassifiedClause | None:
    """Return a clause in which the speaker of a marked answer names trouble; None without one.

    What is denied of other things may be the answer. An answer that tells only of its speaker, and
    names no value, is none.
    """
    told = [each for each in clauses if each.kind not in ("bye", "offer", "fragment")]
    has_content = any(each.holds_value or each.kind in ("done", "found") for each in told)
    if told and not has_content and is_about_speaker(told[0].text):
        return told[0]
    return next(
        (
            each
            for each in clauses
            if (each.has_doubt or each.kind in _RESERVED) and is_about_speaker(each.text)
        ),
        None,
    )


def _begins_with_failure(clauses: tuple[ClassifiedClause, ...]) -> bool:
    return len(clauses) > 1 and clauses[0].kind in ("fail", "refuse")


def _read_structured_final(found: StructuredFinal) -> MessageReading:
    text = found.text or ""
    if found.status is not None:
        return _reconcile_status(found.status, read_free_text_claim(text), found.quote)
    if not found.is_answer:
        return _read_submitted_text(found, read_free_text_claim(text))
    if not text.strip():
        return MessageReading("none", found.quote, "an empty answer")
    if is_unknown_answer(text):
        return MessageReading("admits_failure", found.quote, "an answer that names none")
    # An answer that names an undone action may be the correct one: a doctor orders nothing.
    clauses = tuple(each for each in classify_clauses(text) if each.kind != "undone")
    read = weigh_clauses(clauses)
    if (read.among and "delivered" not in read.among) or _begins_with_failure(clauses):
        among = read.among or ("partial", "admits_failure")
        return MessageReading("unknown", read.evidence, "an answer that fails first", among=among)
    if read.claim == "asks" and clauses[-1].kind not in ("ask", "question", "offer", "bye"):
        return MessageReading("delivered", found.quote, "a marked answer", is_explicit=False)
    if read.claim in (*_NEGATIVE, "asks") and not {"done", "found"} & {s.kind for s in clauses}:
        return _read_negative_answer(read)
    if (own := _find_own_reservation(clauses)) is not None:
        among = ("delivered", "partial", "admits_failure")
        return MessageReading("unknown", own.text, "an answer with a reservation", among=among)
    return MessageReading("delivered", found.quote, "a marked answer", not found.is_data)
