"""The rows of one run: from the index, or from its tape while it is being written."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, cast

from msgspec import Struct

from stumble.llm.prices import compute_token_cost
from traces.model import IMPORT_SOURCES, Injection
from traces.store.rows import build_tape_rows
from traces.store.schema import SCHEMAS
from traces.tape.reader import read_tape

if TYPE_CHECKING:
    import duckdb

type Row = Mapping[str, object]

LARGEST_OPEN_TAPE = 1 << 26
"""Bytes above which a tape without an end is shown from the index alone."""
_ORDERS: Mapping[str, str] = {
    "trajectories": "1",
    "exchanges": "started, seq",
    "steps": "step",
    "tool_calls": "step, seq nulls last",
    "messages": "lane, position, first_seq",
    "usage": "seq",
    "injections": "seq",
    "stages": "stage",
}
RELATIONS = tuple(_ORDERS)


class RunRows(Struct, frozen=True, kw_only=True):
    """The rows of one run by relation; `is_live` if its tape has no end yet."""

    id: str
    rows: Mapping[str, Sequence[Row]]
    is_live: bool

    @property
    def run(self) -> Row:
        """Its row of `trajectories`."""
        return self.rows["trajectories"][0]


def read_run_rows(connection: "duckdb.DuckDBPyConnection", id: str, tapes: Path) -> RunRows | None:
    """Read the rows of a run; None if there is no such run.

    A run without an end is read from its tape, since the index is older.
    """
    rows = {name: _fetch_rows(connection, name, id) for name in RELATIONS}
    if not rows["trajectories"]:
        return None
    run = rows["trajectories"][0]
    is_live = run["ended"] is None and run["source"] not in IMPORT_SOURCES
    path = tapes / f"{id}.tape"
    if is_live and path.exists() and path.stat().st_size < LARGEST_OPEN_TAPE:
        rows = read_tape_rows(path)
        is_live = rows["trajectories"][0]["ended"] is None
    return RunRows(id=id, rows=rows, is_live=is_live)


def read_tape_rows(path: Path) -> dict[str, list[Row]]:
    """Return the rows of a tape, and of its injections what the tape holds."""
    tape = read_tape(path)
    tables = build_tape_rows(tape, price=compute_token_cost)
    rows = {
        name: [dict(zip(SCHEMAS[name].names, row, strict=True)) for row in tables.get(name, ())]
        for name in RELATIONS
        if name != "injections"
    }
    return cast(dict[str, list[Row]], rows) | {
        "injections": [_to_injection_row(tape.trajectory.id, each) for each in tape.injections]
    }


def _to_injection_row(run: str, injection: Injection) -> Row:
    known: dict[str, object] = dict.fromkeys(SCHEMAS["injections"].names)
    return known | {
        "injection_id": injection.id,
        "trajectory_id": run,
        "seq": injection.seq,
        "tool": injection.tool,
        "op": injection.op,
        "call_id": injection.call_id,
        "sham": injection.sham,
        "repeat_of": injection.repeat_of,
        "place": injection.place,
    }


def _fetch_rows(connection: "duckdb.DuckDBPyConnection", name: str, id: str) -> list[Row]:
    answer = connection.execute(
        f"select * from {name} where trajectory_id = $id order by {_ORDERS[name]}", {"id": id}
    )
    columns = [column[0] for column in answer.description or ()]
    return [dict(zip(columns, row, strict=True)) for row in answer.fetchall()]
