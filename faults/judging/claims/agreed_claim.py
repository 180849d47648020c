"""Decide a claim by two readers: the rules, and a model trained on labelled finals.

Neither is an oracle. A claim of the rules stands if the trained reader holds it to be possible; a
claim that the rules leave open is decided if the trained reader is certain of it and the rules do
not exclude it. All others are `unknown`, with both readings as evidence.
"""

from collections.abc import Mapping
from dataclasses import replace

from faults.judging.claims.final_claim import read_claim
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


def read_agreed_claim(final: FinalTurns) -> ClaimReading:
    """Return what the agent claims of its own result, if both readers agree; never raises."""
    return agree_on_claim(read_claim(final), read_claim_probabilities(final))


def agree_on_claim(read: ClaimReading, shares: Mapping[Claim, float]) -> ClaimReading:
    """Return the reading of the rules, decided or opened by the trained reader's probabilities."""
    likely = max(shares, key=lambda claim: shares[claim])
    told = f"{read.reason}; trained reader: {likely} {shares[likely]:.0%}"
    if read.claim == "unknown":
        is_possible = not read.among or likely in read.among
        if shares[likely] >= MIN_CERTAIN[likely] and is_possible:
            return replace(read, claim=likely, among=(), reason=told)
        return replace(read, reason=told)
    if _has_stated_status(read) or shares[read.claim] >= MIN_AGREED[read.claim]:
        return replace(read, reason=told)
    among = tuple(dict.fromkeys((read.claim, likely)))
    return replace(read, claim="unknown", among=among, reason=told)


def _has_stated_status(read: ClaimReading) -> bool:
    """Return whether a status or a call says that the result is not delivered."""
    return read.basis == "tool" and read.claim != "delivered" and read.reason in _STATED


_STATED = ("a status", "the last call hands over")
