"""What each client did when it was tried: rows in a file, and the table of docs/clients.md.

    python -m tests.support.agents.client_rows          writes the table from the rows
    python -m tests.support.agents.client_rows FILE     prints what differs in these rows

`make test-clients` replaces the row of each client that it tries; a client that was not tried keeps
its row and its date.
"""

import fcntl
import json
import sys
from collections.abc import Iterable, Sequence
from dataclasses import asdict, astuple, dataclass
from pathlib import Path

ROOT = Path(__file__).parents[3]
ROWS = ROOT / "tests" / "data" / "clients.jsonl"
PAGE = ROOT / "docs" / "clients.md"
BEGIN, END = "<!-- clients: begin -->\n", "<!-- clients: end -->\n"
HEAD = (
    "client", "version", "tried", "API", "record", "show", "replay", "a year later", "fork",
    "fault in a live run",
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientRow:
    """One client at one version on one day; each field after `api` is the outcome of a stage."""

    client: str
    version: str
    tried: str
    """The day, in ISO 8601."""
    api: str
    record: str
    show: str
    replay: str
    later: str
    fork: str
    live_fault: str


def read_rows(path: Path = ROWS) -> dict[str, ClientRow]:
    """The rows of a file by the client's name; none if there is no file."""
    if not path.exists():
        return {}
    rows = [ClientRow(**json.loads(line)) for line in path.read_text().splitlines()]
    return {row.client: row for row in rows}


def write_row(row: ClientRow, path: Path = ROWS) -> None:
    """Replace the row of this client; processes may do so at the same time."""
    with path.open("a+") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        rows = read_rows(path) | {row.client: row}
        file.truncate(0)
        file.writelines(f"{json.dumps(asdict(rows[name]))}\n" for name in sorted(rows))


def name_changes(row: ClientRow, known: ClientRow | None) -> list[str]:
    """What differs from the known row of that client, a line for each field but the day."""
    if known is None:
        return [f"{row.client}: not known before"]
    before, after = asdict(known), asdict(row)
    changed = [field for field in after if field != "tried" and before[field] != after[field]]
    return [f"{row.client}: {each}: {before[each]} -> {after[each]}" for each in changed]


def to_table(rows: Iterable[ClientRow]) -> str:
    """Markdown with a line for each row, sorted by name."""
    return to_markdown(HEAD, (astuple(row) for row in sorted(rows, key=_name)))


def to_markdown(head: Sequence[str], lines: Iterable[Sequence[str]]) -> str:
    """A table in Markdown."""
    return "".join(f"| {' | '.join(each)} |\n" for each in (head, ("---",) * len(head), *lines))


def _name(row: ClientRow) -> str:
    return row.client


def replace_table(page: str, rows: Iterable[ClientRow]) -> str:
    """The page with the table of these rows between its marks."""
    return replace_between(page, (BEGIN, END), to_table(rows))


def replace_between(page: str, marks: tuple[str, str], table: str) -> str:
    """The page with another table between these marks."""
    before, begin, rest = page.partition(marks[0])
    _, end, after = rest.partition(marks[1])
    if not end:
        raise ValueError(f"no table between {marks[0].strip()} and {marks[1].strip()}")
    return f"{before}{begin}{table}{end}{after}"


def main(files: list[str]) -> None:
    """Write the table of the page, or print what differs in the rows of files."""
    known = read_rows()
    if not files:
        PAGE.write_text(replace_table(PAGE.read_text(), known.values()))
    for file in files:
        for name, row in read_rows(Path(file)).items():
            sys.stdout.writelines(f"{line}\n" for line in name_changes(row, known.get(name)))


if __name__ == "__main__":
    main(sys.argv[1:])
