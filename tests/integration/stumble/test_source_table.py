"""The table of sources in docs/formats.md: what an import counts, beside a parse of its own.

Public files are read from git directories `OWNER+NAME/repo` in the folder that STUMBLE_PUBLIC_FILES
names; without it only the shared data is counted. STUMBLE_TABLE=write writes the rows that were
counted into the page.
"""

import os
import re
from pathlib import Path

import pytest

from stumble.imports.import_files import import_recordings
from tests.support.independent.sources import SOURCES, Source
from traces.store.trace_store import TraceStore

PAGE = Path(__file__).resolve().parents[3] / "docs" / "formats.md"
BEGIN, END = "<!-- table of sources -->\n", "<!-- end of table of sources -->\n"
COLUMNS = ("source", "runs", "steps", "calls", "errors", "tokens", "cost", "why it differs")
HEAD = f"| {' | '.join(COLUMNS)} |\n{'|-' * len(COLUMNS)}|\n"
NOT_TURNS = "status is not null and method not in ('TEXT', 'BINARY')"
COUNTS = """
    select count(*), sum(n_steps), (select count(*) from tool_calls),
        (select count(*) from tool_calls where is_error), sum(tokens)::bigint,
        sum(cost_usd) filter (cost_source = 'reported') from trajectories
"""
EXCHANGES = f"""
    select (select count(*) from trajectories), count(*), null, count(*) filter (status >= 400),
        null, null from exchanges where {NOT_TURNS}
"""

PUBLIC_FILES = os.environ.get("STUMBLE_PUBLIC_FILES")
COUNTED = [each for each in SOURCES if PUBLIC_FILES or each.place.startswith("data ")]

type Row = list[float | None]


def count_imported(folder: Path, paths: list[Path]) -> tuple[Row, list[str]]:
    """Return the counts of an import of these files, and why some were refused."""
    store = TraceStore(folder / ".stumble")
    results = list(import_recordings(store, paths))
    with store.connect() as connection:
        [kept] = connection.execute("select count(*) from exchanges").fetchall()
        [row] = connection.execute(EXCHANGES if kept[0] else COUNTS).fetchall()
    return list(row), [f"{x.path.name}: {x.why}" for x in results if x.state == "refused"]


def render_row(source: Source, ours: Row, theirs: Row) -> str:
    """Return the row of the table: one number if both are equal, else both."""
    cells = []
    for name, one, other in zip(
        ("runs", "steps", "calls", "errors", "tokens", "cost"),
        ours, theirs, strict=True,
    ):  # fmt: skip
        texts = [render_count(name, one), render_count(name, other)]
        cells.append(texts[0] if are_equal(one, other) else " / ".join(texts))
    place = source.place.removeprefix("data ")
    return f"| {source.format}: {place} | {' | '.join(cells)} | {source.differs} |\n"


def render_count(name: str, count: float | None) -> str:
    if count is None:
        return "-"
    return f"${count:,.6f}" if name == "cost" else f"{count:,}"


def are_equal(ours: float | None, theirs: float | None) -> bool:
    """None of the source, which does not have it, says nothing."""
    return theirs is None or ours == pytest.approx(theirs, rel=1e-9)


@pytest.mark.gate
@pytest.mark.parametrize("source", COUNTED, ids=lambda source: source.name)
def test_an_import_has_the_counts_of_a_parse_of_its_own(
    source: Source, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    if source.place.startswith("data "):
        paths = source.list_shared(request.getfixturevalue("shared"))
    else:
        paths = source.copy_public(Path(PUBLIC_FILES or ""), tmp_path / "files")
    if not paths:
        pytest.skip(f"{source.place} is not here")
    theirs = source.count(paths).to_list()
    ours, refused = count_imported(tmp_path, paths)
    assert not refused
    pairs = zip(ours, theirs, strict=True)
    ours = [one if other is not None else None for one, other in pairs]
    row = render_row(source, ours, theirs)
    assert (" / " in row) == bool(source.differs), row
    if os.environ.get("STUMBLE_TABLE") == "write":
        write_row(row)
    assert row in PAGE.read_text(encoding="utf-8")


def write_row(row: str) -> None:
    text = PAGE.read_text(encoding="utf-8")
    before, _, rest = text.partition(BEGIN)
    table, _, after = rest.partition(END)
    rows = [x for x in table.removeprefix(HEAD).splitlines(keepends=True)]
    rows = [x for x in rows if x.split(" | ")[0] != row.split(" | ")[0]]
    PAGE.write_text(f"{before}{BEGIN}{HEAD}{''.join(sorted([*rows, row]))}{END}{after}", "utf-8")


def test_the_table_has_as_many_sources_and_formats_as_it_says() -> None:
    text = PAGE.read_text(encoding="utf-8")
    said = re.search(r"(\d+) sources over (\d+) formats", text)
    assert said is not None
    assert (int(said[1]), int(said[2])) == (len(SOURCES), len({x.format for x in SOURCES}))
    assert text.partition(BEGIN)[2].partition(END)[0].count("\n") == len(SOURCES) + 2
