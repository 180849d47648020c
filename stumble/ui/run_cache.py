"""The runs shown last."""

from collections import OrderedDict
from dataclasses import dataclass, field
from pathlib import Path

from stumble.ui.tape_access import TapeAccess
from stumble.ui.values.run_rows import RunRows

CACHED_RUNS = 4


@dataclass(slots=True)
class RunCache:
    """The runs shown last, and their tapes, so that the next step is shown at once."""

    runs: OrderedDict[tuple[str, int], RunRows] = field(default_factory=OrderedDict)
    opened: OrderedDict[str, TapeAccess] = field(default_factory=OrderedDict)

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

    def keep(self, key: tuple[str, int], rows: RunRows) -> None:
        """Keep the rows of a run, and drop the oldest."""
        self.runs[key] = rows
        while len(self.runs) > CACHED_RUNS:
            self.runs.popitem(last=False)
