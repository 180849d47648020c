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
        self._ahead = time.time() - time.monotonic()
        """The wall clock at the start, less the clock that nobody sets."""
        self._unlisted: list[str] = []
        """Names that are not in the list yet: the disk had no room for them."""
        names = self._list.read_text().splitlines() if self._list.exists() else []
        for name in filter(None, dict.fromkeys(names)):
            try:
                stat = (root / "tapes" / name).stat()
            except OSError:
                continue
            self._append(name, stat.st_mtime, stat.st_size)

    def announce(self, path: Path) -> None:
        """List a tape before it is kept: a daemon that is killed then leaves none unlisted."""
        self._unlisted.append(path.name)
        self._write_list()

    def add(self, path: Path, size: int) -> None:
        """Count a tape that was kept."""
        self._append(path.name, self._ahead + time.monotonic(), size)

    def _write_list(self) -> None:
        """Add the new names to the list; without room for them they wait for the next time."""
        try:
            with self._list.open("a") as file:
                file.write("".join(f"{name}\n" for name in self._unlisted))
        except OSError:
            if self._unlisted[0]:
                self._unlisted.insert(0, "")  # ends a line that was written in part
        else:
            self._unlisted.clear()

    def _append(self, name: str, at: float, size: int) -> None:
        self._tapes.append((name, at, size))
        self._bytes += size
        self._metrics.gauges["tape_bytes"] = self._bytes

    def enforce(self, rules: DaemonRules) -> None:
        """Delete the oldest tapes beyond the limits; a wall clock that is set deletes none."""
        if self._unlisted:
            self._write_list()
        now = min(time.time(), self._ahead + time.monotonic())
        oldest = now - rules.max_days * DAY
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
