"""The report on a terminal, and as JSON."""

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING

from stumble.report.values import Cell, Figure, Section, Table

if TYPE_CHECKING:
    from rich.console import Console

BRIEF = ("headline", "outcomes", "survival", "exclusions")
"""The sections a terminal shows; all of them are on the page and in JSON."""
WIDEST = 34
"""Characters of the first column that are not broken."""


def tell(sections: Sequence[Section], console: "Console") -> None:
    """Print the main sections: their sentences, and their tables."""
    for section in sections:
        if section.name not in BRIEF:
            continue
        console.print(f"[bold]{section.title}[/bold]")
        for line in section.lead if section.name == "headline" else ():
            console.print(line, markup=False, highlight=False)
        if section.nothing:
            console.print(section.nothing, markup=False, highlight=False)
        for table in section.tables:
            console.print()
            print_table(table, console)
        for note in section.notes:
            console.print(note, style="dim", markup=False, highlight=False)
        console.print()


def print_table(table: Table, console: "Console") -> None:
    """Print a table with its caption."""
    from rich.box import SIMPLE_HEAD
    from rich.table import Table as Drawn
    from rich.text import Text

    drawn = Drawn(title=Text(table.caption), title_justify="left", box=SIMPLE_HEAD, pad_edge=False)
    for place, column in enumerate(table.columns):
        names = (len(str(row[0])) for row in table.rows) if place == 0 else ()
        drawn.add_column(Text(column), min_width=min(WIDEST, max(names, default=0)))
    for row in table.rows:
        drawn.add_row(*(Text(_short(cell)) for cell in row))
    console.print(drawn)


def _short(cell: Cell) -> str:
    if cell is None:
        return "-"
    return cell.short if isinstance(cell, Figure) else cell


def as_json(sections: Sequence[Section], injections: int) -> str:
    """All sections with their tables as rows, figures with interval, n and reason."""
    said = {section.name: _plain(section) for section in sections}
    return json.dumps(said | {"injections": injections}, indent=2, ensure_ascii=False)


def _plain(section: Section) -> dict[str, object]:
    return {
        "title": section.title,
        "nothing": section.nothing,
        "lead": list(section.lead),
        "notes": list(section.notes),
        "tables": [
            {
                "caption": table.caption,
                "rows": [
                    {
                        column: cell.plain() if isinstance(cell, Figure) else cell
                        for column, cell in zip(table.columns, row, strict=True)
                    }
                    for row in table.rows
                ],
            }
            for table in section.tables
        ],
    }
