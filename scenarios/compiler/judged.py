"""What a judge says of one artifact."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from scenarios.compiler.contract import PASS, Result

LONGEST = 400
"""Characters of an explanation."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """The result, its score, and why it is not a better one."""

    result: Result
    score: float | None
    why: str = ""
    facts: Mapping[str, float] = field(default_factory=dict)


def scored(score: float, why: str, facts: Mapping[str, float] | None = None) -> Judged:
    """A pass from the score from which a stage is passed; why it is not a full one."""
    return Judged(
        result="pass" if score >= PASS else "fail",
        score=score,
        why="" if score == 100 else shown(why),
        facts=facts or {},
    )


def unreadable(why: str) -> Judged:
    """What the agent made cannot be read as what it should be."""
    return Judged(result="agent_error", score=0.0, why=shown(why))


def shown(text: str) -> str:
    """Text that can be shown anywhere: of bounded length, without halves of characters."""
    text = text.encode(errors="backslashreplace").decode()
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}..."
