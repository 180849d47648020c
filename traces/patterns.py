"""What secrets look like to somebody who does not know them, and where such text can stand.

One regex for all would cost 0.7 ms per 100 KB of JSON and one search per prefix as much, so
both look only at suspects: the runs of 20 or more token characters, with the 40 bytes before
each. A run is found by mapping token characters to one byte and searching twenty of them,
which `bytes.find` does by skipping. (For bytes `find` is faster than `in`, which first tries
whether it was given a number and raises an error inside.)
"""

import re

RUN = 20
_CHARACTERS = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-+/=."
MARKS = bytes(97 if byte in _CHARACTERS else 32 for byte in range(256))
_RUN = b"a" * RUN
_CONTEXT = 40

type _Look = tuple[bytes, str, re.Pattern[bytes]]


def _looks(*looks: tuple[bytes, str, bytes]) -> tuple[_Look, ...]:
    return tuple((prefix, kind, re.compile(prefix + rest)) for prefix, kind, rest in looks)


_LOOKS: tuple[tuple[int, bytes, tuple[_Look, ...]], ...] = (
    (
        ord("-"),
        b"sk-",
        _looks(
            (b"sk-ant-", "a", rb"[\w-]{16,512}"),
            (b"sk-", "o", rb"(?=[\w-]{0,64}\d)[\w-]{17,512}"),
        ),
    ),
    (
        ord("-"),
        b"xox",
        _looks((b"xox", "s", rb"[a-z]-(?=[A-Za-z-]{0,64}\d)[A-Za-z0-9-]{15,255}")),
    ),
    (
        ord("_"),
        b"gh",
        _looks(*((b"gh%c_" % letter, "g", rb"[A-Za-z0-9]{20,255}") for letter in b"pousr")),
    ),
    (ord("_"), b"github_pat_", _looks((b"github_pat_", "g", rb"\w{20,255}"))),
    (
        ord("I"),
        b"IA",
        _looks(
            (b"AKIA", "w", rb"[A-Z0-9]{16}(?![A-Za-z0-9])"),
            (b"ASIA", "w", rb"[A-Z0-9]{16}(?![A-Za-z0-9])"),
        ),
    ),
    (ord("I"), b"AIza", _looks((b"AIza", "i", rb"[\w-]{35}"))),
    (
        ord("J"),
        b"eyJ",
        _looks((b"eyJ", "j", rb"[\w-]{8,8192}\.eyJ[\w-]{2,8192}\.[\w-]{0,8192}")),
    ),
)
"""What a secret begins with, the class it is of, and how it goes on.

Those that share a byte and some text come together with these, since most texts have neither.
"""
_SHORT = 600
"""Bytes that the longest of them but the last one cannot have."""

_WORD = re.compile(rb"(?<![A-Za-z0-9])|(?<=\\[nrtbf])")
_IS = rb"[\"'\\]{0,4}\s{0,4}[:=]\s{0,4}[\"'\\]{0,4}"
_VALUE = rb"((?=[A-Za-z+/=._-]{0,64}\d)[\w+/=.-]{20,4096})"
_NAMED: tuple[tuple[bytes, str, re.Pattern[bytes]], ...] = (
    (b"bearer ", "b", re.compile(rb"(?i:bearer) ([\w.~+/=-]{20,4096})")),
    (b"secret", "n", re.compile(rb"(?i:secret(?:_?access_?key)?)" + _IS + _VALUE)),
    (b"token", "n", re.compile(rb"(?i:(?<=access)|(?<=access_)|(?<=fresh)|(?<=fresh_)|(?<=ssion)"
                               rb"|(?<=ssion_)|(?<=\bid_))(?i:token)" + _IS + _VALUE)),
    (b"api", "n", re.compile(rb"(?i:api[_-]?key)" + _IS + _VALUE)),
)  # fmt: skip
"""What is said before a secret, in lower case, and the whole with the secret as its group."""

_PEM, _DASHES = b"PRIVATE KEY-----", b"-----"  # a text of one byte is found sooner
_KEY_BLOCK = re.compile(
    rb"-----BEGIN [A-Z ]{0,32}PRIVATE KEY-----(?s:(.{16,16384}?))(?:-----END|\Z)"
)
_SPOKEN = re.compile(rb"(?i:bearer |(?:secret|access_?key|token|api[_-]?key)" + _IS + rb")\Z")
_OPEN_BLOCK = re.compile(rb"-----BEGIN [A-Z ]{0,32}PRIVATE KEY-----(?!(?s:.)*-----END)")
LONGEST = 16_384

type Found = tuple[int, int, str]
"""Start, stop and class."""


def suspects(data: bytes) -> bytes:
    """The parts of the data in which a secret of 20 or more token characters can stand."""
    marks, parts = data.translate(MARKS), []
    at = marks.find(_RUN)
    while at >= 0:
        stop = marks.find(b" ", at + RUN)
        stop = len(data) if stop < 0 else stop
        parts.append(data[max(0, at - _CONTEXT) : stop])
        at = marks.find(_RUN, stop)
    return b"\n".join(dict.fromkeys(parts))


def found(data: bytes, hay: bytes) -> list[Found]:
    """Start, stop and class of whatever looks like a secret; `hay` is what `suspects` says."""
    out = list[Found]()
    if hay:
        for byte, text, looks in _LOOKS:
            if byte in hay and hay.find(text) >= 0:
                for prefix, kind, look in looks:
                    if hay.find(prefix) >= 0:
                        out += _matches(data, data, prefix, look, kind)
        small, low = hay.lower(), b""
        for word, kind, named in _NAMED:
            if small.find(word) >= 0 and _matches(hay, small, word, named, kind):
                low = low or data.lower()
                out += _matches(data, low, word, named, kind)
    if data.find(_DASHES) >= 0 and data.find(_PEM) >= 0:
        out += [(match.start(1), match.end(1), "m") for match in _KEY_BLOCK.finditer(data)]
    return out


def _matches(
    data: bytes, low: bytes, begin: bytes, look: re.Pattern[bytes], kind: str
) -> list[Found]:
    out, at = list[Found](), low.find(begin)
    while at >= 0:
        if (match := look.match(data, at)) and (look.groups or _WORD.match(data, at)):
            start, stop = match.span(look.groups)
            if b"REDACTED" not in data[start:stop]:
                out.append((start, stop, kind))
        at = low.find(begin, at + len(begin))
    return out


def unfinished(data: bytes) -> int:
    """Where the text begins that may go on to look like a secret; len(data) if it cannot."""
    at = data.find(_PEM, -LONGEST)
    if at >= 0 and (block := _OPEN_BLOCK.search(data, max(0, len(data) - LONGEST))):
        return block.end()
    if not data or data[-1] not in _CHARACTERS:
        return len(data)
    return _in_run(data[-LONGEST:], max(0, len(data) - LONGEST))


def _in_run(tail: bytes, base: int) -> int:
    start = _run(tail)
    if _SPOKEN.search(tail, max(0, start - 64), start):
        return base + start
    run, last = tail[start:], tail[max(start, len(tail) - _SHORT) :]
    begun = [len(tail) - len(last) + at for each in _STARTS if (at := last.find(each)) >= 0]
    begun += [start + at for at in (run.find(_LONG),) if at >= 0]
    begun += [len(tail) - size for size in range(1, min(len(run), 10) + 1) if run[-size:] in _BEGUN]
    return base + min(begun, default=len(tail))


def _run(text: bytes) -> int:
    """Where the run of token characters begins that the text ends in."""
    size = 64
    while (at := text[-size:].translate(MARKS).rfind(b" ")) < 0 and size < len(text):
        size *= 8
    return max(0, len(text) - size) + at + 1


*_PREFIXES, _LONG = (prefix for _, _, looks in _LOOKS for prefix, _, _ in looks)
_STARTS = tuple(_PREFIXES)
_BEGUN = frozenset(prefix[:size] for prefix in (*_STARTS, _LONG) for size in range(1, len(prefix)))
