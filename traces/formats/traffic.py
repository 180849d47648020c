"""What the importers of wire traffic share: exchanges out of files that others wrote.

A reader gives pieces, one after the other: an exchange, or a remark on what could not be read.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from email.utils import parsedate_to_datetime

from traces.encoding import plain
from traces.model import Exchange, Headers, Request, header

NOWHERE = "https://unknown.invalid"
"""Stands for an address that a file does not hold; no such name can ever exist (RFC 2606)."""
TICK = 1e-6
"""Between exchanges whose times nobody knows: their order, and nothing else."""
_GZIP = b"\x1f\x8b"
_BODILESS = (204, 304)


@dataclass(frozen=True, slots=True, kw_only=True)
class Remark:
    """What of a file was not read, or not as it stands, and why."""

    where: str
    why: str
    lost: bool = True
    """False where all was read, and something of it is not what it was on the wire."""


type Piece = Exchange | Remark


@dataclass(frozen=True, slots=True, kw_only=True)
class Traffic:
    """One file as a run: its exchanges, which are read while one goes over them."""

    source: str
    pieces: Iterable[Piece]
    timed: bool
    recorded_at: float | None = None
    """Seconds since the epoch at time 0 of the exchanges."""
    agent: str | None = None


def fields(said: Mapping[str, object] | None) -> Headers:
    """Header fields from a map of name to value or values; any text keeps its bytes."""
    return tuple(
        (latin(str(name)), latin(_text(value)))
        for name, values in (said or {}).items()
        for value in (values if isinstance(values, list | tuple) else [values])
    )


def latin(text: str) -> str:
    """A text as headers hold it: the bytes of its UTF-8 where it is not latin-1."""
    try:
        text.encode("latin-1")
    except UnicodeEncodeError:
        return text.encode("utf-8", "replace").decode("latin-1")
    return text


def _text(value: object) -> str:
    return value.decode("latin-1") if isinstance(value, bytes) else str(value)


def fitting(headers: Headers, body: bytes, *, read: bool, empty: bool = False) -> Headers:
    """Header fields that are true of this body.

    Recorders keep the header and inflate the body (`read`: the file holds it as text), put it
    together anew, or write `REDACTED` over a length; a client that gets such an answer replayed
    would wait for bytes that never come, or inflate what is plain. `empty` is for answers that
    name a length and have no body (HEAD, 304).
    """
    encoded = _encoded(headers, body, read)
    out = []
    for name, value in headers:
        match name.lower():
            case "content-encoding" if not encoded:
                continue
            case "transfer-encoding" if value.lower() != "chunked":
                continue
            case "content-length" if not empty:
                out.append((name, str(len(body))))
            case _:
                out.append((name, value))
    return tuple(out)


def _encoded(headers: Headers, body: bytes, read: bool) -> bool:
    said = header(headers, "content-encoding")
    if said is None or read or not body:
        return False
    if "gzip" in said.lower():
        return body.startswith(_GZIP)
    return plain(headers, body) is not None


def bodiless(request: Request, status: int) -> bool:
    """Whether an answer has no body whatever its headers say."""
    return request.method == "HEAD" or status in _BODILESS


def said_date(headers: Headers) -> float | None:
    """Seconds since the epoch of a `Date` field; None where there is none that can be read."""
    said = header(headers, "date")
    try:
        return parsedate_to_datetime(said).timestamp() if said else None
    except ValueError:
        return None


_CAUSES = (
    ("refused", "refused|connect call failed|unreachable"),
    ("reset", "reset|broken pipe"),
    ("timeout", "time[d ]*out"),
    ("dns", "name or service|getaddrinfo|resolv|dns|internet_disconnected"),
    ("tls", "ssl|tls|certificate"),
    ("cancelled", "abort|cancel|client disconnect"),
)
_CODE = re.compile("(refused|reset|eof|timeout|dns|tls|protocol|cancelled|damaged)(:|$)")


def cause(said: str) -> str:
    """What others say of why no answer came, as `Exchange.error`; `eof` where it fits no code."""
    said = " ".join(said.split())
    if _CODE.match(said):
        return said
    found = (code for code, words in _CAUSES if re.search(words, said, re.IGNORECASE))
    return f"{next(found, 'eof')}: {said}"
