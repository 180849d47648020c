"""The imported runs that were removed on request, so that no kept source brings them back.

A line of `imports/.forgotten` is the id of a run, then the digests of its messages: an older state
of the run, in another kept source, is forgotten with it.
"""

import os
from collections.abc import Iterable, Mapping
from pathlib import Path

from traces.importers.shared.conversation import make_run_id


class ForgottenRuns:
    """The list in a store."""

    def __init__(self, root: Path) -> None:
        self._path = root / "imports" / ".forgotten"
        lines = self._path.read_text().splitlines() if self._path.exists() else []
        self._digests = {id: rest for id, *rest in (line.split() for line in lines if line)}

    def has(self, id: str, digest: str, key: object) -> bool:
        """Whether a run was forgotten, or is an older state of one that was."""
        if id in self._digests:
            return True
        source = id.rpartition("-")[0]
        return any(
            digest in digests and make_run_id(source, key, digests[-1]) == other
            for other, digests in self._digests.items()
        )

    def add(self, runs: Mapping[str, Iterable[str]]) -> None:
        """Add runs, with the digests of their messages."""
        self._digests |= {id: list(digests) for id, digests in runs.items()}
        self._write()

    def remember(self, ids: Iterable[str]) -> None:
        """Take runs off the list, as they are imported again."""
        if known := self._digests.keys() & set(ids):
            for id in known:
                del self._digests[id]
            self._write()

    def _write(self) -> None:
        part = self._path.with_name(f".forgotten-{os.getpid()}.part")
        part.write_text("".join(" ".join((id, *d)) + "\n" for id, d in self._digests.items()))
        part.replace(self._path)
