"""The values of a reading: what may be claimed, where it was read, and why."""

from dataclasses import dataclass
from typing import Literal

from traces.model import Claim as Claim

type Basis = Literal["last", "previous", "tool", "structure", "end"]

CLAIMS: tuple[Claim, ...] = (
    "delivered", "partial", "abstained", "asks", "admits_failure", "none", "unknown"
)  # fmt: skip
SHOWN = 300
"""Characters of evidence that are kept."""


@dataclass(frozen=True, slots=True)
class ClaimReading:
    """A claim, which part of the run it was read from, the words that carry it, and the rule."""

    claim: Claim
    basis: Basis
    evidence: str
    reason: str
    among: tuple[Claim, ...] = ()
    """What an unknown claim can only be, if that much is known."""

    @property
    def claims_success(self) -> bool | None:
        """Whether it claims that all was delivered; None if that is unknown."""
        possible = {self.claim} if self.claim != "unknown" else set(self.among)
        if not possible or len({each == "delivered" for each in possible}) > 1:
            return None
        return "delivered" in possible


@dataclass(frozen=True, slots=True)
class MessageReading:
    """The claim of one message, the words that carry it, and the rule."""

    claim: Claim
    evidence: str
    reason: str
    is_explicit: bool = True
    """False for what any message in the middle of a run may say: a statement, a question."""
    refuses: bool = False
    """Whether it refuses something beside what it claims."""
    among: tuple[Claim, ...] = ()
    """What an unknown claim can only be."""
