"""A corpus of HTTP/1.1 answers and requests, as servers and clients of all kinds write them."""

from collections.abc import Iterator
from dataclasses import dataclass

CRLF = b"\r\n"
PLAIN_GET = b"GET /x?q=%C3%A4 HTTP/1.1\r\nHost: a.example\r\nX-Case: Kept\r\n\r\n"


@dataclass(frozen=True)
class Shape:
    """What a client sends, what a server answers to each request, and how it ends."""

    name: str
    answer: bytes
    asked: bytes = PLAIN_GET
    end: str = "fin"
    pieces: int = 1
    """In how many parts the answer is written."""


def build_head(*fields: bytes, line: bytes = b"HTTP/1.1 200 OK") -> bytes:
    return CRLF.join([line, *fields, b"", b""])


CHUNKED = b"Transfer-Encoding: chunked"
FIVE = b"Content-Length: 5"
HELLO = build_head(FIVE) + b"hello"
TRAILED = build_head(CHUNKED) + b"3\r\none\r\n4;x=y\r\n two\r\n0\r\nX-Sum: 1\r\n\r\n"
STATUSES = (200, 201, 202, 206, 301, 307, 400, 401, 404, 409, 418, 429, 500, 502, 503, 529, 599)
LINES = (
    b"HTTP/1.1 200", b"HTTP/1.1 200 ", b"HTTP/1.1 200 Sort of OK", b"HTTP/1.1 200 Gr\xfc\xdfe",
    b"HTTP/1.1 200 a\tb", b"HTTP/1.0 200 OK", b"HTTP/1.1  200 OK", b"http/1.1 200 OK",
    b"HTTP/9.9 200 OK", b"HTTP/1.1 20 OK", b"HTTP/1.1 2000 OK", b"HTTP/1.1 OK", b"ICY 200 OK",
    b"\r\nHTTP/1.1 200 OK", b"HTTP/2 200", b"HTTP/1.1\t200 OK", b" HTTP/1.1 200 OK",
)  # fmt: skip
FIELDS: tuple[tuple[bytes, ...], ...] = (
    (b"X-A: 1", b"x-a: 2", b"X-A: 3"), (b"Set-Cookie: a=1", b"Set-Cookie: b=2"),
    (b"x-LOWER-Upper: Kept",), (b"X-None:",), (b"X-Tight:value",), (b"X-Wide:   value  ",),
    (b"X-Tab:\tvalue\t",), (b"X-Latin: \xe4\xf6",), (b"X-Utf8: \xc3\xa4",), (b"X-Fold: a", b"  b"),
    (b"X-Fold: a", b"\tb", b"\tc"), (b"X-Space : a",), (b"no colon",), (b": no name",),
    (b"X-Nul: a\0b",), (b"X-Bell: \x07",), (b"X-Cr: a\rb",), (b"X(odd): 1",),
    (b"X-Long: " + b"v" * 8000,), tuple(b"X-%d: %d" % (n, n) for n in range(100)),
    (b"Connection: close",), (b"Connection: Close",), (b"Connection: keep-alive",),
    (b"Connection: keep-alive, x-hop", b"X-Hop: 1"), (b"Keep-Alive: timeout=5",),
    (b"Proxy-Connection: close",), (b"Content-Encoding: gzip",), (b"Content-Type: text/html",),
    (b"Upgrade: h2c", b"Connection: upgrade"), (b"Expect: x",), (b"Via: 1.1 other",),
)  # fmt: skip
FRAMINGS: dict[str, bytes] = {
    "length 0": build_head(b"Content-Length: 0"),
    "length twice": build_head(FIVE, FIVE) + b"hello",
    "lengths that differ": build_head(FIVE, b"Content-Length: 6") + b"hello!",
    "length list": build_head(b"Content-Length: 5, 5") + b"hello",
    "length negative": build_head(b"Content-Length: -1") + b"hello",
    "length no number": build_head(b"Content-Length: five") + b"hello",
    "length with sign": build_head(b"Content-Length: +5") + b"hello",
    "length with spaces": build_head(b"Content-Length:   5  ") + b"hello",
    "length too large": build_head(b"Content-Length: 500") + b"hello",
    "length too small": build_head(b"Content-Length: 3") + b"hello",
    "length of 20 digits": build_head(b"Content-Length: 99999999999999999999") + b"hello",
    "chunks": build_head(CHUNKED) + b"3\r\none\r\n3\r\ntwo\r\n0\r\n\r\n",
    "chunks and trailers": TRAILED,
    "no chunk": build_head(CHUNKED) + b"0\r\n\r\n",
    "chunk size in capitals": build_head(CHUNKED) + b"A\r\n0123456789\r\n0\r\n\r\n",
    "chunk size with zeros": build_head(CHUNKED) + b"0003\r\none\r\n000\r\n\r\n",
    "chunk size with a space": build_head(CHUNKED) + b"3 \r\none\r\n0\r\n\r\n",
    "chunk size 0x": build_head(CHUNKED) + b"0x3\r\none\r\n0\r\n\r\n",
    "chunk size none": build_head(CHUNKED) + b"\r\none\r\n0\r\n\r\n",
    "chunk size no number": build_head(CHUNKED) + b"x\r\none\r\n0\r\n\r\n",
    "chunk size of 17 digits": build_head(CHUNKED) + b"1" + b"0" * 16 + b"\r\none",
    "chunk without its end": build_head(CHUNKED) + b"3\r\none0\r\n\r\n",
    "chunk longer than said": build_head(CHUNKED) + b"2\r\none\r\n0\r\n\r\n",
    "chunks with bare lf": build_head(CHUNKED) + b"3\none\n0\n\n",
    "chunk extension quoted": build_head(CHUNKED) + b'3;a="b;c"\r\none\r\n0\r\n\r\n',
    "trailers twice": build_head(CHUNKED) + b"0\r\nX-A: 1\r\nX-A: 2\r\n\r\n",
    "trailer without colon": build_head(CHUNKED) + b"0\r\nodd\r\n\r\n",
    "chunked in capitals": build_head(b"TRANSFER-ENCODING: CHUNKED") + b"1\r\na\r\n0\r\n\r\n",
    "gzip, chunked": build_head(b"Transfer-Encoding: gzip, chunked") + b"1\r\na\r\n0\r\n\r\n",
    "chunked twice": build_head(CHUNKED, CHUNKED) + b"1\r\na\r\n0\r\n\r\n",
    "chunked, identity": build_head(b"Transfer-Encoding: chunked, identity") + b"hello",
    "identity": build_head(b"Transfer-Encoding: identity") + b"hello",
    "coding unknown": build_head(b"Transfer-Encoding: odd") + b"hello",
    "length and chunks": build_head(FIVE, CHUNKED) + b"1\r\na\r\n0\r\n\r\n",
    "until the end": build_head() + b"hello",
    "until the end, empty": build_head(),
    "until the end, close": build_head(b"Connection: close") + b"hello",
    "1.0 length": build_head(FIVE, line=b"HTTP/1.0 200 OK") + b"hello",
    "1.0 until the end": build_head(line=b"HTTP/1.0 200 OK") + b"hello",
    "1.0 chunks": build_head(CHUNKED, line=b"HTTP/1.0 200 OK") + b"1\r\na\r\n0\r\n\r\n",
    "1.0 keep-alive": build_head(FIVE, b"Connection: keep-alive", line=b"HTTP/1.0 200 OK")
    + b"hello",
    "204": build_head(line=b"HTTP/1.1 204 No Content"),
    "204 with a length": build_head(FIVE, line=b"HTTP/1.1 204 No Content"),
    "204 with a body": build_head(FIVE, line=b"HTTP/1.1 204 No Content") + b"hello",
    "205": build_head(b"Content-Length: 0", line=b"HTTP/1.1 205 Reset Content"),
    "304": build_head(FIVE, line=b"HTTP/1.1 304 Not Modified"),
    "304 with chunks": build_head(CHUNKED, line=b"HTTP/1.1 304 Not Modified"),
    "100 first": build_head(line=b"HTTP/1.1 100 Continue") + HELLO,
    "102 first": build_head(line=b"HTTP/1.1 102 Processing") + HELLO,
    "103 twice": build_head(b"Link: </a>", line=b"HTTP/1.1 103 Early Hints") * 2 + HELLO,
    "103, then 204": build_head(line=b"HTTP/1.1 103 Early Hints")
    + build_head(line=b"HTTP/1.1 204 No Content"),
    "103 alone": build_head(line=b"HTTP/1.1 103 Early Hints"),
    "101 unasked": build_head(b"Upgrade: x", line=b"HTTP/1.1 101 Switching") + b"\x81\x02hi",
    "two answers": HELLO + HELLO,
    "bytes after the answer": HELLO + b"\r\n",
    "bare lf": b"HTTP/1.1 200 OK\nContent-Length: 5\n\nhello",
    "head without end": b"HTTP/1.1 200 OK\r\nX: 1\r\n",
    "nothing": b"",
    "an empty line": b"\r\n",
    "html": b"<html>hello</html>",
    "ssh": b"SSH-2.0-OpenSSH_9.2\r\n",
    "tls": bytes.fromhex("15030300020228"),
    "zeros": bytes(64),
    "all bytes": bytes(range(256)),
    "h2 settings": bytes(3) + b"\4" + bytes(5),
    "64 KB": build_head(b"Content-Length: 65536") + b"x" * 65536,
    "1 MB in chunks": build_head(CHUNKED) + (b"10000\r\n" + b"y" * 65536 + CRLF) * 16
    + b"0\r\n\r\n",
}  # fmt: skip


def build_request(line: bytes, *fields: bytes, body: bytes = b"") -> bytes:
    return CRLF.join([line + b" HTTP/1.1", b"Host: a.example", *fields, b"", body])


REQUESTS: dict[str, bytes] = {
    **{f"{m} alone": build_request(m.encode() + b" /") for m in ("HEAD", "DELETE", "OPTIONS")},
    **{
        f"{m} with a body": build_request(m.encode() + b" /", FIVE, body=b"hello")
        for m in ("GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "PROPFIND")
    },
    "POST without a body": build_request(b"POST /", b"Content-Length: 0"),
    "POST in chunks": build_request(b"POST /", CHUNKED, body=b"5\r\nhello\r\n0\r\n\r\n"),
    "fields of all kinds": build_request(
        b"GET /", b"X-A: 1", b"x-a: 2", b"X-None: ", b"Cookie: a=1", b"Cookie: b=2"
    ),
    "query and escapes": build_request(b"GET /a%20b/%2e%2E//c?x=%zz&y=[1]&&#f"),
    "close": build_request(b"GET /", b"Connection: close"),
    "te": build_request(b"GET /", b"TE: trailers", b"Connection: TE"),
    "another host": b"GET / HTTP/1.1\r\nHost: other.example\r\n\r\n",
    "1.0": b"GET / HTTP/1.0\r\nHost: a.example\r\n\r\n",
    "1.0 keep-alive": b"GET / HTTP/1.0\r\nHost: a.example\r\nConnection: keep-alive\r\n\r\n",
    "two at once": PLAIN_GET + build_request(b"GET /second"),
    "three at once": build_request(b"POST /1", FIVE, body=b"hello") * 3,
    "100 KB": build_request(b"POST /", b"Content-Length: 100000", body=b"z" * 100000),
}


def iterate_shapes() -> Iterator[Shape]:
    """Every shape; most are cuts of one answer at each of its bytes."""
    for status in STATUSES:
        line = b"HTTP/1.1 %d Some Reason" % status
        yield Shape(f"status {status}", build_head(FIVE, line=line) + b"hello")
    for line in LINES:
        yield Shape(f"line {line!r}", build_head(FIVE, line=line) + b"hello")
    for fields in FIELDS:
        yield Shape(f"fields {b' '.join(fields)[:40]!r}", build_head(*fields, FIVE) + b"hello")
    for name, answer in FRAMINGS.items():
        yield Shape(name, answer)
        if len(answer) < 500:
            yield Shape(f"{name}, byte by byte", answer, pieces=len(answer))
            head = answer.partition(b"\r\n\r\n")[0] + b"\r\n\r\n"
            yield Shape(f"{name}, HEAD", head, REQUESTS["HEAD alone"])
    for name, asked in REQUESTS.items():
        bodyless = asked.startswith(b"HEAD")
        yield Shape(f"request {name}", build_head(FIVE) + b"hello" * (not bodyless), asked)
        chunks = build_head(CHUNKED) + b"1\r\na\r\n0\r\n\r\n" * (not bodyless)
        yield Shape(f"request {name}, chunks", chunks, asked)
    for answer in (HELLO, TRAILED):
        for size in range(len(answer)):
            yield Shape(f"{answer[17:27]!r} cut at {size}", answer[:size])
            if size % 7 == 0:
                yield Shape(f"{answer[17:27]!r} reset at {size}", answer[:size], end="reset")
