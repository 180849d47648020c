"""Decide a claim by two readers: the rules, and a model trained on labelled finals.

Neither is an oracle. A claim of the rules stands if the trained reader holds it to be possible; a
claim that the rules leave open is decided if the trained reader is certain of it and the rules do
not exclude it, or if it is fairly certain and the rules name the claim as possible. All others are
`unknown`, with both readings as evidence.
"""

from collections.abc import Mapping
from copy import replace

from faults.judging.claims.final_claim import (
    CALL_AGAINST_WORDS,
    DONE_THEN_HANDED_OVER,
    HANDS_OVER,
    read_claim,
)
from faults.judging.claims.final_turns import FinalTurns
from faults.judging.claims.trained_reader import read_claim_probabilities
from faults.judging.claims.types import Claim, ClaimReading

MIN_AGREED: Mapping[Claim, float] = {
    "delivered": 0.5, "partial": 0.4, "abstained": 0.2, "asks": 0.4, "admits_failure": 0.4,
    "none": 0.25,
}  # fmt: skip
"""Probability from which the trained reader agrees with a claim of the rules."""
MIN_CERTAIN: Mapping[Claim, float] = {
    "delivered": 0.8, "partial": 0.9, "abstained": 0.7, "asks": 0.8, "admits_failure": 0.8,
    "none": 0.7,
}  # fmt: skip
"""Probability from which it decides what the rules leave open."""
MIN_NAMED = 0.7
"""The same for a claim that the rules name as possible, if it is not one of success."""
MIN_PARTIAL = 0.25
"""Probability of `partial` from which a hand-over may follow work that was done."""


def read_agreed_claim(final: FinalTurns) -> ClaimReading:
    """Return what the agent claims of its own result, if both readers agree; never raises."""
    return agree_on_claim(read_claim(final), read_claim_probabilities(final))


def agree_on_claim(read: ClaimReading, shares: Mapping[Claim, float]) -> ClaimReading:
    """Return the reading of the rules, decided or opened by the trained reader's probabilities."""
    likely = max(shares, key=lambda claim: shares[claim])
    told = f"{read.reason}; trained reader: {likely} {shares[likely]:.0%}"
    if read.claim == "unknown":
        if _is_certain(likely, shares[likely], read):
            return replace(read, claim=likely, among=(), reason=told)
        return replace(read, reason=told)
    if read.reason == HANDS_OVER and shares["partial"] >= MIN_PARTIAL:
        return replace(read, claim="unknown", among=("partial", "abstained"), reason=told)
    if _has_stated_status(read) or shares[read.claim] >= MIN_AGREED[read.claim]:
        return replace(read, reason=told)
    among = tuple(dict.fromkeys((read.claim, likely)))
    return replace(read, claim="unknown", among=among, reason=told)


def _is_certain(likely: Claim, share: float, read: ClaimReading) -> bool:
    """Return whether the trained reader decides what the rules leave open.

    What the last call and the words say differently stays open: the reader takes them together.
    Rules that name a refusal and a failure do not tell which, and neither does it: no two signs.
    """
    if read.reason in _CONTRADICTED or (read.among and likely not in read.among):
        return False
    is_named = likely in read.among and likely != "delivered" and not set(read.among) >= _UNABLE
    return share >= (min(MIN_NAMED, MIN_CERTAIN[likely]) if is_named else MIN_CERTAIN[likely])


def _has_stated_status(read: ClaimReading) -> bool:
    """Return whether a status or a call says that the result is not delivered."""
    return read.basis == "tool" and read.claim != "delivered" and read.reason in _STATED


_STATED = ("a status", HANDS_OVER)
_UNABLE = {"abstained", "admits_failure"}
_CONTRADICTED = (DONE_THEN_HANDED_OVER, CALL_AGAINST_WORDS)
