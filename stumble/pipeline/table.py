"""A run of the pipeline, stage by stage, as plain data and as a table."""

from collections.abc import Iterator, Mapping, Sequence

from stumble.prices import price
from traces.index import rows
from traces.relations import SCHEMAS
from traces.tape import Tape

type Row = Mapping[str, object]

COLUMNS = (
    ("stage", "stage"),
    ("score", "score"),
    ("outcome", "outcome"),
    ("provenance", "given"),
    ("resurrected", "resurrected"),
    ("cases", "cases"),
    ("reached", "reached"),
    ("solved", "solved"),
    ("calls", "calls"),
    ("tokens", "tokens"),
    ("cost_usd", "cost"),
    ("seconds", "seconds"),
    ("budget", "budget"),
)


def stages(tape: Tape) -> tuple[Row, ...]:
    """What each stage of a run came to, by the names of the relation's columns."""
    names = SCHEMAS["stages"].names
    return tuple(dict(zip(names, row, strict=True)) for row in rows(tape, price=price)["stages"])


def lines(found: Sequence[Row]) -> Iterator[str]:
    """The rows as a table."""
    head = tuple(title for _, title in COLUMNS)
    body = [tuple(_word(row[name]) for name, _ in COLUMNS) for row in found]
    widths = [max(map(len, column)) for column in zip(head, *body, strict=True)]
    for row in (head, *body):
        cells = [cell.ljust(width) for cell, width in zip(row, widths, strict=True)]
        yield "  ".join(cells).rstrip()


def _word(value: object) -> str:
    match value:
        case None:
            return "-"
        case bool():
            return "yes" if value else "no"
        case float():
            return f"{value:.4g}" if abs(value) < 1 else f"{value:.1f}"
        case _:
            return str(value)
