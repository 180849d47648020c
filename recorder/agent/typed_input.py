"""Input typed at an agent's terminal: pass it on and keep it, or type it again when it is due."""

import os
import signal
import termios
import tty
from collections import defaultdict, deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress

from recorder.agent.terminal import (
    LINES,
    PIECE,
    SHOWN,
    AgentTerminal,
    get_window_size,
    read_mode,
    set_window_size,
)
from traces.model import MAX_INPUT_BYTES, AgentInput, TerminalEvent

MAX_QUIET = 0.3
"""Seconds of quiet output that recorded input waits for at most."""
MIN_QUIET = 0.02
PATIENCE, STARTING = 5.0, 30.0
"""Seconds of quiet output, with no answer under way, after which input that waits is typed: to an
agent that has printed something, and to one that has not.
"""
STALLED = 20.0
"""Seconds without input or progress after which it is typed though the output is never quiet."""
MAX_REPLY_PAUSE = 0.1
"""Seconds after which the beginning of a reply is keys: escape, or a key with alt."""
PAUSE, DRAWING, SPARE, SPARE_BYTES = 0.5, 12.0, 0.1, 500
"""A user who paused this long has seen what was drawn; for how long a replay waits for it, but for
which part and how much: a question after a page of greetings is a small part of what was drawn.
"""
SLOWER = 2
"""How much longer than in the recording an agent may draw the same."""


TYPED = ("keys", "size", "hangup")
"""Kinds of input that a user gives; the others are replies of the terminal."""


class RecordedTerminal(AgentTerminal):
    """Passes on what the user types and keeps it, but for lines typed without echo."""

    def __init__(self, keyboard: int = 0) -> None:
        outputs = tuple(number for number in (1, 2) if os.isatty(number))
        super().__init__(outputs, screen=next(iter(outputs), keyboard))
        self._keyboard: int | None = keyboard
        self._device, self._size = keyboard, (0, 0)
        self._kept, self._kept_bytes = list[tuple[TerminalEvent, bytes]](), 0
        self.is_whole, self._read_at = True, 0.0

    @property
    def keyboard(self) -> int | None:
        return self._keyboard

    def to_agent_input(self) -> AgentInput:
        """Return all that happened, as the tape keeps it."""
        self._keep("keys", self.queries.take_rest(), LINES | SHOWN)
        texts = defaultdict[str, bytearray](bytearray)
        for event, data in self._kept:
            texts["keys" if event.kind == "keys" else "replies"].extend(data)
        return AgentInput(
            data=bytes(texts["keys"]),
            whole=self.is_whole,
            replies=bytes(texts["replies"]),
            terminal=os.environ.get("TERM", ""),
            outputs=self.outputs,
            events=tuple(event for event, _ in self._kept),
        )

    @contextmanager
    def prepare(self, terminal: int) -> Iterator[None]:
        modes = termios.tcgetattr(self._device)
        termios.tcsetattr(terminal, termios.TCSANOW, modes)
        self._follow_size(terminal)
        tty.setraw(self._device, termios.TCSADRAIN)
        try:
            yield
        finally:
            with suppress(termios.error):  # hung up
                termios.tcsetattr(self._device, termios.TCSADRAIN, modes)

    def _follow_size(self, terminal: int) -> None:
        try:
            size = get_window_size(self._device)
        except OSError:  # hung up
            return
        if size != self._size:
            self._size = size
            set_window_size(terminal, *size)
            self._keep("size", b"", read_mode(terminal))

    def tick(self, ours: int) -> None:
        self._follow_size(ours)
        if self.queries.has_rest and self.now - self._read_at > MAX_REPLY_PAUSE:
            self._keep("keys", self.queries.take_rest(), read_mode(ours))

    def read_keyboard(self, ours: int) -> None:
        try:
            data = os.read(self._device, PIECE)
        except OSError:
            data = b""
        mode, self._read_at = read_mode(ours), self.now
        if not data:
            self._keyboard = None
            self._keep("hangup", b"", mode)
            return self.hang_up()
        self.type_bytes(data)
        if mode & LINES and not mode & SHOWN:
            self.is_whole = False
            return None
        for kind, part in self.queries.split_input(data):
            self._keep(kind or "keys", part, mode)
        return None

    def _keep(self, kind: str, data: bytes, mode: int) -> None:
        if kind == "keys" and not data:
            return
        self._kept_bytes += len(data)
        if self._kept_bytes > MAX_INPUT_BYTES:
            self.is_whole = False
            return
        progress, now = self.note_progress(), self.now
        last = self._kept[-1][0].at if self._kept else 0.0
        rows, columns = self._size
        event = TerminalEvent(
            kind=kind,
            at=now,
            quiet=min(self.quiet_seconds, now - last),
            printed=self.has_printed,
            steps=progress.steps,
            exchanges=progress.exchanges,
            answering=progress.is_answering,
            mode=mode,
            drawn=self.drawn,
            size=len(data),
            rows=rows,
            columns=columns,
        )
        self._kept.append((event, data))
        if kind in TYPED:
            self.drawn = 0


class PlayedTerminal(AgentTerminal):
    """Types what was recorded: each input after the step that it followed, and quiet output."""

    def __init__(self, given: AgentInput) -> None:
        super().__init__(given.outputs)
        self._due = deque[tuple[TerminalEvent, bytes]]()
        self._replies = defaultdict[str, deque[bytes]](deque)
        for event, data in given.split_events():
            if event.kind in TYPED:
                self._due.append((event, data))
            else:
                self._replies[event.kind].append(data)
        self._acted = self._last_at = 0.0
        self._missing_steps = self._missing_exchanges = 0
        """How many fewer there were when patience ended: later input does not wait for them."""

    @contextmanager
    def prepare(self, terminal: int) -> Iterator[None]:
        """Take over the first size; a new terminal has the usual modes."""
        if self._due and self._due[0][0].kind == "size":
            event, _ = self._due.popleft()
            set_window_size(terminal, event.rows, event.columns)
        yield

    def hear_queries(self, kinds: Sequence[str]) -> None:
        """Give the recorded replies in their order, the last one again if there are no more."""
        for kind in kinds:
            replies = self._replies[kind]
            if replies:
                self.type_bytes(replies.popleft() if len(replies) > 1 else replies[0])

    def tick(self, ours: int) -> None:
        if not self._due or self._pending or not self._is_due(self._due[0][0], ours):
            return
        event, data = self._due.popleft()
        self._acted, self._last_at, self.drawn = self.now, event.at, 0
        if event.kind == "size":
            set_window_size(ours, event.rows, event.columns)
        elif event.kind == "hangup":
            with suppress(OSError):  # it has ended
                # A shell does this for its jobs; the kernel, for the leader of the session alone.
                os.killpg(os.tcgetpgrp(ours), signal.SIGHUP)
            self.hang_up()
        else:
            self.type_bytes(data)

    def _is_due(self, event: TerminalEvent, ours: int) -> bool:
        progress = self.note_progress()
        quiet = min(self.quiet_seconds, self.now - self._acted)
        if progress.is_answering and not event.answering:
            return False
        is_started = self.has_printed or not event.printed
        steps = progress.steps + self._missing_steps
        exchanges = progress.exchanges + self._missing_exchanges
        if quiet >= (PATIENCE if is_started else STARTING) or self._has_stalled(event):
            self._missing_steps += max(0, event.steps - steps)
            self._missing_exchanges += max(0, event.exchanges - exchanges)
            return True
        is_there = steps >= event.steps and exchanges >= event.exchanges
        is_there = is_there and read_mode(ours) == event.mode and self._is_drawn(event)
        enough = min(max(event.quiet, MIN_QUIET), MAX_QUIET)
        return is_started and is_there and quiet >= enough

    def _get_idle_seconds(self) -> float:
        """Return for how long there was no input, and the conversation did not go on."""
        return self.now - max(self._acted, self.progressed)

    def _has_stalled(self, event: TerminalEvent) -> bool:
        return self._get_idle_seconds() >= max(STALLED, event.at - self._last_at)

    def _is_drawn(self, event: TerminalEvent) -> bool:
        """Return whether nearly as much is drawn as there was; spinners differ.

        How much that was says little of an agent that was drawing when the user typed.
        """
        if (pause := event.at - self._last_at) < PAUSE:
            return True
        if self.drawn < event.drawn - min(event.drawn * SPARE, SPARE_BYTES):
            pause *= SLOWER
        elif event.quiet >= MIN_QUIET:
            return True
        return self._get_idle_seconds() >= min(pause, DRAWING)


def open_typed_input(keyboard: int = 0) -> RecordedTerminal | None:
    """Return the input of this process, if it is a terminal; None in the background of a shell."""
    if not os.isatty(keyboard):
        return None
    with suppress(OSError):  # it is not the terminal of this session, so there is no background
        if os.tcgetpgrp(keyboard) != os.getpgrp():
            return None
    return RecordedTerminal(keyboard)
