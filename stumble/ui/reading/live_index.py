"""The index of the store while other processes record into it.

Indexing reads whole tapes and judges them, so a child does it: the server's memory stays small,
and its pages answer meanwhile.
"""

import asyncio
from contextlib import suppress

from stumble.ui.serving.children import ChildProcesses, store_environment, stumble_command
from stumble.ui.sql import read_page_sql
from traces.store.trace_store import TraceStore

POLL_SECONDS = 0.5
"""Between two looks at the folders."""
REINDEX_SECONDS = 2.0
"""Least time between two children that index."""

type FolderState = tuple[int, ...]


class LiveIndex:
    """Watches the tapes, has them indexed, and counts the changes."""

    def __init__(self, store: TraceStore, children: ChildProcesses) -> None:
        self._store = store
        self._children = children
        self._changed = asyncio.Event()
        self.version = 0
        """Increases whenever a page may show something else."""
        self.warnings: tuple[str, ...] = ()
        """What the last indexing could not read."""

    async def refresh(self) -> None:
        """Index what is new."""
        code, _, errors = await self._children.run(
            stumble_command("sql", "select 1"), env=store_environment(self._store.root)
        )
        lines = errors.decode("utf-8", "replace").splitlines()
        self.warnings = tuple(line for line in lines if line.startswith(("warning:", "stumble:")))
        if code:
            self.warnings += (f"the index could not be written (exit {code})",)
        self.announce()

    async def watch(self) -> None:
        """Refresh whenever tapes appear or grow; runs until it is cancelled."""
        seen, indexed = self._look(), self._look()
        while True:
            await asyncio.sleep(POLL_SECONDS)
            now = await asyncio.to_thread(self._look)
            if now != seen:
                seen = now
                self.announce()
            elif now != indexed:  # quiet since the last look
                indexed = now
                await self.refresh()
                seen = indexed = await asyncio.to_thread(self._look)
                await asyncio.sleep(REINDEX_SECONDS)

    async def wait(self, version: int, seconds: float) -> int:
        """Return the version once it is above this one, or after this time."""
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                while self.version <= version:
                    await self._changed.wait()
        return self.version

    def announce(self) -> None:
        """Have all pages look again."""
        self.version += 1
        self._changed.set()
        self._changed = asyncio.Event()

    def _look(self) -> FolderState:
        """Return what changes with each new tape, and with each open one that grows."""
        store = self._store
        state = [store.tapes.stat().st_mtime_ns]
        with suppress(OSError):
            state.append((store.root / "index" / "trajectories").stat().st_mtime_ns)
        for id in _find_open_runs(store):
            with suppress(OSError):
                state.append((store.tapes / f"{id}.tape").stat().st_size)
        return tuple(state)


def _find_open_runs(store: TraceStore) -> list[str]:
    """Return the newest runs without an end."""
    with store.open_locked() as connection:
        rows = connection.execute(read_page_sql("open_runs")).fetchall()
    return [id for (id,) in rows]
