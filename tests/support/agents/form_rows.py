"""What each coding agent did in each of its forms: rows in a file, and a table of docs/clients.md.

    python -m tests.support.agents.form_rows          writes the table from the rows

`make test-clients` replaces the row of each agent and form that it tries.
"""

import fcntl
import json
from collections.abc import Iterable
from dataclasses import asdict, astuple, dataclass
from pathlib import Path

from tests.support.agents.client_rows import PAGE, ROOT, replace_between, to_markdown

ROWS = ROOT / "tests" / "data" / "client_forms.jsonl"
MARKS = "<!-- forms: begin -->\n", "<!-- forms: end -->\n"
MAX_CELL = 120
HEAD = (
    "agent", "version", "tried", "task given by", "record", "another time zone", "a year later",
    "loud fault", "quiet fault",
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class FormRow:
    """One agent in one form; each field after `form` is the outcome of a stage."""

    client: str
    version: str
    tried: str
    """The day, in ISO 8601."""
    form: str
    record: str
    zone: str
    later: str
    loud: str
    quiet: str


def read_form_rows(path: Path = ROWS) -> dict[tuple[str, str], FormRow]:
    """The rows of a file by agent and form; none if there is no file."""
    if not path.exists():
        return {}
    rows = [FormRow(**json.loads(line)) for line in path.read_text().splitlines()]
    return {(row.client, row.form): row for row in rows}


def write_form_row(row: FormRow, path: Path = ROWS) -> None:
    """Replace the row of this agent and form; processes may do so at the same time."""
    with path.open("a+") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        rows = read_form_rows(path) | {(row.client, row.form): row}
        file.truncate(0)
        file.writelines(f"{json.dumps(asdict(rows[key]))}\n" for key in sorted(rows))


def replace_form_table(page: str, rows: Iterable[FormRow]) -> str:
    """The page with the table of these rows between its marks."""
    lines = sorted(rows, key=lambda row: (row.client, row.form))
    cells = ([_shorten_cell(cell) for cell in astuple(row)] for row in lines)
    return replace_between(page, MARKS, to_markdown(HEAD, cells))


def _shorten_cell(cell: str) -> str:
    """Return what fits a cell, on one line; the row in the file has all."""
    text = " ".join(cell.replace("\\n", " ").split())
    return text if len(text) <= MAX_CELL else f"{text[: MAX_CELL - 1]}…"


if __name__ == "__main__":
    PAGE.write_text(replace_form_table(PAGE.read_text(), read_form_rows().values()))
