"""Unix-socket channel for run events: facts about a run that are not in its traffic.

The socket is in a folder only the user can access, and an environment variable of the run's command
names it. It accepts one connection and is then removed; the command connects before it starts any
other process, so no other process can send events. Each line to the run is a JSON list `[name,
data]`, answered in order by a JSON object; a JSON string sent by the run is an unsolicited word to
the command.

While connected, no other process of the same user can read the command's memory or take its socket
(Linux; root can).
"""

import asyncio
import json
import os
import sys
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Self

from msgspec import Struct, field

from sandbox.kernel import PR_SET_DUMPABLE, set_process_option

RUN_EVENTS_VARIABLE = "STUMBLE_MARKS"
MAX_LINE_BYTES = 1 << 24
"""Maximum length of one line in bytes."""

type RunEventData = Mapping[str, object]
type RunEventHandler = Callable[[str, RunEventData], RunEventData]
"""Takes an event's name and data; returns the answer to the client."""


class RunEventServer(Struct, eq=False):
    """The run's end of the channel."""

    path: Path
    _line: asyncio.StreamWriter | None = field(default=None)

    def send_word(self, word: str) -> None:
        """Send a word to the client, if one is connected."""
        if self._line is not None and not self._line.is_closing():
            self._line.write(json.dumps(word).encode() + b"\n")


@asynccontextmanager
async def serve_run_events(path: Path, heard: RunEventHandler) -> AsyncIterator[RunEventServer]:
    """Serve one client while the block runs; an exception raised by `heard` is raised here."""
    task, failures = asyncio.current_task(), list[BaseException]()
    assert task is not None
    events, serving = RunEventServer(path), list[asyncio.Task[None]]()

    def come(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if serving:
            writer.close()
            return
        server.close()
        path.unlink(missing_ok=True)
        events._line = writer
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

    server = await asyncio.start_unix_server(come, path, limit=MAX_LINE_BYTES)
    try:
        yield events
    except asyncio.CancelledError:
        if not failures or task.uncancel() > 0:
            raise
    finally:
        server.close()
        for each in serving:
            each.cancel()
        await asyncio.gather(*serving, return_exceptions=True)
        if events._line is not None:
            events._line.close()
    if failures:
        raise failures[0]


class RunEventClient:
    """The command's end of the channel: send events, and receive the run's words."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer
        self._answers: asyncio.Queue[RunEventData | None] = asyncio.Queue()
        self.words: asyncio.Queue[str] = asyncio.Queue()
        self._listening = asyncio.create_task(self._read_lines())

    async def send_event(self, name: str, data: RunEventData) -> RunEventData:
        """Send an event and return the run's answer, which follows once the event is on the tape.

        Raises ConnectionError if the run is over.
        """
        self._writer.write(json.dumps([name, dict(data)]).encode() + b"\n")
        await self._writer.drain()
        answer = await self._answers.get()
        if answer is None:
            raise ConnectionError("the run is over")
        return answer

    async def _read_lines(self) -> None:
        with suppress(ConnectionError):
            while line := await self._reader.readline():
                message = json.loads(line)
                if isinstance(message, str):
                    self.words.put_nowait(message)
                else:
                    self._answers.put_nowait(message)
        self._answers.put_nowait(None)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        self._listening.cancel()
        await asyncio.gather(self._listening, return_exceptions=True)
        self._writer.close()


async def connect_run_events() -> RunEventClient | None:
    """Connect to the run's event server; None outside a run.

    Call this before any other process is started.
    """
    path = os.environ.pop(RUN_EVENTS_VARIABLE, None)
    if path is None:
        return None
    if sys.platform == "linux":
        set_process_option(PR_SET_DUMPABLE, 0)
    reader, writer = await asyncio.open_unix_connection(path, limit=MAX_LINE_BYTES)
    return RunEventClient(reader, writer)
