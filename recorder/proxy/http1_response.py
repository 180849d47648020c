"""HTTP/1.1 of servers without I/O: encode a request, parse the answer beside its bytes.

An answer's bytes go to the agent as they came, so nothing here decides what the agent gets: the
parser (httptools, which is llhttp) only finds what the taps are shown, and where the answer ends.
It is lenient, as many clients are. Bytes that it cannot parse make the exchange fail; they still go
to the agent, and are kept as they came.
"""

import re
from collections.abc import Callable
from typing import NamedTuple

from httptools import HttpParserError, HttpParserUpgrade, HttpResponseParser

from traces.model import Headers, Request, Response

_NOT_FORWARDED = {"proxy-connection", "proxy-authorization"}
_BODYLESS_STATUSES = (204, 304)
UNPARSED_BYTES = 1 << 18
"""How much of what is no HTTP is kept; one byte more shows that there was more."""
_BLANK_LINE = re.compile(rb"\n\r?\n")
_VERSION = b"HTTP/0.0 "
"""The beginning of an answer; `0` is any digit."""
_NO_DIGITS = bytes.maketrans(b"123456789", b"0" * 9)
_LINE, _HEAD, _END = 0, -1, -2
"""What the parser reached: the end of a line of chunked framing, of a head, of an answer."""
_CONNECTION_FIELD = re.compile(rb"(?i)(connection|keep-alive|proxy-connection)[ \t]*:")


class AnswerEnd(NamedTuple):
    """The end of an answer: complete, or with the reason that it is not."""

    error: str | None
    trailers: Headers = ()
    keeps: bool = False
    """Whether the connection can carry another exchange."""
    truncated: bool = False
    """The server's TLS ended without close_notify."""
    ending: str = ""
    """The code of how the connection ended."""
    instead: Response | None = None
    """A whole answer in place of the server's: of an upstream proxy that did not connect, or of
    another provider's model."""


class AnswerPart(NamedTuple):
    """Bytes that arrived together, and what they add to the answer."""

    raw: bytes
    at: float
    head: Response | None
    pieces: list[bytes]
    """Pieces of the body, without framing."""
    end: AnswerEnd | None
    """Set in the part that completes the answer."""
    find_unparsed: Callable[[], bytes]
    """Returns what so far is neither head nor body, as `Exchange.unparsed`."""


class Http1ResponseReader:
    """Parses one answer; fed with bytes as they arrive."""

    def __init__(self, *, head_only: bool) -> None:
        self.head: Response | None = None
        self.complete = False
        self.error: str | None = None
        """Why the bytes are no HTTP/1.1; nothing more is parsed then."""
        self.trailers: Headers = ()
        self.keeps = False
        self._head_only = head_only
        self._new_head: Response | None = None
        self._pieces: list[bytes] = []
        self._to_eof = self._chunked = False
        self._reason = b""
        self._fields: list[tuple[str, str]] = []
        self._at = 0.0
        self._rest = bytearray()
        """What came since the head or the last byte of the body."""
        self._reached: list[int] = []
        """In these bytes: `_LINE`, `_HEAD`, `_END`, and the lengths of pieces of the body."""
        self._parser = parser = HttpResponseParser(self)
        parser.set_dangerous_leniencies(
            lenient_headers=True,
            lenient_chunked_length=True,
            lenient_transfer_encoding=True,
            lenient_version=True,
            lenient_data_after_close=True,
            lenient_optional_cr_before_lf=True,
            lenient_spaces_after_chunk_size=True,
        )

    def feed(self, data: bytes, at: float) -> None:
        """Parse the next bytes, which arrived at time `at`."""
        if self.complete:
            return
        is_body = self.head is not None and not self._chunked
        if not is_body and len(self._rest) <= UNPARSED_BYTES:
            self._rest += data
        if self.head is None and not self._reached and not self._begins_with_version():
            self.error = self.error or "no version begins it"
        if self.error is not None:
            return
        self._at = at
        self._parse(data)
        if is_body and self.complete:
            self._rest += data
        if self.head is not None:
            self._forget_body()

    def _parse(self, data: bytes) -> None:
        try:
            self._parser.feed_data(data)
        except HttpParserUpgrade:
            if not self.complete:
                self.error = "an upgrade that nobody asked for"
        except HttpParserError as error:
            if not self.complete:
                self.error = str(error)

    def find_unparsed(self) -> bytes:
        """Return what is neither head nor body; nothing if that is no more than a chunk's end."""
        kept = bytes(self._rest[: UNPARSED_BYTES + 1])
        return b"" if self.head is not None and b"\r\n".startswith(kept) else kept

    def _begins_with_version(self) -> bool:
        """Whether the bytes so far do: the parser skips empty lines, which clients do not."""
        return _VERSION.startswith(self._rest[:9].translate(_NO_DIGITS))

    def _forget_body(self) -> None:
        """Drop the bytes up to the last of the body; of a complete answer, up to its end."""
        at = stop = number = 0
        for count, reached in enumerate(self._reached, 1):
            if reached == _HEAD or (reached == _END and self._chunked):
                blank = _BLANK_LINE.search(self._rest, max(0, at - 1))
                at = blank.end() if blank else len(self._rest)
            elif reached == _LINE:
                at = self._rest.find(b"\n", at) + 1
            else:
                at += max(0, reached)
            if reached != _LINE:
                stop, number = at, count
        del self._rest[:stop]
        del self._reached[:number]

    def finish(self) -> bool:
        """Handle the end of the connection; return whether it completes the answer."""
        if self._to_eof and self.error is None:
            self.complete = True
        return self.complete

    def take_head(self) -> Response | None:
        """Return the head, once."""
        head, self._new_head = self._new_head, None
        return head

    def take_pieces(self) -> list[bytes]:
        """Return the pieces of the body since the last call."""
        pieces, self._pieces = self._pieces, []
        return pieces

    # Callbacks of the parser.

    def on_status(self, reason: bytes) -> None:
        self._reason += reason

    def on_header(self, name: bytes, value: bytes) -> None:
        self._fields.append((name.decode("latin-1"), value.rstrip(b" \t").decode("latin-1")))

    def on_headers_complete(self) -> None:
        status, headers = self._parser.get_status_code(), tuple(self._fields)
        reason, self._reason, self._fields = self._reason, b"", []
        if not self.complete:
            self._reached.append(_HEAD)
        if self.complete or status < 200:
            return  # 100 and 103 only announce the answer
        version = self._parser.get_http_version()
        self.keeps, framed, self._chunked = _read_connection_fields(headers, version)
        bodyless = self._head_only or status in _BODYLESS_STATUSES
        self._to_eof = not (framed or bodyless)
        self.keeps = self.keeps and not self._to_eof
        self.head = self._new_head = Response(
            status=status,
            headers=headers,
            reason=reason.decode("latin-1"),
            version=f"HTTP/{version}",
            at=self._at,
        )
        if bodyless:
            self.complete = True

    def on_body(self, data: bytes) -> None:
        if not self.complete:
            self._pieces.append(data)
            self._reached.append(len(data))

    def on_chunk_header(self) -> None:
        if not self.complete:
            self._reached.append(_LINE)

    def on_chunk_complete(self) -> None:
        if not self.complete and self._reached[-1:] != [_LINE]:  # the last one ends with trailers
            self._reached.append(_LINE)

    def on_message_complete(self) -> None:
        if self.head is not None and not self.complete:
            self.complete = True
            self.trailers = tuple(self._fields)
            self._reached.append(_END)


def _read_connection_fields(headers: Headers, version: str) -> tuple[bool, bool, bool]:
    """Return whether the connection stays open, the body's end is marked in it, by chunks."""
    keeps, framed, coding = version == "1.1", False, ""
    for name, value in headers:
        match name.lower():
            case "connection" | "proxy-connection":
                tokens = {token.strip() for token in value.lower().split(",")}
                keeps = "close" not in tokens and (keeps or "keep-alive" in tokens)
            case "content-length":
                framed = True
            case "transfer-encoding":
                coding = value.lower().rpartition(",")[2].strip()
    chunked = coding == "chunked"
    return keeps, chunked if coding else framed, chunked


def announce_close(raw: bytes, head: Response) -> bytes | None:
    """Return the first bytes of an answer with `Connection: close` in their head.

    None if `raw` does not begin with all of this head: then nothing can be announced.
    """
    start, end, rest = raw.partition(b"\r\n\r\n")
    folded = b"\r\n " in start or b"\r\n\t" in start
    if not end or folded or not start.startswith(b"%s %d" % (head.version.encode(), head.status)):
        return None
    line, *fields = start.split(b"\r\n")
    others = [each for each in fields if not _CONNECTION_FIELD.match(each)]
    return b"\r\n".join([line, *others, b"Connection: close"]) + end + rest


def encode_request(
    request: Request, target: str, version: str, more: Headers = ()
) -> tuple[bytes, bytes]:
    """Encode a request's head and body. Its body is complete, so chunks become one.

    Not forwarded are the fields for the proxy, and `expect: 100-continue`, which was answered here.
    """
    chunked = False
    lines = [f"{request.method} {target} HTTP/{version}"]
    for name, value in (*request.headers, *more):
        lowered = name.lower()
        if lowered in _NOT_FORWARDED and (name, value) not in more:
            continue
        if lowered == "expect" and value.lower() == "100-continue":
            continue
        if lowered == "transfer-encoding":
            chunked = True
        lines.append(f"{name}: {value}")
    body = request.body
    if chunked:
        body = b"%x\r\n%b\r\n0\r\n\r\n" % (len(body), body) if body else b"0\r\n\r\n"
    return "\r\n".join([*lines, "", ""]).encode("latin-1"), body
