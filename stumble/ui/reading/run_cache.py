"""What the last pages read: runs, tapes, and the counts of the store."""

import os
from collections import OrderedDict
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from msgspec import Struct, field

from stumble.check.behaviour import FaultedRun
from stumble.ui.reading.tape_access import TapeAccess
from stumble.ui.values.run_rows import RunRows
from stumble.ui.values.runs_table import StoreCounts, count_store

if TYPE_CHECKING:
    import duckdb

type IndexState = tuple[tuple[str, int], ...]

CACHED_RUNS = 4


class RunState(NamedTuple):
    """The version of the index, and the size of the run's tape."""

    version: int
    size: int


class KeptRun(NamedTuple):
    """Rows, and the state in which they were read."""

    rows: RunRows
    state: RunState


class RunCache(Struct):
    """The runs shown last, and their tapes, so that the next step is shown at once."""

    runs: OrderedDict[str, KeptRun] = field(default_factory=OrderedDict)
    opened: OrderedDict[str, TapeAccess] = field(default_factory=OrderedDict)
    counted: tuple[IndexState, StoreCounts] | None = None
    described: dict[str, FaultedRun] = field(default_factory=dict)
    """What runs of checks did with their injection, by its id."""

    def open_tape(self, tapes: Path, id: str) -> TapeAccess:
        """Return access to the tape. Raises ValueError or OSError without one."""
        path = tapes / f"{id}.tape"
        tape = self.opened.get(id)
        if tape is None or tape.size != path.stat().st_size:
            tape = TapeAccess(path)
        self.opened[id] = tape
        self.opened.move_to_end(id)
        while len(self.opened) > CACHED_RUNS:
            self.opened.popitem(last=False)
        return tape

    def find_run(self, id: str, state: RunState) -> RunRows | None:
        """Return the rows of a run, if nothing changed them.

        An ended run changes with the index, which has its verdicts; one that is being recorded
        with its tape alone, which is read whole.
        """
        kept = self.runs.get(id)
        if kept is None:
            return None
        own = "size" if kept.rows.is_live else "version"
        return kept.rows if getattr(kept.state, own) == getattr(state, own) else None

    def keep_run(self, rows: RunRows, state: RunState) -> None:
        """Keep the rows of a run, and drop the oldest."""
        self.runs[rows.id] = KeptRun(rows, state)
        self.runs.move_to_end(rows.id)
        while len(self.runs) > CACHED_RUNS:
            self.runs.popitem(last=False)

    def count_store(self, index: Path, connection: "duckdb.DuckDBPyConnection") -> StoreCounts:
        """Return the counts of the store; counted anew only if a folder of the index changed."""
        now = _look_at_index(index)
        if self.counted is None or self.counted[0] != now:
            self.counted = now, count_store(connection)
        return self.counted[1]


def _look_at_index(index: Path) -> IndexState:
    """Return the folders of the index with their times: segments are added and replaced whole."""
    return tuple(sorted((each.name, each.stat().st_mtime_ns) for each in os.scandir(index)))
