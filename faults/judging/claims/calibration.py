"""Measure the agreement of claim readings with human labels, class by class.

A row is an agent's final turns with its label. Rates carry Wilson's score interval (E. B. Wilson,
1927), which assumes independent rows; rows of one source or one task are not independent, so the
true interval is wider.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from math import sqrt

from msgspec import Struct

from faults.judging.claims.agreed_claim import read_agreed_claim
from faults.judging.claims.final_turns import FinalToolCall, FinalTurns
from faults.judging.claims.types import CLAIMS, Claim

LABELS: tuple[Claim, ...] = CLAIMS[:-1]
"""Valid labels; `unknown` is a reading, never a label."""
Z_95 = 1.959964
"""Normal quantile of a two-sided 95 % interval."""


class LabelledFinal(Struct, frozen=True):
    """The end of a run, its agent's claim as labelled by a person, and its language."""

    final: FinalTurns
    claim: Claim
    language: str | None


class RateInterval(Struct, frozen=True):
    """`k` of `n`, with the bounds of its 95 % interval; all None if `n` is 0."""

    k: int
    n: int

    @property
    def rate(self) -> float | None:
        """The share."""
        return self.k / self.n if self.n else None

    @property
    def bounds(self) -> tuple[float, float] | None:
        """Wilson's score interval."""
        if not self.n:
            return None
        middle = (self.k + Z_95 * Z_95 / 2) / (self.n + Z_95 * Z_95)
        half = (
            Z_95
            / (self.n + Z_95 * Z_95)
            * sqrt(self.k * (self.n - self.k) / self.n + Z_95 * Z_95 / 4)
        )
        return max(0.0, middle - half), min(1.0, middle + half)


class LabelAgreement(Struct, frozen=True):
    """Labels against readings: how often each label was read as each claim."""

    counts: Mapping[tuple[Claim, Claim], int]
    """(label, reading) to rows; absent is 0."""

    def _count_rows(self, label: Claim | None, reading: Claim | None) -> int:
        return sum(
            rows
            for (labelled, read), rows in self.counts.items()
            if label in (None, labelled) and reading in (None, read)
        )

    @property
    def row_count(self) -> int:
        """Number of rows."""
        return self._count_rows(None, None)

    @property
    def unknown_rate(self) -> RateInterval:
        """The share of rows read as unknown."""
        return RateInterval(self._count_rows(None, "unknown"), self.row_count)

    @property
    def accuracy(self) -> RateInterval:
        """The share of decided rows whose reading equals their label."""
        return RateInterval(
            sum(self._count_rows(each, each) for each in LABELS), self.decided_count
        )

    @property
    def decided_count(self) -> int:
        """Number of rows not read as unknown."""
        return self.row_count - self._count_rows(None, "unknown")

    @property
    def delivered_accuracy(self) -> RateInterval:
        """The share of decided rows correctly read as delivered or as not delivered."""
        both = self._count_rows("delivered", "delivered")
        neither = sum(
            rows
            for (label, read), rows in self.counts.items()
            if label != "delivered" and read not in ("delivered", "unknown")
        )
        return RateInterval(both + neither, self.decided_count)

    @property
    def false_delivered_rate(self) -> RateInterval:
        """The share of rows not labelled delivered that are read as delivered."""
        delivered = self._count_rows("delivered", "delivered")
        false_delivered = self._count_rows(None, "delivered") - delivered
        return RateInterval(false_delivered, self.row_count - self._count_rows("delivered", None))

    def precision(self, claim: Claim) -> RateInterval:
        """Return the share of rows read as this claim that have this label."""
        return RateInterval(self._count_rows(claim, claim), self._count_rows(None, claim))

    def recall(self, claim: Claim) -> RateInterval:
        """Return the share of rows with this label that are read so; unknown counts as a miss."""
        return RateInterval(self._count_rows(claim, claim), self._count_rows(claim, None))


def read_labelled_final(row: object) -> LabelledFinal | None:
    """Parse a labelled final from one line of a file; None if the line has no text.

    Raises ValueError, with the reason, if the line is malformed.
    """
    if not isinstance(row, dict):
        raise ValueError("not a JSON object")
    label = row.get("label")
    claim = label.get("claim") if isinstance(label, dict) else None
    if claim is None:
        raise ValueError("no label.claim")
    if claim not in LABELS:
        raise ValueError(f"label.claim is {claim!r}, not one of {', '.join(LABELS)}")
    messages = row.get("last_messages")
    if messages is None:
        return None
    if not isinstance(messages, list) or not all(isinstance(m, str | None) for m in messages):
        raise ValueError("last_messages is no list of texts")
    ended, language = row.get("ended"), row.get("language")
    if not isinstance(ended, str | None) or not isinstance(language, str | None):
        raise ValueError("ended or language is no text")
    final = FinalTurns(
        messages=tuple(message or "" for message in messages),
        tools=_parse_final_tools(row.get("last_tools")),
        open_call=row.get("open_call") is True,
        ended=ended,
    )
    return LabelledFinal(final, claim, language)


def _parse_final_tools(value: object) -> tuple[FinalToolCall, ...]:
    if value is None:
        return ()
    if not isinstance(value, list) or not all(isinstance(each, dict) for each in value):
        raise ValueError("last_tools is no list of objects")
    return tuple(map(_parse_final_tool, value))


def _parse_final_tool(value: Mapping[str, object]) -> FinalToolCall:
    call, result, is_error = value.get("call"), value.get("result"), value.get("is_error")
    if not isinstance(call, str) or not isinstance(result, str | None):
        raise ValueError("a tool call lacks its text, or its result is no text")
    return FinalToolCall(call, result, is_error if isinstance(is_error, bool) else None)


def read_labelled_claims(rows: Iterable[LabelledFinal]) -> Iterator[tuple[LabelledFinal, Claim]]:
    """Yield each final with the claim that is read of it."""
    for row in rows:
        yield row, read_agreed_claim(row.final).claim


def measure_label_agreement(read: Iterable[tuple[LabelledFinal, Claim]]) -> LabelAgreement:
    """Count how the readings of finals agree with their labels."""
    return LabelAgreement(Counter((row.claim, claim) for row, claim in read))
