"""What an agent claims of its own result, read from the end of one run.

The facts are asked in this order: how the run ended; a final with a form (a call that submits,
JSON with a status, a marked answer); a question or a hand-over; then words, clause by clause. A
claim says nothing of whether it is true. What cannot be told is `unknown`.
"""

from dataclasses import dataclass
from typing import Literal

from faults.judging.claim_structure import Structured, structured_call, structured_text
from faults.judging.claim_words import Said, is_unknown_answer, say
from faults.judging.final_turns import FinalTurns

type Claim = Literal[
    "delivered", "partial", "abstained", "asks", "admits_failure", "none", "unknown"
]
type Basis = Literal["last", "previous", "tool", "structure", "end"]

CLAIMS: tuple[Claim, ...] = (
    "delivered", "partial", "abstained", "asks", "admits_failure", "none", "unknown"
)  # fmt: skip
_BROKEN = ("crash", "infra", "limit", "budget", "timeout", "max_", "harness", "diverged",
           "replay_miss", "killed", "exceeded", "error")  # fmt: skip
_NEGATIVE = ("undone", "fail", "refuse", "handover")


@dataclass(frozen=True, slots=True)
class ClaimReading:
    """A claim, which part of the run it was read from, the words that carry it, and the rule."""

    claim: Claim
    basis: Basis
    evidence: str
    reason: str


def read_claim(final: FinalTurns) -> ClaimReading:
    """What the agent says of its own result: delivered, and all that is not; never raises."""
    last = _read(final.messages[-1], "last") if final.messages else None
    if last is not None and last.claim != "none":
        return last
    if broken := _broken(final):
        return broken
    call = structured_call(final.tools[-1]) if final.tools else None
    if call is not None:
        return _structured(call, "tool")
    if final.open_call:
        return ClaimReading("none", "end", final.tools[-1].call[:200] if final.tools else "",
                            "the run ends in an open tool call")  # fmt: skip
    before = _read(final.messages[-2], "previous") if len(final.messages) > 1 else None
    if before is not None and (last is None or last.reason == "nothing said"):
        return before
    return last or ClaimReading("none", "end", "", "no message")


def _broken(final: FinalTurns) -> ClaimReading | None:
    ended = (final.ended or "").casefold()
    if any(word in ended for word in _BROKEN):
        return ClaimReading("none", "end", final.ended or "", "the run ended without a final")
    return None


def _read(text: str, basis: Basis) -> ClaimReading:
    found = structured_text(text)
    if found is not None:
        return _structured(found, "structure" if basis == "last" else basis)
    claim, evidence, reason = _weigh(say(text))
    return ClaimReading(claim, basis, evidence[:300], reason)


def _structured(found: Structured, basis: Basis) -> ClaimReading:
    if found.status is not None:
        return ClaimReading(found.status, basis, found.quote, "a status")
    text = found.text or ""
    if not text.strip():
        return ClaimReading("none", basis, found.quote, "an empty answer")
    if is_unknown_answer(text):
        return ClaimReading("admits_failure", basis, found.quote, "an answer that names none")
    said = say(text)
    claim, evidence, _ = _weigh(said)
    if claim in ("admits_failure", "abstained", "asks") and said[0].kind != "done":
        return ClaimReading(claim, basis, evidence, "the answer says so")
    return ClaimReading("delivered", basis, found.quote, "a marked answer")


def _weigh(said: tuple[Said, ...]) -> tuple[Claim, str, str]:
    """The claim of one message, its evidence and the rule."""
    heard = [each for each in said if each.kind not in ("bye", "offer", "fragment")]
    kinds = [each.kind for each in heard]
    first = {kind: heard[kinds.index(kind)].text for kind in set(kinds)}
    if not heard:
        fragment = next((each for each in said if each.kind == "fragment"), None)
        return ("unknown" if fragment else "none", fragment.text if fragment else "",
                "a fragment" if fragment else "nothing said")  # fmt: skip
    done = "done" in kinds
    if kinds[-1] == "ask" and not (done and kinds.index("done") == len(kinds) - 2):
        return "asks", heard[-1].text, "ends with a question"
    if "ask" in kinds and not {"done", "fail", "refuse", "handover"} & set(kinds):
        return "asks", first["ask"], "asks before anything is done"
    if "handover" in kinds:
        return "partial" if done else "abstained", first["handover"], "hands over"
    if "refuse" in kinds:
        return "partial" if done else "abstained", first["refuse"], "refuses"
    negative = next((each for each in heard if each.kind in ("undone", "fail")), None)
    if negative is not None:
        return "partial" if done else "admits_failure", negative.text, "says what is not done"
    if "partial" in kinds:
        return "partial", first["partial"], "says that a part is done"
    if kinds[-1] == "intent" and not done:
        return "none", heard[-1].text, "says what comes next"
    if done:
        return "delivered", first["done"], "says that it is done"
    if "ask" in kinds:
        return "asks", first["ask"], "asks"
    if kinds[-1] == "statement":
        return "delivered", heard[-1].text, "states an answer"
    return "unknown", heard[-1].text, "no cue"
