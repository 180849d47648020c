"""Standard input of an agent: pass piped input on and keep its beginning, or play it again.

The agent reads from a pipe that a thread here fills. A pipe holds little, so what the agent does
not read stays mostly unread for the next program; endless input is never waited for.
"""

import os
import select
import stat
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import IO

from recorder.agent.process import AgentStreams
from traces.model import MAX_INPUT_BYTES, AgentInput

_PIECE = 1 << 12


class PipedInput:
    """The input of one run at a time: from a descriptor, or as it was recorded."""

    def __init__(self, source: int | None = None, data: bytes = b"") -> None:
        self._source, self._data = source, data
        self._kept = bytearray()
        self.is_whole = True
        """Whether `kept` is all that the agent could read."""

    @contextmanager
    def open_streams(self, out: IO[bytes] | None) -> Iterator[AgentStreams]:
        """Yield the agent's streams, with `out` for what it prints."""
        with self.open_pipe() as stdin:
            yield AgentStreams(stdin=stdin, stdout=out, stderr=out)

    def to_agent_input(self) -> AgentInput:
        """Return what was passed on, as a tape keeps it."""
        return AgentInput(data=self.kept, whole=self.is_whole)

    @property
    def kept(self) -> bytes:
        """What was passed on, up to MAX_INPUT_BYTES."""
        return bytes(self._kept)

    @contextmanager
    def open_pipe(self) -> Iterator[int]:
        """Yield the descriptor that the agent reads; nothing is passed on afterwards."""
        reader, writer = os.pipe()
        stopped, stop = os.pipe()
        os.set_blocking(writer, False)
        pump = threading.Thread(target=self._pass_on, args=(writer, stopped), daemon=True)
        pump.start()
        try:
            yield reader
        finally:
            os.close(reader)
            os.close(stop)
            pump.join()
            os.close(stopped)

    def _pass_on(self, writer: int, stopped: int) -> None:
        with suppress(BrokenPipeError):
            for piece in self._read_pieces(stopped):
                while piece and not _is_ready(stopped, [writer]):
                    written = os.write(writer, piece)
                    self._keep(piece[:written])
                    piece = piece[written:]
        os.close(writer)

    def _read_pieces(self, stopped: int) -> Iterator[bytes]:
        if self._source is None:
            yield self._data
            return
        while not _is_ready(stopped, [], [self._source]) and (
            piece := os.read(self._source, _PIECE)
        ):
            yield piece

    def _keep(self, piece: bytes) -> None:
        room = MAX_INPUT_BYTES - len(self._kept)
        self._kept += piece[:room]
        self.is_whole = self.is_whole and len(piece) <= room


def _is_ready(stopped: int, writers: list[int], readers: list[int] | None = None) -> bool:
    """Wait until these can be written or read; return whether it was stopped before."""
    ready, _, _ = select.select([stopped, *(readers or [])], writers, [])
    return stopped in ready


def mark_terminal_unread(descriptor: int = 0) -> bool:
    """Prepare `was_terminal_read`; return whether this is a terminal that can be watched.

    Linux sets the access time of a terminal when it is read, if that is of another 8 seconds
    (drivers/tty/tty_io.c, `tty_update_time`).
    """
    if not os.isatty(descriptor):
        return False
    try:
        os.utime(descriptor, ns=(0, os.fstat(descriptor).st_mtime_ns))
    except OSError:  # somebody else's terminal
        return False
    return True


def was_terminal_read(descriptor: int = 0) -> bool:
    """Whether somebody read the terminal since it was marked as unread."""
    try:
        return os.fstat(descriptor).st_atime_ns != 0
    except OSError:  # hung up
        return False


def open_piped_input(descriptor: int = 0) -> PipedInput | None:
    """Return the input of this process, if it is a pipe, a socket or a file."""
    try:
        mode = os.fstat(descriptor).st_mode
    except OSError:  # it is closed
        return None
    is_kept: tuple[Callable[[int], bool], ...] = (stat.S_ISFIFO, stat.S_ISSOCK, stat.S_ISREG)
    return PipedInput(descriptor) if any(each(mode) for each in is_kept) else None
