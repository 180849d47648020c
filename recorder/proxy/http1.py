"""HTTP/1.1 without I/O: parse an agent's requests, frame the answers to it.

Reading uses httptools (llhttp); writing keeps the recorded head with its order and case, and
changes a field only if the answer could not be framed otherwise:

- The body has the length in `content-length`, or the answer is to break off: unchanged.
  A complete body of another length: the number is corrected in place.
- `transfer-encoding: chunked`: one HTTP chunk per piece; `content-length`, if present, is dropped.
- Neither: if the recorded connection ended with the answer (`connection: close`, HTTP/1.0), so
  does this one; if it stayed open (HTTP/2, an answer made by a tap), `transfer-encoding: chunked`
  is added as the last field, so that this one stays open too.
- For an HTTP/1.0 agent, which does not support chunks, the field is dropped and the end of the
  connection ends the body.
- HEAD, 1xx, 204 and 304 have no body, regardless of the head.

`connection: close` on either side ends the connection after the answer. An answer recorded over
HTTP/2 is sent as HTTP/1.1.
"""

import re
from collections import deque
from collections.abc import Callable
from functools import lru_cache
from typing import Literal, NamedTuple

from httptools import HttpParserError, HttpParserUpgrade, HttpRequestParser

from traces.model import Headers, Response, find_header
from traces.tape.field_types import to_parsable_url

HEAD_LIMIT = 1 << 20
"""Maximum bytes of a head, chunk line or trailer section; beyond it the answer is 431."""

CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"
ESTABLISHED = b"HTTP/1.1 200 Connection established\r\n\r\n"
REFUSALS = {
    400: b"HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\nconnection: close\r\n\r\n",
    431: b"HTTP/1.1 431 Request Header Fields Too Large\r\n"
    b"content-length: 0\r\nconnection: close\r\n\r\n",
}
"""Answers to bytes that are not a request; they never become an exchange."""

_BARE = re.compile(rb"\0|\r(?:[^\n]|\Z)")
"""NUL, or CR without LF: no recipient may pass them on, as others read them as an end (RFC 9112
2.2, RFC 9110 5.5)."""
_LENGTH = re.compile(rb"\r\n[Cc]ontent-[Ll]ength: ([0-9]{1,9})\r\n")
_MAX_KNOWN_HEADS = 64
"""How many heads of one connection are cached to avoid parsing them again."""
_URL_CACHE_SIZE = 1024
_DEFAULT_PORT_SUFFIXES = {"http": ":80", "https": ":443"}
_FRAMING_NAME_LENGTHS = frozenset(
    map(len, ("content-length", "transfer-encoding", "connection", "proxy-connection"))
)
"""Lengths of the names of the fields that frame an answer."""
PROXY_ONLY_HEADERS = ("proxy-connection", "proxy-authorization")
"""Fields for the proxy and not for the server, so not part of a request (RFC 9110 7.6.1)."""
_NO_BRACKETS = str.maketrans("", "", "[]")
_BODY_FIELDS = ("content-length", "transfer-encoding", "expect")


class Http1Request(NamedTuple):
    """One complete request, and the facts its connection needs to answer it."""

    method: str
    target: str
    """As on the request line: a path, an absolute URL, an authority (CONNECT) or `*`."""
    headers: Headers
    body: bytes
    started: float
    """Time of its first byte, on the connection's clock."""
    version: str
    stays: bool
    """Whether the agent wants to keep the connection open."""
    upgrade: bool
    """Whether the agent requests another protocol on this connection."""


class Http1RequestReader:
    """Parses the requests of one connection, in order; fed with bytes as they arrive.

    `ready` contains the parsed requests. If the bytes become invalid, its last entry is the status
    of a refusal. After a CONNECT nothing more is parsed and all further bytes are in `rest`.

    Agents send the same head repeatedly, with only its length changed. A head is not parsed again
    if the same head was parsed before and each request arrived complete in one segment.
    """

    def __init__(self, now: Callable[[], float]) -> None:
        self.ready: deque[Http1Request | int] = deque()
        self.rest = b""
        self.waits = False
        """Whether the agent withholds the body of this request until it reads 100 Continue."""
        self.unparsed = b""
        """The bytes of the request that could not be parsed, if they are known."""
        self._now = now
        self._parser = HttpRequestParser(self)
        self._in_head = False
        self._head_bytes = b""
        self._over = self._inside = False
        self._stays = True
        """Whether no request so far asked to close the connection."""
        self._known: dict[tuple[bytes, bytes], tuple[Http1Request, int]] = {}
        """By the head around its length's digits: the request, and the length's position."""
        self._size = 0
        self._upgraded: Http1Request | None = None
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
        head, digits, rest, body = _split_request_bytes(data)
        known = self._known.get((head, rest))
        if known is not None and len(body) == int(digits or b"0"):
            return self.ready.append(_repeat_request(*known, self._now(), digits, body))
        self._parse(data)
        if not self._inside and len(self.ready) == 1:
            self._remember_head(self.ready[0], head, digits, rest, body)
        return None

    def head_seconds(self) -> float:
        """Return for how long a head has been incomplete; 0 if none is."""
        return self._now() - self._started if self._in_head else 0.0

    def _remember_head(
        self, request: Http1Request | int, head: bytes, digits: bytes, rest: bytes, body: bytes
    ) -> None:
        """Cache a head if the head and the body are everything that was parsed.

        A chunked body has more bytes than its content, so such a head is never cached.
        """
        if isinstance(request, int) or not request.stays or request.upgrade:
            return
        if request.body == body and len(body) == int(digits or b"0"):
            if len(self._known) == _MAX_KNOWN_HEADS:
                self._known.clear()
            names = [name.lower() for name, _ in request.headers]
            position = names.index("content-length") if digits else 0
            self._known[head, rest] = request._replace(body=b""), position

    def _parse(self, data: bytes) -> None:
        before = len(self.ready)
        self._head_bytes += data
        try:
            self._parser.feed_data(data)
        except HttpParserUpgrade as upgrade:
            self._head_bytes = b""
            self._continue_after_upgrade(data[upgrade.args[0] :])
        except HttpParserError:
            if len(self.ready) == before and (self._in_head or not self._inside):
                is_bare = _BARE.search(self._head_bytes.partition(b"\r\n\r\n")[0])
                self.unparsed = b"" if is_bare else self._head_bytes
            self._refuse(400)
        else:
            if not self._in_head:
                self._head_bytes = b""
            self._size += len(data)
            if self._inside and self._size > HEAD_LIMIT:
                self._refuse(431)

    def take_back(self, request: Http1Request) -> bytes:
        """Return the bytes of this request, if no further one has begun; else nothing."""
        if self.ready or self._inside or self._over:
            return b""
        line = f"{request.method} {request.target} HTTP/{request.version}\r\n"
        body = request.body
        if any(name.lower() == "transfer-encoding" for name, _ in request.headers):
            body = b"%x\r\n%b\r\n0\r\n\r\n" % (len(body), body) if body else b"0\r\n\r\n"
        return _encode_header_lines(request.headers, line, "\r\n") + body

    def _refuse(self, status: int) -> None:
        self.ready.append(status)
        self._over, self.waits = True, False

    def _continue_after_upgrade(self, rest: bytes) -> None:
        """Continue after the head of a request for another protocol, where llhttp stops.

        After CONNECT that is correct. Any other request continues in HTTP/1.1 until the server
        agrees to switch, and many have bodies (Java sends `upgrade: h2c` with every first request):
        the fields that frame the body are parsed again by a fresh parser, which then reads it.
        """
        if self._upgraded is None:
            self._over, self.rest = True, rest
            return
        fields = [(k, v) for k, v in self._upgraded.headers if k.lower() in _BODY_FIELDS]
        self._parser = HttpRequestParser(self)
        self.feed(b"POST / HTTP/1.1\r\n" + _encode_header_lines(tuple(fields)) + b"\r\n")
        if rest:
            self.feed(rest)

    def on_message_begin(self) -> None:
        self._inside = self._in_head = True
        self._size = 0
        self._target, self._fields, self._body = b"", [], []
        self._started = self._now()

    def on_url(self, url: bytes) -> None:
        self._target += url

    def on_header(self, name: bytes, value: bytes) -> None:
        self._fields.append((name.decode("latin-1"), value.rstrip(b" \t").decode("latin-1")))

    def on_headers_complete(self) -> None:
        # Further on_header calls are for trailers, which a Request does not have.
        self._in_head = False
        fields = [field for field in self._fields if field[0].lower() not in PROXY_ONLY_HEADERS]
        self._headers, self._fields = tuple(fields), []
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
        request = Http1Request(
            method=parser.get_method().decode("latin-1"),
            target=_bracket_address(self._target.decode("latin-1"), self._headers),
            headers=self._headers,
            body=body,
            started=self._started,
            version=parser.get_http_version(),
            stays=parser.should_keep_alive(),
            upgrade=parser.should_upgrade(),
        )
        self._stays = request.stays
        if request.upgrade and request.method != "CONNECT":
            self._upgraded = request
        else:
            self.ready.append(request)


def _bracket_address(target: str, headers: Headers) -> str:
    """Return a target with the brackets of an IPv6 address, which httpx leaves out for proxies.

    Where `::1:80` ends and a port begins is in the Host field, or else the last number is a port.
    """
    scheme, mark, rest = target.partition("://") if "://" in target else ("", "", target)
    authority, slash, path = rest.partition("/")
    if authority.count(":") < 2 or "[" in authority or target.startswith("/"):
        return target
    host = find_header(headers, "host") or ""
    name, _, port = authority.rpartition(":")
    if host.translate(_NO_BRACKETS) == authority != host:
        authority = host
    elif _is_ipv6_address(name):
        authority = f"[{name}]:{port}"
    elif _is_ipv6_address(authority):
        authority = f"[{authority}]"
    return f"{scheme}{mark}{authority}{slash}{path}"


def _is_ipv6_address(text: str) -> bool:
    """Whether it is an IPv6 address, without brackets."""
    from ipaddress import IPv6Address  # 3 ms, for rare targets

    try:
        return bool(IPv6Address(text))
    except ValueError:
        return False


def _split_request_bytes(data: bytes) -> tuple[bytes, bytes, bytes, bytes]:
    """Split into the head before its length's digits, the digits, the head's rest, the body."""
    end = data.find(b"\r\n\r\n") + 4
    if end < 4:
        return data, b"", b"", b""
    if (match := _LENGTH.search(data, 0, end)) is None:
        return data[:end], b"", b"", data[end:]
    start, stop = match.span(1)
    return data[:start], data[start:stop], data[stop:end], data[end:]


def _repeat_request(
    known: Http1Request, position: int, started: float, digits: bytes, body: bytes
) -> Http1Request:
    """Return the cached request with another body, and so with another length."""
    headers = known.headers
    if digits:
        length = headers[position][0], digits.decode()
        headers = (*headers[:position], length, *headers[position + 1 :])
    return Http1Request(
        method=known.method,
        target=known.target,
        headers=headers,
        body=body,
        started=started,
        version=known.version,
        stays=known.stays,
        upgrade=False,
    )


@lru_cache(maxsize=_URL_CACHE_SIZE)
def to_absolute_url(scheme: str, authority: str, path: str) -> str:
    """Return the URL as mitmproxy records it: without the default port, always with a path."""
    host = authority.removesuffix(_DEFAULT_PORT_SUFFIXES.get(scheme, ""))
    if path == "*":
        path = ""  # RFC 9112 3.2.4: OPTIONS * through a proxy is a URL without a path
    elif not path.startswith("/"):
        path = "/" + path
    return to_parsable_url(f"{scheme}://{host}{path}")


@lru_cache(maxsize=_URL_CACHE_SIZE)
def normalize_request_url(url: str) -> str:
    """Normalize the absolute URL of a request line to the form of `to_absolute_url`."""
    scheme, _, rest = url.partition("://")
    authority, slash, path = rest.partition("/")
    if "?" in authority or "#" in authority:
        end = min(at for mark in "?#" if (at := authority.find(mark)) >= 0)
        authority, path = authority[:end], authority[end:] + slash + path
    return to_absolute_url(scheme.lower(), authority, "/" + path)


def parse_authority_host(authority: str) -> str:
    """Return the host of `host:port`, without the brackets of an IPv6 address."""
    name, colon, port = authority.rpartition(":")
    return (name if colon and port.isdecimal() else authority).strip("[]")


class ResponseFraming(NamedTuple):
    """How one answer is framed on the wire."""

    head: bytes
    body: Literal["none", "length", "chunked", "close"]
    stays: bool
    """Whether the connection can carry another exchange after this answer."""

    def before(self, size: int) -> bytes:
        """Return the bytes that precede `size` bytes of body written together."""
        return b"%x\r\n" % size if self.body == "chunked" else b""

    def after(self) -> bytes:
        """Return the bytes that follow them."""
        return b"\r\n" if self.body == "chunked" else b""

    def end(self, trailers: Headers) -> bytes:
        """Return the bytes that mark the end of the body."""
        return (
            b"0\r\n" + _encode_header_lines(trailers) + b"\r\n" if self.body == "chunked" else b""
        )


def choose_response_framing(
    request: Http1Request, response: Response, *, length: int | None, cut: bool = False
) -> ResponseFraming:
    """Choose the framing of an answer with a body of `length` bytes; None if still unknown."""
    is_http10 = request.version == "1.0" or response.version == "HTTP/1.0"
    declared: str | None = None
    chunked = False
    keeps_open = request.stays and not is_http10 and response.status != 101
    for name, value in response.headers:
        if len(name) not in _FRAMING_NAME_LENGTHS:
            continue
        match name.lower():
            case "content-length":
                declared = value
            case "transfer-encoding":
                chunked = value.lower().rpartition(",")[2].strip() == "chunked"
            case "connection" | "proxy-connection":
                keeps_open = keeps_open and "close" not in value.lower()
    status, headers = response.status, response.headers
    body: Literal["none", "length", "chunked", "close"]
    if request.method == "HEAD" or status < 200 or status in (204, 304):
        body = "none"
    elif chunked and not is_http10:
        body = "chunked"
        headers = (
            _drop_header_fields(headers, "content-length") if declared is not None else headers
        )
    elif chunked:
        body, headers = "close", _drop_header_fields(headers, "transfer-encoding", "content-length")
    elif declared is not None:
        body = "length"
        if length is not None and not _is_length_valid(declared, length, cut):
            headers = tuple(
                (name, str(length) if name.lower() == "content-length" else value)
                for name, value in headers
            )
    elif keeps_open:
        body, headers = "chunked", (*headers, ("transfer-encoding", "chunked"))
    else:
        body = "close"
    version = "HTTP/1.0" if response.version == "HTTP/1.0" else "HTTP/1.1"
    line = f"{version} {status} {response.reason}\r\n"
    return ResponseFraming(
        _encode_header_lines(headers, line, "\r\n"), body, keeps_open and body != "close"
    )


def _is_length_valid(declared: str, length: int, cut: bool) -> bool:
    return declared.isdecimal() and (length == int(declared) or (cut and length < int(declared)))


def _drop_header_fields(headers: Headers, *names: str) -> Headers:
    return tuple((name, value) for name, value in headers if name.lower() not in names)


def _encode_header_lines(headers: Headers, before: str = "", after: str = "") -> bytes:
    fields = [f"{name}: {value}\r\n" for name, value in headers]
    return "".join([before, *fields, after]).encode("latin-1")
