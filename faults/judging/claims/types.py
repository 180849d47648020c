"""Types of claim readings: the claim, where it was read, and why."""

from typing import Literal

from msgspec import Struct

from traces.model import Claim as Claim

type ReadingBasis = Literal["last", "previous", "tool", "structure", "end"]

CLAIMS: tuple[Claim, ...] = (
    "delivered", "partial", "abstained", "asks", "admits_failure", "none", "unknown"
)  # fmt: skip
MAX_EVIDENCE_CHARS = 300
"""Maximum characters of evidence."""


class ClaimReading(Struct, frozen=True):
    """A claim, the part of the run it was read from, the evidence, and the rule."""

    claim: Claim
    basis: ReadingBasis
    evidence: str
    reason: str
    among: tuple[Claim, ...] = ()
    """The possible claims if the claim is unknown, as far as they are known."""
    is_explicit: bool = True
    """False if it is read from statements that occur in the middle of any run."""

    @property
    def claims_success(self) -> bool | None:
        """Whether it claims that everything was delivered; None if unknown."""
        possible = {self.claim} if self.claim != "unknown" else set(self.among)
        if not possible or len({each == "delivered" for each in possible}) > 1:
            return None
        return "delivered" in possible


class MessageReading(Struct, frozen=True):
    """The claim of one message, the evidence, and the rule."""

    claim: Claim
    evidence: str
    reason: str
    is_explicit: bool = True
    """False for statements and questions that occur in the middle of any run."""
    refuses: bool = False
    """Whether it also refuses something."""
    among: tuple[Claim, ...] = ()
    """The possible claims if the claim is unknown."""
