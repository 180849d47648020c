"""A terminal of ours (a pty) between the user's and the agent, and what happens at it.

`AgentTerminal` moves bytes in a thread; what it does with input is up to its subclasses: one passes
on and keeps what the user types, one types what was recorded.
"""

import fcntl
import os
import select
import struct
import termios
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import IO

from msgspec import Struct

from recorder.agent.process import AgentStreams
from recorder.agent.terminal_queries import TerminalQueries

PIECE = 1 << 14
TICK = 0.02
"""Seconds between two looks at what is due: sizes, recorded input."""
_LOCAL_FLAGS = 3
_WINDOW, _MAX_SIZE = struct.Struct("HHHH"), 0xFFFF


class Progress(Struct, frozen=True, kw_only=True):
    """How far a run's conversation is."""

    steps: int = 0
    """Steps so far; see `ConversationTracker.steps`."""
    exchanges: int = 0
    """Requests so far, of any kind."""
    is_answering: bool = False
    """Whether an answer of a model is under way."""


class AgentTerminal:
    """The terminal of one run at a time."""

    def __init__(self, outputs: tuple[int, ...], screen: int = 1) -> None:
        """`outputs`: which of 1 and 2 are this terminal; `screen` is where its output goes."""
        self.outputs, self._screen = outputs, screen
        self.measure_progress: Callable[[], Progress] = Progress
        self.queries = TerminalQueries()
        self._pending = bytearray()
        self._began = self._printed = time.monotonic()
        self.has_printed = self._has_hung_up = False
        self.drawn = 0
        """Bytes of output since the last input, or since the conversation went on."""
        self.progressed = 0.0
        """When the conversation last went on, in seconds since the terminal was opened."""
        self._progress = Progress()

    @contextmanager
    def open_streams(self, out: IO[bytes] | None) -> Iterator[AgentStreams]:
        """Yield the agent's streams: this terminal, and `out` for outputs that are none."""
        ours, theirs = os.openpty()
        os.set_blocking(ours, False)
        self._screen = out.fileno() if out else self._screen
        stopped, stop = os.pipe()
        self._began = self._printed = time.monotonic()
        pump = threading.Thread(target=self._pump, args=(ours, stopped), daemon=True)
        with self.prepare(theirs):
            pump.start()
            stdout, stderr = (theirs if number in self.outputs else out for number in (1, 2))
            try:
                yield AgentStreams(stdin=theirs, stdout=stdout, stderr=stderr, terminal=True)
            finally:
                os.close(stop)
                pump.join()
                for each in (theirs, stopped):
                    os.close(each)

    @contextmanager
    def prepare(self, terminal: int) -> Iterator[None]:
        """Give the agent's terminal its first size and modes, for as long as the block runs."""
        yield

    @property
    def keyboard(self) -> int | None:
        """A descriptor whose bytes are input; None for none."""
        return None

    def read_keyboard(self, ours: int) -> None:
        """Handle bytes of the keyboard."""

    def tick(self, ours: int) -> None:
        """Handle what is due."""

    def note_progress(self) -> Progress:
        """Return how far the conversation is; what was drawn before it went on counts no more."""
        progress = self.measure_progress()
        if progress != self._progress:
            self._progress, self.progressed, self.drawn = progress, self.now, 0
        return progress

    def type_bytes(self, data: bytes) -> None:
        """Queue input for the agent."""
        self._pending += data

    def hear_queries(self, kinds: list[str]) -> None:
        """Handle queries in the agent's output."""

    def hang_up(self) -> None:
        """Close the agent's terminal, as a window that is closed does."""
        self._has_hung_up = True

    @property
    def quiet_seconds(self) -> float:
        """Seconds since the agent's last output."""
        return time.monotonic() - self._printed

    @property
    def now(self) -> float:
        """Seconds since the terminal was opened."""
        return time.monotonic() - self._began

    def _pump(self, ours: int, stopped: int) -> None:
        while not self._has_hung_up:
            readers = [ours, stopped, *([] if self.keyboard is None else [self.keyboard])]
            ready, writable, _ = select.select(readers, [ours] if self._pending else [], [], TICK)
            if ours in ready:
                self._show_output(ours)
            self.tick(ours)  # a window that was resized before a key has its new size first
            if self.keyboard is not None and self.keyboard in ready:
                self.read_keyboard(ours)
            if ours in writable:
                self._write_input(ours)
            if stopped in ready:
                break
        while self._show_output(ours):
            pass
        os.close(ours)

    def _write_input(self, ours: int) -> None:
        with suppress(BlockingIOError):
            del self._pending[: os.write(ours, self._pending[:PIECE])]

    def _show_output(self, ours: int) -> bool:
        """Pass output on; return whether there was some."""
        try:
            data = os.read(ours, PIECE)
        except OSError:  # nothing now, or nobody has the other side open
            return False
        self._printed, self.has_printed = time.monotonic(), True
        self.note_progress()
        self.drawn += len(data)
        if kinds := self.queries.find_queries(data):
            self.hear_queries(kinds)
        with suppress(OSError):  # the user's terminal hung up
            while data:
                data = data[os.write(self._screen, data) :]
        return True


def read_mode(terminal: int) -> int:
    """Return a terminal's mode: 1 if it gives whole lines, plus 2 if it shows what is typed."""
    flags = termios.tcgetattr(terminal)[_LOCAL_FLAGS]
    return bool(flags & termios.ICANON) | bool(flags & termios.ECHO) << 1


LINES, SHOWN = 1, 2


def get_window_size(terminal: int) -> tuple[int, int]:
    """Return rows and columns."""
    rows, columns, _, _ = _WINDOW.unpack(
        fcntl.ioctl(terminal, termios.TIOCGWINSZ, bytes(_WINDOW.size))
    )
    return rows, columns


def set_window_size(terminal: int, rows: int, columns: int) -> None:
    """Set rows and columns; the programs at the terminal get SIGWINCH."""
    size = (min(max(each, 0), _MAX_SIZE) for each in (rows, columns))
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, _WINDOW.pack(*size, 0, 0))
