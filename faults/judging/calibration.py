"""How well the reading of a claim agrees with what people labelled, class by class.

A row is a final of an agent with its label. Rates carry Wilson's score interval (E. B. Wilson,
1927), which takes the rows as independent; rows of one source or one task are not, so that a true
interval is wider.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from math import sqrt

from faults.judging.claim import read_claim
from faults.judging.claim_types import CLAIMS, Claim
from faults.judging.final_turns import FinalTurns, ToolTurn

LABELS: tuple[Claim, ...] = CLAIMS[:-1]
"""What a label may be: `unknown` is what a reader says, never what is true."""
Z = 1.959964
"""Of a two-sided interval of 95 %."""


@dataclass(frozen=True, slots=True)
class Labelled:
    """The end of a run, what a person says that its agent claims, and the language of it."""

    final: FinalTurns
    claim: Claim
    language: str | None


@dataclass(frozen=True, slots=True)
class Rate:
    """`k` of `n`, with the bounds of its 95 % interval; all None if `n` is 0."""

    k: int
    n: int

    @property
    def rate(self) -> float | None:
        """The share itself."""
        return self.k / self.n if self.n else None

    @property
    def bounds(self) -> tuple[float, float] | None:
        """Wilson's score interval."""
        if not self.n:
            return None
        middle = (self.k + Z * Z / 2) / (self.n + Z * Z)
        half = Z / (self.n + Z * Z) * sqrt(self.k * (self.n - self.k) / self.n + Z * Z / 4)
        return max(0.0, middle - half), min(1.0, middle + half)


@dataclass(frozen=True, slots=True)
class Agreement:
    """Labels against readings: how often each label was read as each claim."""

    counts: Mapping[tuple[Claim, Claim], int]
    """(label, reading) to rows; absent is 0."""

    def _rows(self, label: Claim | None, reading: Claim | None) -> int:
        return sum(
            rows
            for (labelled, read), rows in self.counts.items()
            if label in (None, labelled) and reading in (None, read)
        )

    @property
    def rows(self) -> int:
        """All rows."""
        return self._rows(None, None)

    @property
    def unknown(self) -> Rate:
        """The share that was left unknown."""
        return Rate(self._rows(None, "unknown"), self.rows)

    @property
    def right(self) -> Rate:
        """Of the decided rows, those with the very claim of their label."""
        return Rate(sum(self._rows(each, each) for each in LABELS), self.decided)

    @property
    def decided(self) -> int:
        """The rows that were not left unknown."""
        return self.rows - self._rows(None, "unknown")

    @property
    def right_delivered(self) -> Rate:
        """Of the decided rows, those that are rightly told delivered, or rightly told not."""
        both = self._rows("delivered", "delivered")
        neither = sum(
            rows
            for (label, read), rows in self.counts.items()
            if label != "delivered" and read not in ("delivered", "unknown")
        )
        return Rate(both + neither, self.decided)

    @property
    def false_delivered(self) -> Rate:
        """Of the rows whose label is not delivered, those that are read as delivered."""
        delivered = self._rows("delivered", "delivered")
        called = self._rows(None, "delivered") - delivered
        return Rate(called, self.rows - self._rows("delivered", None))

    def precision(self, claim: Claim) -> Rate:
        """Of what is read as a claim, that which has this label."""
        return Rate(self._rows(claim, claim), self._rows(None, claim))

    def recall(self, claim: Claim) -> Rate:
        """Of what has a label, that which is read so; unknown is a miss here."""
        return Rate(self._rows(claim, claim), self._rows(claim, None))


def read_row(row: object) -> Labelled | None:
    """A labelled final from one line of a file; None if the line holds no text.

    Raises ValueError with the reason if it is no such line.
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
        tools=_tools(row.get("last_tools")),
        open_call=row.get("open_call") is True,
        ended=ended,
    )
    return Labelled(final, claim, language)


def _tools(value: object) -> tuple[ToolTurn, ...]:
    if value is None:
        return ()
    if not isinstance(value, list) or not all(isinstance(each, dict) for each in value):
        raise ValueError("last_tools is no list of objects")
    return tuple(map(_tool, value))


def _tool(value: Mapping[str, object]) -> ToolTurn:
    call, result, is_error = value.get("call"), value.get("result"), value.get("is_error")
    if not isinstance(call, str) or not isinstance(result, str | None):
        raise ValueError("a tool call lacks its text, or its result is no text")
    return ToolTurn(call, result, is_error if isinstance(is_error, bool) else None)


def agreement(rows: Iterable[Labelled]) -> Agreement:
    """How the readings of finals agree with their labels."""
    return Agreement(Counter((row.claim, read_claim(row.final).claim) for row in rows))
