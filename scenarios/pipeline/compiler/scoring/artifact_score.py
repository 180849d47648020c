"""The score of one artifact."""

from collections.abc import Mapping

from msgspec import Struct, field

from scenarios.pipeline.compiler.types import PASS, Result

MAX_EXPLANATION = 400
"""Longest explanation in characters."""


class ArtifactScore(Struct, frozen=True, kw_only=True):
    """Result and score of an artifact, and why the score is not full."""

    result: Result
    score: float | None
    why: str = ""
    facts: Mapping[str, float] = field(default_factory=dict)


def make_artifact_score(
    score: float, why: str, facts: Mapping[str, float] | None = None
) -> ArtifactScore:
    """Return a pass for a score of PASS or more, else a fail; `why` explains a score below 100."""
    return ArtifactScore(
        result="pass" if score >= PASS else "fail",
        score=score,
        why="" if score == 100 else shorten_explanation(why),
        facts=facts or {},
    )


def score_unreadable_artifact(why: str) -> ArtifactScore:
    """Return the zero score of an artifact that cannot be parsed."""
    return ArtifactScore(result="agent_error", score=0.0, why=shorten_explanation(why))


def shorten_explanation(text: str) -> str:
    """Return printable text of bounded length: no escape sequences, no marks of direction, no lone
    surrogates of the programs that are quoted.
    """
    text = text[: 2 * MAX_EXPLANATION]
    text = "".join(
        c if c.isprintable() else c.encode("unicode_escape", "backslashreplace").decode()
        for c in text
    )
    return text if len(text) <= MAX_EXPLANATION else f"{text[:MAX_EXPLANATION]}..."
