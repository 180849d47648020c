"""Score a list of tokens: T1."""

import json

from msgspec import Struct

from scenarios.pipeline.compiler.scoring.artifact_score import (
    ArtifactScore,
    make_artifact_score,
    score_unreadable_artifact,
)
from scenarios.pipeline.compiler.scoring.sequence_alignment import align_sequences

KEYS = ("kind", "text", "line", "column", "start", "space")
MAX_TOKEN_RATIO = 4
"""Longest list that is scored, as a multiple of the expected number of tokens."""


class GradedToken(Struct, frozen=True, kw_only=True):
    """A token in the three parts that are scored."""

    name: tuple[object, object]
    place: tuple[object, object]
    flags: tuple[object, object]

    def __str__(self) -> str:
        kind, text = self.name
        line, column = self.place
        marks = [mark for mark, on in zip(("start", "space"), self.flags, strict=True) if on]
        return " ".join([f"{kind} {text!r} at {line}:{column}", *marks])


def score_tokens(golden: bytes, got: bytes) -> ArtifactScore:
    """Score each token: 0.6 for kind and text, 0.3 for the place, 0.1 for the flags.

    RAMP compares the tokens by index and gives 0 if their number is wrong; that figure is the fact
    `strict`. Here an extra or missing token does not invalidate the following ones: the lists are
    aligned first, tokens without a counterpart count as wrong, and the score is never below
    `strict`.
    """
    try:
        got_tokens = _parse_token_lines(got)
    except ValueError as error:
        return score_unreadable_artifact(f"no tokens: {error}")
    golden_tokens = _parse_token_lines(golden)
    if len(got_tokens) > MAX_TOKEN_RATIO * len(golden_tokens) + 64:
        return make_artifact_score(
            0.0, f"{len(got_tokens)} tokens instead of {len(golden_tokens)}", {"strict": 0.0}
        )
    strict = 0.0
    if len(got_tokens) == len(golden_tokens):
        strict = _compute_token_score(list(zip(golden_tokens, got_tokens, strict=True)))
    aligned = [
        (None if n is None else golden_tokens[n], None if m is None else got_tokens[m])
        for n, m in align_sequences(
            [each.name for each in golden_tokens], [each.name for each in got_tokens]
        )
    ]
    score = max(strict, _compute_token_score(aligned))
    return make_artifact_score(
        score, _describe_token_difference(aligned, golden_tokens, got_tokens), {"strict": strict}
    )


def _compute_token_score(
    both: list[tuple[GradedToken, GradedToken]]
    | list[tuple[GradedToken | None, GradedToken | None]],
) -> float:
    parts = 0
    for wanted, got in both:
        if wanted is not None and got is not None:
            parts += 6 * (wanted.name == got.name)
            parts += 3 * (wanted.place == got.place) + (wanted.flags == got.flags)
    return 100 * parts / (10 * len(both)) if both else 100.0


def _describe_token_difference(
    aligned: list[tuple[GradedToken | None, GradedToken | None]],
    wanted: list[GradedToken],
    got: list[GradedToken],
) -> str:
    """Return a description of the first token that differs."""
    count = "" if len(wanted) == len(got) else f" ({len(got)} tokens instead of {len(wanted)})"
    for number, (expected, actual) in enumerate(aligned, 1):
        if expected != actual:
            return f"token {number}: expected {expected or 'none'}, got {actual or 'none'}{count}"
    return ""


def _parse_token_lines(text: bytes) -> list[GradedToken]:
    tokens = []
    for number, line in enumerate(text.splitlines(), 1):
        try:
            token = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise ValueError(f"line {number}: {error}") from None
        if not isinstance(token, dict):
            raise ValueError(f"line {number} is no object")
        parts = {key: _to_scalar(token.get(key)) for key in KEYS}
        tokens.append(
            GradedToken(
                name=(parts["kind"], parts["text"]),
                place=(parts["line"], parts["column"]),
                flags=(parts["start"], parts["space"]),
            )
        )
    return tokens


def _to_scalar(value: object) -> object:
    """Return a text or number for comparison, None for any other value."""
    return value if isinstance(value, str | int) else None
