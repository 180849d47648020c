"""What a program asks its terminal in its output, and which bytes of the input are the replies.

Forms of xterm's control sequences ("XTerm Control Sequences", Moy and others), of kitty's keyboard
protocol, and of DEC's terminals. A reply is one only if its query is open: `CSI 1;2R` is a cursor's
position, or shift and F3.
"""

import re
from collections import Counter
from collections.abc import Iterator

_END = rb"(?:\x07|\x1b\\)"
_QUERIES = {
    "attributes": (rb"\x1b\[0?c", rb"\x1b\[\?[\d;]*c"),
    "version": (rb"\x1b\[>0?c", rb"\x1b\[>[\d;]*c"),
    "unit": (rb"\x1b\[=0?c", rb"\x1bP!\|[^\x1b\x07]*" + _END),
    "status": (rb"\x1b\[5n", rb"\x1b\[[03]n"),
    "cursor": (rb"\x1b\[\??6n", rb"\x1b\[\??\d+;\d+(?:;\d+)?R"),
    "scheme": (rb"\x1b\[\?996n", rb"\x1b\[\?997;\d+n"),
    "mode": (rb"\x1b\[\??\d+\$p", rb"\x1b\[\??\d+;\d+\$y"),
    "keyboard": (rb"\x1b\[\?u", rb"\x1b\[\?\d+u"),
    "name": (rb"\x1b\[>0?q", rb"\x1bP>\|[^\x1b\x07]*" + _END),
    "capability": (rb"\x1bP\+q[^\x1b\x07]*" + _END, rb"\x1bP[01]\+r[^\x1b\x07]*" + _END),
    "setting": (rb"\x1bP\$q[^\x1b\x07]*" + _END, rb"\x1bP[01]\$r[^\x1b\x07]*" + _END),
    "window": (rb"\x1b\[1[1-9]t", rb"\x1b\[[1-9][\d;]*t"),
    "graphics": (rb"\x1b_G[^\x1b\x07]*\x1b\\", rb"\x1b_G[^\x1b\x07]*\x1b\\"),
    "colour": (
        rb"\x1b\](?:\d+;)+\?" + _END,
        rb"\x1b\][\d;]+;rgba?:[\da-fA-F/]+" + _END,
    ),
}
"""Query and reply by kind."""


def _join(position: int) -> re.Pattern[bytes]:
    groups = (b"(?P<%b>%b)" % (kind.encode(), pair[position]) for kind, pair in _QUERIES.items())
    return re.compile(b"|".join(groups))


_ASKED, _REPLIED = _join(0), _join(1)
_UNFINISHED = re.compile(rb"\x1b(?:\[[0-?]*[ -/]*|[\]P_][^\x1b\x07]{0,200}\x1b?)?\Z")
"""A control sequence that may go on in the next bytes; an arrow key is one that is over."""


class TerminalQueries:
    """The queries in one program's output that have no reply yet."""

    def __init__(self) -> None:
        self.open = Counter[str]()
        self._output = self._input = b""

    def find_queries(self, output: bytes) -> list[str]:
        """Return the kinds of the queries that these bytes of output complete, and open them."""
        text = self._output + output
        found = [each.lastgroup or "" for each in _ASKED.finditer(text)]
        last = max((each.end() for each in _ASKED.finditer(text)), default=0)
        started = _UNFINISHED.search(text, last)
        self._output = started[0] if started else b""
        self.open.update(found)
        return found

    def split_input(self, data: bytes) -> Iterator[tuple[str | None, bytes]]:
        """Yield these bytes of input as pairs: the kind of a reply, or None for keys, and bytes.

        An unfinished sequence waits for the next bytes while a query is open.
        """
        text, at = self._input + data, 0
        self._input = b""
        for found in _REPLIED.finditer(text):
            kind = found.lastgroup or ""
            if not self.open[kind]:
                continue
            if found.start() > at:
                yield None, text[at : found.start()]
            self.open[kind] -= 1
            yield kind, found[0]
            at = found.end()
        rest = text[at:]
        started = _UNFINISHED.search(rest) if self.open.total() else None
        if started is not None:
            self._input, rest = started[0], rest[: started.start()]
        if rest:
            yield None, rest

    @property
    def has_rest(self) -> bool:
        """Whether bytes wait that may be the beginning of a reply."""
        return bool(self._input)

    def take_rest(self) -> bytes:
        """Return what still waits, which is keys."""
        rest, self._input = self._input, b""
        return rest
