"""Text of agents and programs on a terminal, which must not act on its control characters."""

import io
import re
import sys
from typing import TextIO, override

_TURNING = (0x61C, 0x200E, 0x200F, *range(0x202A, 0x202F), *range(0x2066, 0x206A))
"""Marks that change the direction of the text after them."""
_ESCAPES = {code: repr(chr(code))[1:-1] for code in (*range(32), *range(127, 160), *_TURNING)}
# As JSON writes them, so that its texts keep their values.
_STREAM_ESCAPES = {code: f"\\u{code:04x}" for code in _ESCAPES if chr(code) not in "\n\r\t"}
_CONTROLS = re.compile(f"[{re.escape(''.join(map(chr, _STREAM_ESCAPES)))}]")
_OURS = re.compile(r"\x1b\[[0-9;]{0,16}m|\x1b\[\d{0,3}[AK]|\x1b\[2K|\x1b\[\?25[hl]")
"""Colours, and what progress lines do: to erase a line, to go up, to hide the cursor."""


def escape_controls(text: str) -> str:
    """Return the text with control characters, C0, C1 and of direction, as Python writes
    them: `\\n`, `\\x1b`, `\\u202e`.
    """
    return text.translate(_ESCAPES)


class EscapingStream(io.TextIOWrapper):
    """A standard stream whose control characters are escaped, but for line ends and tabs.

    On a terminal colours and progress lines of ours remain.
    """

    def __init__(self, plain: io.TextIOWrapper) -> None:
        super().__init__(
            plain.buffer,
            encoding=plain.encoding,
            errors=plain.errors,
            line_buffering=plain.line_buffering,
            write_through=plain.write_through,
        )
        self.plain = plain
        """The stream without escapes, for data that a program reads."""
        self._is_terminal = plain.isatty()

    @override
    def write(self, text: str, /) -> int:
        """Write the text; return its length, as if nothing was escaped."""
        if _CONTROLS.search(text) is None:
            return super().write(text)
        if not self._is_terminal:
            super().write(text.translate(_STREAM_ESCAPES))
            return len(text)
        at = 0
        for ours in _OURS.finditer(text):
            super().write(text[at : ours.start()].translate(_STREAM_ESCAPES) + ours[0])
            at = ours.end()
        super().write(text[at:].translate(_STREAM_ESCAPES))
        return len(text)


def escape_standard_streams() -> None:
    """Escape control characters in all that this process prints from now on."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout = EscapingStream(sys.stdout)
    if isinstance(sys.stderr, io.TextIOWrapper):
        sys.stderr = EscapingStream(sys.stderr)


def open_data_output() -> TextIO:
    """Return standard output for data: escaped on a terminal, as it is in a pipe or a file.

    Whoever writes flushes it, as the process ends by flushing the escaped stream alone.
    """
    stream = sys.stdout
    if isinstance(stream, EscapingStream) and not stream.isatty():
        stream.flush()
        return stream.plain
    return stream
