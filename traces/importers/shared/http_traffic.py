"""Shared parts of the HTTP traffic importers: exchanges from files of other tools.

A reader yields pieces: an exchange, or a remark on data that could not be read.
"""

import re
from collections.abc import Iterable, Mapping
from email.utils import parsedate_to_datetime

from msgspec import Struct

from traces.bodies.content_encoding import decode_content
from traces.model import Exchange, Headers, Request, find_header

UNKNOWN_URL = "https://unknown.invalid"
"""Replaces a URL that the file lacks; this host name can never exist (RFC 2606)."""
UNTIMED_STEP = 1e-6
"""Seconds between exchanges with unknown times, which then show only their order."""
_GZIP = b"\x1f\x8b"
_BODILESS = (204, 304)


class ImportRemark(Struct, frozen=True, kw_only=True):
    """A part of a file that was not read, or not as it is, and the reason."""

    where: str
    why: str
    lost: bool = True
    """False if all was read, but differs from the traffic on the wire."""


type TrafficPiece = Exchange | ImportRemark


class ImportedTraffic(Struct, frozen=True, kw_only=True):
    """One file as a run; its exchanges are read during iteration."""

    source: str
    pieces: Iterable[TrafficPiece]
    timed: bool
    recorded_at: float | None = None
    """Seconds since the epoch at time 0 of the exchanges."""
    agent: str | None = None


def to_headers(said: Mapping[str, object] | None) -> Headers:
    """Return header fields from a map of name to value or values; any text keeps its bytes."""
    return tuple(
        (to_latin1_text(str(name)), to_latin1_text(_to_header_text(value)))
        for name, values in (said or {}).items()
        for value in (values if isinstance(values, list | tuple) else [values])
    )


def to_latin1_text(text: str) -> str:
    """Return a text in the form headers have: as its UTF-8 bytes if it is not latin-1."""
    try:
        text.encode("latin-1")
    except UnicodeEncodeError:
        return text.encode("utf-8", "replace").decode("latin-1")
    return text


def _to_header_text(value: object) -> str:
    return value.decode("latin-1") if isinstance(value, bytes) else str(value)


def fit_headers_to_body(
    headers: Headers, body: bytes, *, read: bool, empty: bool = False
) -> Headers:
    """Return header fields that fit this body.

    Recorders keep the header and decompress the body (`read`: the file holds it as text), serialize
    it again, or write `REDACTED` over a length. A client that gets such a response replayed would
    wait for bytes that never come, or decompress plain data. `empty` is for responses that declare
    a length and have no body (HEAD, 304).
    """
    encoded = _is_still_encoded(headers, body, read)
    fitted = []
    for name, value in headers:
        match name.lower():
            case "content-encoding" if not encoded:
                continue
            case "transfer-encoding" if value.lower() != "chunked":
                continue
            case "content-length" if not empty:
                fitted.append((name, str(len(body))))
            case _:
                fitted.append((name, value))
    return tuple(fitted)


def _is_still_encoded(headers: Headers, body: bytes, read: bool) -> bool:
    encoding = find_header(headers, "content-encoding")
    if encoding is None or read or not body:
        return False
    if "gzip" in encoding.lower():
        return body.startswith(_GZIP)
    return decode_content(headers, body) is not None


def is_bodiless(request: Request, status: int) -> bool:
    """Whether a response has no body, whatever its headers declare."""
    return request.method == "HEAD" or status in _BODILESS


def read_date_header(headers: Headers) -> float | None:
    """Return the `Date` field in seconds since the epoch; None if it is missing or invalid."""
    date = find_header(headers, "date")
    try:
        return parsedate_to_datetime(date).timestamp() if date else None
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


def normalize_traffic_error(text: str) -> str:
    """Convert another tool's error message to `Exchange.error`; `eof` if no code fits."""
    text = " ".join(text.split())
    if _CODE.match(text):
        return text
    codes = (code for code, words in _CAUSES if re.search(words, text, re.IGNORECASE))
    return f"{next(codes, 'eof')}: {text}"
