"""Report on a terminal and as JSON."""

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING

from stumble.report.model import ReportFigure, ReportSection, ReportTable, TableCell

if TYPE_CHECKING:
    from rich.console import Console

TERMINAL_SECTIONS = ("headline", "judge_error", "outcomes", "survival", "effects", "exclusions")
"""The sections printed on a terminal; the page and JSON have all."""
OPTIONAL_SECTIONS = ("effects",)
"""Those that are printed only if they have something."""
WIDEST_CELL = 34
"""Longest minimum width of the first column, in characters."""


def print_report_sections(sections: Sequence[ReportSection], console: "Console") -> None:
    """Print the main sections with their texts and tables."""
    for section in sections:
        absent = section.nothing and section.name in OPTIONAL_SECTIONS
        if section.name not in TERMINAL_SECTIONS or absent:
            continue
        console.print(f"[bold]{section.title}[/bold]")
        for line in section.lead if section.name == "headline" else ():
            console.print(line, markup=False, highlight=False)
        if section.nothing:
            console.print(section.nothing, markup=False, highlight=False)
        for table in section.tables:
            console.print()
            print_report_table(table, console)
        for note in section.notes:
            console.print(note, style="dim", markup=False, highlight=False)
        console.print()


def print_report_table(table: ReportTable, console: "Console") -> None:
    """Print a table with its caption."""
    from rich.box import SIMPLE_HEAD
    from rich.table import Table as Drawn
    from rich.text import Text

    rich_table = Drawn(
        title=Text(table.caption), title_justify="left", box=SIMPLE_HEAD, pad_edge=False
    )
    for place, column in enumerate(table.columns):
        names = (len(str(row[0])) for row in table.rows) if place == 0 else ()
        rich_table.add_column(Text(column), min_width=min(WIDEST_CELL, max(names, default=0)))
    for row in table.rows:
        rich_table.add_row(*(Text(_format_short_cell(cell)) for cell in row))
    console.print(rich_table)


def _format_short_cell(cell: TableCell) -> str:
    if cell is None:
        return "-"
    return cell.short if isinstance(cell, ReportFigure) else cell


def report_to_json(sections: Sequence[ReportSection], injections: int) -> str:
    """Return all sections as JSON; figures have interval, n and reason."""
    document = {section.name: _section_to_dict(section) for section in sections}
    return json.dumps(document | {"injections": injections}, indent=2, ensure_ascii=False)


def _section_to_dict(section: ReportSection) -> dict[str, object]:
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
                        column: cell.to_json_value() if isinstance(cell, ReportFigure) else cell
                        for column, cell in zip(table.columns, row, strict=True)
                    }
                    for row in table.rows
                ],
            }
            for table in section.tables
        ],
    }
