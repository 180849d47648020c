"""HTTP/1.1 in bytes: requests out of what an agent sends, answers into what it reads.

No I/O here. Reading is httptools (llhttp); writing keeps the recorded head, its order and its
case, and touches a field only where the answer could not be framed otherwise:

- the body has the length that `content-length` says, or the answer is to break off: as it is;
  a whole body of another length: the number is corrected in its place;
- `transfer-encoding: chunked`: one HTTP chunk per piece, and `content-length` beside it dropped;
- neither: the recorded connection ended with the answer (`connection: close`, HTTP/1.0), then so
  does this one; or it stayed (HTTP/2, an answer made by a tap), then `transfer-encoding: chunked`
  is added as the last field, so that this one stays too;
- an HTTP/1.0 agent knows no chunks: the field is dropped and the end of the connection is the
  end of the body;
- HEAD, 1xx, 204 and 304 have no body, whatever the head says.

`connection: close` on either side ends the connection after the answer. An answer recorded over
HTTP/2 goes out as HTTP/1.1.
"""

import re
from collections import deque
from collections.abc import Callable
from functools import lru_cache
from typing import Literal, NamedTuple

from httptools import HttpParserError, HttpParserUpgrade, HttpRequestParser

from traces.model import Headers, Response

HEAD_LIMIT = 1 << 20
"""Bytes of one head, or of one chunk line or trailer section, before the answer is 431."""

CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"
ESTABLISHED = b"HTTP/1.1 200 Connection established\r\n\r\n"
REFUSALS = {
    400: b"HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\nconnection: close\r\n\r\n",
    431: b"HTTP/1.1 431 Request Header Fields Too Large\r\n"
    b"content-length: 0\r\nconnection: close\r\n\r\n",
}
"""What is said to bytes that are no request; they never become an exchange."""

_LENGTH = re.compile(rb"\r\n[Cc]ontent-[Ll]ength: ([0-9]{1,9})\r\n")
_KNOWN = 64
"""Heads of one connection that are not parsed again."""
_URLS = 1024
_PORTS = {"http": ":80", "https": ":443"}
_FRAMING = frozenset(
    map(len, ("content-length", "transfer-encoding", "connection", "proxy-connection"))
)
"""How long the names are of the fields that frame an answer."""
_BODY_FIELDS = ("content-length", "transfer-encoding", "expect")


class Asked(NamedTuple):
    """One whole request, and what its connection has to know to answer it."""

    method: str
    target: str
    """As on the request line: a path, an absolute URL, an authority (CONNECT) or `*`."""
    headers: Headers
    body: bytes
    started: float
    """When its first byte was read, on the clock of the connection."""
    version: str
    stays: bool
    """The agent wants to use the connection again."""
    upgrade: bool
    """The agent asks for another protocol on this connection."""


class Requests:
    """The requests of one connection, in order; fed with bytes as they come.

    `ready` holds what was asked. Where the bytes stop making sense its last entry is the status
    of a refusal. After a CONNECT nothing more is parsed and all further bytes are in `rest`.

    Agents say the same head again and again but for its length. One that was parsed, whose request
    came whole and in one segment, is not parsed again where another such request begins with it.
    """

    def __init__(self, now: Callable[[], float]) -> None:
        self.ready: deque[Asked | int] = deque()
        self.rest = b""
        self.waits = False
        """The agent holds back the body of this request until it reads 100 Continue."""
        self._now = now
        self._parser = HttpRequestParser(self)
        self._over = self._inside = False
        self._stays = True
        """No request so far was to be the last one."""
        self._known: dict[tuple[bytes, bytes], tuple[Asked, int]] = {}
        """By the head before the digits of its length and behind them; and where the length is."""
        self._size = 0
        self._upgraded: Asked | None = None
        self._started = 0.0
        self._target = b""
        self._fields: list[tuple[str, str]] = []
        self._headers: Headers = ()
        self._body: list[bytes] = []

    def feed(self, data: bytes) -> None:
        if self._over:
            self.rest += data
            return None
        if self._inside or self.ready or not self._stays:
            return self._parse(data)
        head, digits, rest, body = _parted(data)
        known = self._known.get((head, rest))
        if known is not None and len(body) == int(digits or b"0"):
            return self.ready.append(_again(*known, self._now(), digits, body))
        self._parse(data)
        if not self._inside and len(self.ready) == 1:
            self._learn(self.ready[0], head, digits, rest, body)
        return None

    def _learn(
        self, asked: Asked | int, head: bytes, digits: bytes, rest: bytes, body: bytes
    ) -> None:
        """Know the head again where it and the body are all of what was parsed.

        A body in chunks has more bytes than it says, so such a head is never known.
        """
        if isinstance(asked, int) or not asked.stays or asked.upgrade:
            return
        if asked.body == body and len(body) == int(digits or b"0"):
            if len(self._known) == _KNOWN:
                self._known.clear()
            names = [name.lower() for name, _ in asked.headers]
            place = names.index("content-length") if digits else 0
            self._known[head, rest] = asked._replace(body=b""), place

    def _parse(self, data: bytes) -> None:
        try:
            self._parser.feed_data(data)
        except HttpParserUpgrade as upgrade:
            self._switch(data[upgrade.args[0] :])
        except HttpParserError:
            self._refuse(400)
        else:
            self._size += len(data)
            if self._inside and self._size > HEAD_LIMIT:
                self._refuse(431)

    def _refuse(self, status: int) -> None:
        self.ready.append(status)
        self._over, self.waits = True, False

    def _switch(self, rest: bytes) -> None:
        """llhttp stops at the end of a head that asks for another protocol.

        After CONNECT that is right. Any other request goes on in HTTP/1.1 until somebody agrees
        to switch, and many have bodies (Java sends `upgrade: h2c` with every first request): the
        fields that frame the body are read once more by a fresh parser, which then finds it.
        """
        if self._upgraded is None:
            self._over, self.rest = True, rest
            return
        fields = [(k, v) for k, v in self._upgraded.headers if k.lower() in _BODY_FIELDS]
        self._parser = HttpRequestParser(self)
        self.feed(b"POST / HTTP/1.1\r\n" + _lines(tuple(fields)) + b"\r\n")
        if rest:
            self.feed(rest)

    def on_message_begin(self) -> None:
        self._inside, self._size = True, 0
        self._target, self._fields, self._body = b"", [], []
        self._started = self._now()

    def on_url(self, url: bytes) -> None:
        self._target += url

    def on_header(self, name: bytes, value: bytes) -> None:
        self._fields.append((name.decode("latin-1"), value.rstrip(b" \t").decode("latin-1")))

    def on_headers_complete(self) -> None:
        # What comes through on_header from here on are trailers, which a Request does not have.
        self._headers, self._fields = tuple(self._fields), []
        for name, value in self._headers:
            if len(name) == 6 and name.lower() == "expect" and value.lower() == "100-continue":
                self.waits = self._parser.get_http_version() != "1.0"

    def on_body(self, data: bytes) -> None:
        self._body.append(data)
        self._size, self.waits = 0, False

    def on_message_complete(self) -> None:
        self._inside = self.waits = False
        body = self._body[0] if len(self._body) == 1 else b"".join(self._body)
        if self._upgraded is not None:
            self.ready.append(self._upgraded._replace(body=body))
            self._upgraded = None
            return
        parser = self._parser
        asked = Asked(
            method=parser.get_method().decode("latin-1"),
            target=self._target.decode("latin-1"),
            headers=self._headers,
            body=body,
            started=self._started,
            version=parser.get_http_version(),
            stays=parser.should_keep_alive(),
            upgrade=parser.should_upgrade(),
        )
        self._stays = asked.stays
        if asked.upgrade and asked.method != "CONNECT":
            self._upgraded = asked
        else:
            self.ready.append(asked)


def _parted(data: bytes) -> tuple[bytes, bytes, bytes, bytes]:
    """A head before the digits of its length, the digits, what is behind them, and a body."""
    end = data.find(b"\r\n\r\n") + 4
    if end < 4:
        return data, b"", b"", b""
    if (found := _LENGTH.search(data, 0, end)) is None:
        return data[:end], b"", b"", data[end:]
    start, stop = found.span(1)
    return data[:start], data[start:stop], data[stop:end], data[end:]


def _again(known: Asked, place: int, started: float, digits: bytes, body: bytes) -> Asked:
    """What is asked by a known head with another body, and so with another length."""
    headers = known.headers
    if digits:
        length = headers[place][0], digits.decode()
        headers = (*headers[:place], length, *headers[place + 1 :])
    return Asked(
        method=known.method,
        target=known.target,
        headers=headers,
        body=body,
        started=started,
        version=known.version,
        stays=known.stays,
        upgrade=False,
    )


@lru_cache(maxsize=_URLS)
def absolute(scheme: str, authority: str, path: str) -> str:
    """The URL as mitmproxy records it: without the default port, never without a path."""
    host = authority.removesuffix(_PORTS.get(scheme, ""))
    if path == "*":
        path = ""  # RFC 9112 3.2.4: OPTIONS * through a proxy is a URL without a path
    elif not path.startswith("/"):
        path = "/" + path
    return f"{scheme}://{host}{path}"


@lru_cache(maxsize=_URLS)
def normal(url: str) -> str:
    """An absolute URL of a request line, written as `absolute` writes it."""
    scheme, _, rest = url.partition("://")
    authority, slash, path = rest.partition("/")
    if "?" in authority or "#" in authority:
        end = min(at for mark in "?#" if (at := authority.find(mark)) >= 0)
        authority, path = authority[:end], authority[end:] + slash + path
    return absolute(scheme.lower(), authority, "/" + path)


def host(authority: str) -> str:
    """The host of `host:port`, without the brackets of an IPv6 address."""
    name, colon, port = authority.rpartition(":")
    return (name if colon and port.isdecimal() else authority).strip("[]")


class Framing(NamedTuple):
    """How one answer stands on the wire."""

    head: bytes
    body: Literal["none", "length", "chunked", "close"]
    stays: bool
    """The connection can carry another exchange after this answer."""

    def before(self, size: int) -> bytes:
        """What precedes `size` bytes of body that came together."""
        return b"%x\r\n" % size if self.body == "chunked" else b""

    def after(self) -> bytes:
        """What follows them."""
        return b"\r\n" if self.body == "chunked" else b""

    def end(self, trailers: Headers) -> bytes:
        """What says that the body is whole."""
        return b"0\r\n" + _lines(trailers) + b"\r\n" if self.body == "chunked" else b""


def framing(asked: Asked, response: Response, *, length: int | None, cut: bool = False) -> Framing:
    """The framing of an answer whose body has `length` bytes; None where it is yet to come."""
    old = asked.version == "1.0" or response.version == "HTTP/1.0"
    declared: str | None = None
    chunked = False
    stays = asked.stays and not old and response.status != 101
    for name, value in response.headers:
        if len(name) not in _FRAMING:
            continue
        match name.lower():
            case "content-length":
                declared = value
            case "transfer-encoding":
                chunked = value.lower().rpartition(",")[2].strip() == "chunked"
            case "connection" | "proxy-connection":
                stays = stays and "close" not in value.lower()
    status, headers = response.status, response.headers
    body: Literal["none", "length", "chunked", "close"]
    if asked.method == "HEAD" or status < 200 or status in (204, 304):
        body = "none"
    elif chunked and not old:
        body = "chunked"
        headers = _without(headers, "content-length") if declared is not None else headers
    elif chunked:
        body, headers = "close", _without(headers, "transfer-encoding", "content-length")
    elif declared is not None:
        body = "length"
        if length is not None and not _fits(declared, length, cut):
            headers = tuple(
                (name, str(length) if name.lower() == "content-length" else value)
                for name, value in headers
            )
    elif stays:
        body, headers = "chunked", (*headers, ("transfer-encoding", "chunked"))
    else:
        body = "close"
    version = "HTTP/1.0" if response.version == "HTTP/1.0" else "HTTP/1.1"
    line = f"{version} {status} {response.reason}\r\n"
    return Framing(_lines(headers, line, "\r\n"), body, stays and body != "close")


def _fits(declared: str, length: int, cut: bool) -> bool:
    return declared.isdecimal() and (length == int(declared) or (cut and length < int(declared)))


def _without(headers: Headers, *names: str) -> Headers:
    return tuple((name, value) for name, value in headers if name.lower() not in names)


def _lines(headers: Headers, before: str = "", after: str = "") -> bytes:
    fields = [f"{name}: {value}\r\n" for name, value in headers]
    return "".join([before, *fields, after]).encode("latin-1")
