"""Stages of a pipeline run as plain data and as a table."""

from collections.abc import Iterator, Mapping, Sequence

from stumble.llm.prices import compute_token_cost
from traces.store.rows import build_tape_rows
from traces.store.schema import SCHEMAS
from traces.tape import Tape

type StageRow = Mapping[str, object]

STAGE_COLUMNS = (
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


def read_stage_rows(tape: Tape) -> tuple[StageRow, ...]:
    """Return the rows of the relation `stages` of a run, by column name."""
    names = SCHEMAS["stages"].names
    return tuple(
        dict(zip(names, row, strict=True))
        for row in build_tape_rows(tape, price=compute_token_cost)["stages"]
    )


def format_stage_table(found: Sequence[StageRow]) -> Iterator[str]:
    """Format the rows as a table."""
    head = tuple(title for _, title in STAGE_COLUMNS)
    body = [tuple(_format_stage_cell(row[name]) for name, _ in STAGE_COLUMNS) for row in found]
    widths = [max(map(len, column)) for column in zip(head, *body, strict=True)]
    for row in (head, *body):
        cells = [cell.ljust(width) for cell, width in zip(row, widths, strict=True)]
        yield "  ".join(cells).rstrip()


def _format_stage_cell(value: object) -> str:
    match value:
        case None:
            return "-"
        case bool():
            return "yes" if value else "no"
        case float():
            return f"{value:.4g}" if abs(value) < 1 else f"{value:.1f}"
        case _:
            return str(value)
