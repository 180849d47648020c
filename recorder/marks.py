"""The desk at which the command of a run tells facts beside its traffic, and the teller's end.

A unix socket in a folder that is the user's alone, which the command's environment names. It takes
one connection and is gone then; so the command, which connects before it starts anything else, is
the only one that can tell. Each line to the run is a JSON list `[name, data]`, answered by a JSON
object in the same order; a JSON text that nobody asked for is a word of the run's own.

While it tells, no other process of the same user may look into the command's memory or take its
socket (Linux; root may do anything).
"""

import asyncio
import json
import os
import sys
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

from recorder.minder import PR_SET_DUMPABLE, prctl

VARIABLE = "STUMBLE_MARKS"
LONGEST = 1 << 24
"""Bytes of one line."""

type Facts = Mapping[str, object]
type Heard = Callable[[str, Facts], Facts]
"""Takes in a fact, and says what the teller is to know."""


@dataclass(slots=True, eq=False)
class Desk:
    """The run's end."""

    path: Path
    _line: asyncio.StreamWriter | None = field(default=None)

    def say(self, word: str) -> None:
        """A word to the teller, if there is one."""
        if self._line is not None and not self._line.is_closing():
            self._line.write(json.dumps(word).encode() + b"\n")


@asynccontextmanager
async def listening(path: Path, heard: Heard) -> AsyncIterator[Desk]:
    """Serve one teller for as long as the block runs; what `heard` raises is raised here."""
    task, failures = asyncio.current_task(), list[BaseException]()
    assert task is not None
    desk, serving = Desk(path), list[asyncio.Task[None]]()

    def come(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if serving:
            writer.close()
            return
        server.close()
        path.unlink(missing_ok=True)
        desk._line = writer
        serving.append(asyncio.create_task(serve(reader, writer)))
        serving[0].add_done_callback(served)

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(ConnectionError):  # the command has ended
            while line := await reader.readline():
                name, data = json.loads(line)
                writer.write(json.dumps(heard(name, data)).encode() + b"\n")
                await writer.drain()

    def served(over: asyncio.Task[None]) -> None:
        if not over.cancelled() and (error := over.exception()) is not None:
            failures.append(error)
            task.cancel()

    server = await asyncio.start_unix_server(come, path, limit=LONGEST)
    try:
        yield desk
    except asyncio.CancelledError:
        if not failures or task.uncancel() > 0:
            raise
    finally:
        server.close()
        for each in serving:
            each.cancel()
        await asyncio.gather(*serving, return_exceptions=True)
        if desk._line is not None:
            desk._line.close()
    if failures:
        raise failures[0]


class Teller:
    """The command's end: `tell` a fact, and hear the run's own words."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer
        self._answers: asyncio.Queue[Facts | None] = asyncio.Queue()
        self.words: asyncio.Queue[str] = asyncio.Queue()
        self._listening = asyncio.create_task(self._listen())

    async def tell(self, name: str, data: Facts) -> Facts:
        """What the run says to it, once it is on the tape; ConnectionError where it is over."""
        self._writer.write(json.dumps([name, dict(data)]).encode() + b"\n")
        await self._writer.drain()
        answer = await self._answers.get()
        if answer is None:
            raise ConnectionError("the run is over")
        return answer

    async def _listen(self) -> None:
        with suppress(ConnectionError):
            while line := await self._reader.readline():
                said = json.loads(line)
                if isinstance(said, str):
                    self.words.put_nowait(said)
                else:
                    self._answers.put_nowait(said)
        self._answers.put_nowait(None)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        self._listening.cancel()
        await asyncio.gather(self._listening, return_exceptions=True)
        self._writer.close()


async def teller() -> Teller | None:
    """The run's only teller, which must be made before any other process; None without a run."""
    path = os.environ.pop(VARIABLE, None)
    if path is None:
        return None
    if sys.platform == "linux":
        prctl(PR_SET_DUMPABLE, 0)
    reader, writer = await asyncio.open_unix_connection(path, limit=LONGEST)
    return Teller(reader, writer)
