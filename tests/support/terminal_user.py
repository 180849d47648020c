"""A user at a terminal (a pty): starts a command, waits for texts on the screen, types."""

import fcntl
import os
import pty
import re
import select
import signal
import struct
import termios
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

_CONTROL = re.compile(
    r"\x1b(?:\[[\d;?<>=]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\\\)|.)|[\x00-\x09\x0b-\x1f]"
)


class TerminalUser:
    """One command at a terminal of 24 rows and 80 columns."""

    def __init__(self, command: Sequence[str], folder: Path, env: Mapping[str, str]) -> None:
        self.screen, self._seen = b"", 0
        self.cursor = b""
        """The reply to a query for the cursor's position; a terminal without replies if empty."""
        self._pid, self._terminal = pty.fork()
        if self._pid == 0:
            os.chdir(folder)
            for number in (signal.SIGINT, signal.SIGQUIT, signal.SIGHUP):
                signal.signal(number, signal.SIG_DFL)  # a runner in the background ignores some
            os.execvpe(command[0], list(command), dict(env))
        self.resize(24, 80)

    def resize(self, rows: int, columns: int) -> None:
        """Change the size of the window."""
        size = struct.pack("HHHH", rows, columns, 0, 0)
        fcntl.ioctl(self._terminal, termios.TIOCSWINSZ, size)

    def wait_for(self, text: bytes, seconds: float = 60) -> None:
        """Wait until a text comes after the last one that was waited for."""
        until = time.monotonic() + seconds
        while (at := self.screen.find(text, self._seen)) < 0:
            if not self._read(until):
                raise AssertionError(
                    f"{text!r} never came: {self.screen.decode('utf-8', 'replace')}"
                )
        self._seen = at + len(text)

    def wait_for_pattern(self, pattern: str, seconds: float = 60) -> None:
        """Wait until a regular expression matches what was shown since the last one did."""
        until = time.monotonic() + seconds
        while not re.search(pattern, self.shown()):
            if not self._read(until):
                raise AssertionError(f"{pattern} never came: {self.shown()[-300:]!r}")
        self._seen = len(self.screen)

    def shown(self) -> str:
        """What was shown since the last text that was waited for, without control sequences."""
        return _CONTROL.sub("", self.screen[self._seen :].decode(errors="replace"))

    def type_line(self, text: bytes, enter: bytes, *, echo: str = "") -> None:
        """Type as a person does: what ends the line once the screen shows the text and rests."""
        self.rest()
        os.write(self._terminal, text)
        if echo:
            self.wait_for_pattern(re.escape(echo), 60)
        self.rest()
        os.write(self._terminal, enter)

    def rest(self, quiet: float = 0.5, seconds: float = 5) -> None:
        """Wait until nothing was shown for a while, or the screen does not rest."""
        until = time.monotonic() + seconds
        while time.monotonic() < until and self._read(time.monotonic() + quiet):
            pass

    def type(self, keys: bytes) -> None:
        """Type keys one by one."""
        for key in keys:
            os.write(self._terminal, bytes((key,)))

    def send(self, data: bytes) -> None:
        """Send bytes at once, as a terminal sends a reply."""
        os.write(self._terminal, data)

    def send_if_open(self, data: bytes) -> None:
        """Send bytes, unless the command has ended."""
        with suppress(OSError):
            os.write(self._terminal, data)

    def close(self) -> None:
        """Close the terminal's window."""
        os.close(self._terminal)
        self._terminal = -1

    def wait(self, seconds: float = 120) -> int:
        """Return the exit code of the command, once it has ended."""
        until = time.monotonic() + seconds
        while self._terminal >= 0 and self._read(until):
            pass
        return os.waitstatus_to_exitcode(os.waitpid(self._pid, 0)[1])

    def _read(self, until: float) -> bool:
        ready, _, _ = select.select([self._terminal], [], [], max(until - time.monotonic(), 0))
        try:
            data = os.read(self._terminal, 65536) if ready else b""
        except OSError:  # it has ended
            data = b""
        self.screen += data
        if self.cursor:
            os.write(self._terminal, self.cursor * data.count(b"\x1b[6n"))
        return bool(data)
