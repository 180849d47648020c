"""The size budget of a daemon's tapes: the oldest are deleted beyond a size or an age.

Only tapes that a daemon of this store kept are deleted: they are listed in `daemon.tapes`, one a
line. What is indexed of them stays.
"""

import time
from collections import deque
from pathlib import Path

from stumble.daemon.metrics import DaemonMetrics
from stumble.daemon.rules import DaemonRules

LIST_NAME = "daemon.tapes"
DAY = 86_400.0


class TapeBudget:
    """The tapes that daemons kept, oldest first."""

    def __init__(self, root: Path, metrics: DaemonMetrics) -> None:
        self._root, self._metrics = root, metrics
        self._list = root / LIST_NAME
        self._tapes: deque[tuple[str, float, int]] = deque()
        self._bytes = 0
        names = self._list.read_text().splitlines() if self._list.exists() else []
        for name in names:
            try:
                stat = (root / "tapes" / name).stat()
            except OSError:
                continue
            self._append(name, stat.st_mtime, stat.st_size)

    def add(self, path: Path, size: int) -> None:
        """Note a tape that was kept."""
        with self._list.open("a") as file:
            file.write(f"{path.name}\n")
        self._append(path.name, time.time(), size)

    def _append(self, name: str, at: float, size: int) -> None:
        self._tapes.append((name, at, size))
        self._bytes += size
        self._metrics.gauges["tape_bytes"] = self._bytes

    def enforce(self, rules: DaemonRules) -> None:
        """Delete the oldest tapes beyond the limits; a clock that was set back deletes none."""
        oldest = time.time() - rules.max_days * DAY
        while self._tapes:
            name, at, size = self._tapes[0]
            limit = "size" if self._bytes > rules.max_store else "age" if at < oldest else None
            if limit is None:
                break
            self._tapes.popleft()
            self._bytes -= size
            (self._root / "tapes" / name).unlink(missing_ok=True)
            self._metrics.add("tapes_deleted_total", f'limit="{limit}"')
        self._metrics.gauges["tape_bytes"] = self._bytes
