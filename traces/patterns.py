"""What secrets look like to somebody who does not know them, and where such text can stand.

One regex for all would cost 0.7 ms per 100 KB of JSON and one search per prefix as much, so
both look only at suspects: the runs of 20 or more token characters, with the 40 bytes before
each. A run is found by mapping token characters to one byte and searching twenty of them,
which `bytes.find` does by skipping.
"""

import re
from collections.abc import Iterator

RUN = 20
_CHARACTERS = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-+/=."
MARKS = bytes(97 if byte in _CHARACTERS else 32 for byte in range(256))
_RUN = b"a" * RUN
_CONTEXT = 40

_LOOKS: tuple[tuple[bytes, str, re.Pattern[bytes]], ...] = tuple(
    (prefix, kind, re.compile(prefix + rest))
    for prefix, kind, rest in (
        (b"sk-ant-", "a", rb"[\w-]{16,512}"),
        (b"sk-", "o", rb"(?=[\w-]{0,64}\d)[\w-]{17,512}"),
        *((b"gh%c_" % letter, "g", rb"[A-Za-z0-9]{20,255}") for letter in b"pousr"),
        (b"github_pat_", "g", rb"\w{20,255}"),
        (b"xox", "s", rb"[a-z]-(?=[A-Za-z-]{0,64}\d)[A-Za-z0-9-]{15,255}"),
        (b"AKIA", "w", rb"[A-Z0-9]{16}(?![A-Za-z0-9])"),
        (b"ASIA", "w", rb"[A-Z0-9]{16}(?![A-Za-z0-9])"),
        (b"AIza", "i", rb"[\w-]{35}"),
        (b"eyJ", "j", rb"[\w-]{8,8192}\.eyJ[\w-]{2,8192}\.[\w-]{0,8192}"),
    )
)
"""What a secret begins with, the class it is of, and how it goes on."""

_WORD = re.compile(rb"(?<![A-Za-z0-9])|(?<=\\[nrtbf])")
_IS = rb"[\"'\\]{0,4}\s{0,4}[:=]\s{0,4}[\"'\\]{0,4}"
_VALUE = rb"((?=[A-Za-z+/=._-]{0,64}\d)[\w+/=.-]{20,4096})"
_BEARER = re.compile(rb"(?i:bearer) ([\w.~+/=-]{20,4096})")
_SECRET = re.compile(rb"(?i:secret(?:_?access_?key)?)" + _IS + _VALUE)
_TOKEN = re.compile(rb"(?i:(?:access|refresh|session|id)_?token)" + _IS + _VALUE)
_API_KEY = re.compile(rb"(?i:api[_-]?key)" + _IS + _VALUE)
_NAMED: tuple[tuple[bytes, str, re.Pattern[bytes]], ...] = (
    (b"bearer ", "b", re.compile(rb"(?i:bearer) ([\w.~+/=-]{20,4096})")),
    (b"secret", "n", re.compile(rb"(?i:secret(?:_?access_?key)?)" + _IS + _VALUE)),
    (b"token", "n", re.compile(rb"(?i:(?<=access)|(?<=access_)|(?<=fresh)|(?<=fresh_)|(?<=ssion)"
                               rb"|(?<=ssion_)|(?<=\bid_))(?i:token)" + _IS + _VALUE)),
    (b"api", "n", re.compile(rb"(?i:api[_-]?key)" + _IS + _VALUE)),
)  # fmt: skip
"""What is said before a secret, in lower case, and the whole with the secret as its group."""

_PEM = b"PRIVATE KEY-----"
_KEY_BLOCK = re.compile(
    rb"-----BEGIN [A-Z ]{0,32}PRIVATE KEY-----(?s:(.{16,16384}?))(?:-----END|\Z)"
)
_SPOKEN = re.compile(rb"(?i:bearer |(?:secret|access_?key|token|api[_-]?key)" + _IS + rb")\Z")
_OPEN_BLOCK = re.compile(rb"-----BEGIN [A-Z ]{0,32}PRIVATE KEY-----(?!(?s:.)*-----END)")
LONGEST = 16_384


def suspects(data: bytes) -> bytes:
    """The parts of the data in which a secret of 20 or more token characters can stand."""
    marks, parts = data.translate(MARKS), []
    at = marks.find(_RUN)
    while at >= 0:
        stop = marks.find(b" ", at + RUN)
        stop = len(data) if stop < 0 else stop
        parts.append(data[max(0, at - _CONTEXT) : stop])
        at = marks.find(_RUN, stop)
    return b"\n".join(parts)


def found(data: bytes, hay: bytes) -> Iterator[tuple[int, int, str]]:
    """Start, stop and class of whatever looks like a secret; `hay` is what `suspects` says."""
    for prefix, kind, look in _LOOKS:
        if prefix in hay:
            yield from _matches(data, data, prefix, look, kind)
    small, low = hay.lower(), b""
    for word, kind, named in _NAMED:
        if word in small and any(_matches(hay, small, word, named, kind)):
            low = low or data.lower()
            yield from _matches(data, low, word, named, kind)
    if _PEM in data:
        for match in _KEY_BLOCK.finditer(data):
            yield match.start(1), match.end(1), "m"


def _matches(
    data: bytes, low: bytes, begin: bytes, look: re.Pattern[bytes], kind: str
) -> Iterator[tuple[int, int, str]]:
    at = low.find(begin)
    while at >= 0:
        if (match := look.match(data, at)) and (look.groups or _WORD.match(data, at)):
            start, stop = match.span(look.groups)
            if b"REDACTED" not in data[start:stop]:
                yield start, stop, kind
        at = low.find(begin, at + len(begin))


def unfinished(data: bytes) -> int:
    """Where the text begins that may go on to look like a secret; len(data) if it cannot."""
    tail = data[-LONGEST:]
    base = len(data) - len(tail)
    if _PEM in tail and (block := _OPEN_BLOCK.search(tail)):
        return base + block.end()
    start = tail.translate(MARKS).rfind(b" ") + 1
    run = tail[start:]
    if not run:
        return len(data)
    if _SPOKEN.search(tail, max(0, start - 64), start):
        return base + start
    starts = [at for prefix in _STARTS if (at := run.find(prefix)) >= 0]
    starts += [len(run) - size for size in range(1, min(len(run), 10) + 1) if run[-size:] in _BEGUN]
    return base + start + min(starts, default=len(run))


_STARTS = tuple(prefix for prefix, _, _ in _LOOKS)
_BEGUN = frozenset(prefix[:size] for prefix in _STARTS for size in range(1, len(prefix)))
