"""HTTP/1.1 as bytes, without sockets."""

import time
from ipaddress import IPv6Address
from itertools import pairwise

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from recorder.proxy.http1 import (
    Http1Request,
    Http1RequestReader,
    choose_response_framing,
    normalize_request_url,
    parse_authority_host,
    to_absolute_url,
)
from traces.model import Headers, Response
from traces.tape.field_types import is_parsable_url

STREAM = (
    b"GET http://a.example/1 HTTP/1.1\r\nHost: a\r\n\r\n"
    b"POST /2 HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello"
    b"POST /3 HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2\r\nde\r\n0\r\n"
    b"Trailer: x\r\n\r\n"
    b"PUT /4 HTTP/1.1\r\nHost: a\r\nUpgrade: h2c\r\nConnection: upgrade\r\n"
    b"Content-Length: 2\r\n\r\nhi"
    b"PUT /5 HTTP/1.1\r\nHost: a\r\nUpgrade: h2c\r\nConnection: upgrade\r\n"
    b"Transfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\n\r\n"
    b"DELETE /6 HTTP/1.1\r\nHost: a\r\n\r\n"
    b"CONNECT a.example:443 HTTP/1.1\r\nHost: a\r\n\r\n\x16\x03\x01 and what follows"
)


@given(st.lists(st.integers(0, len(STREAM)), max_size=30))
def test_requests_do_not_depend_on_where_segments_end(cuts: list[int]) -> None:
    requests = Http1RequestReader(time.monotonic)
    for start, stop in pairwise(sorted([0, *cuts, len(STREAM)])):
        requests.feed(STREAM[start:stop])
    asked = [item for item in requests.ready if isinstance(item, Http1Request)]
    assert [(x.method, x.target, x.body) for x in asked] == [
        ("GET", "http://a.example/1", b""),
        ("POST", "/2", b"hello"),
        ("POST", "/3", b"abcde"),
        ("PUT", "/4", b"hi"),
        ("PUT", "/5", b"a"),
        ("DELETE", "/6", b""),
        ("CONNECT", "a.example:443", b""),
    ]
    assert len(asked) == len(requests.ready)
    assert asked[2].headers == (("Host", "a"), ("Transfer-Encoding", "chunked"))
    assert [x.started for x in asked] == sorted(x.started for x in asked)
    assert requests.rest == b"\x16\x03\x01 and what follows"


@given(address=st.ip_addresses(v=6), port=st.integers(1, 65535) | st.none(), tunnel=st.booleans())
@example(address=IPv6Address("::1"), port=80, tunnel=False)
@example(address=IPv6Address("::"), port=None, tunnel=False)
def test_an_ipv6_address_gets_its_brackets(
    address: IPv6Address, port: int | None, tunnel: bool
) -> None:
    """httpx leaves them out of what it sends a proxy, and has them in Host but for a tunnel."""
    end = "" if port is None else f":{port}"
    host = f"{address}:{port or 443}" if tunnel else f"[{address}]{end}"
    line = f"CONNECT {host}" if tunnel else f"GET http://{address}{end}/a?b=http://::1:2/"
    requests = Http1RequestReader(time.monotonic)
    requests.feed(f"{line} HTTP/1.1\r\nHost: {host}\r\n\r\n".encode())
    (asked,) = requests.ready
    assert isinstance(asked, Http1Request)
    target = (
        f"[{address}]:{port or 443}" if tunnel else f"http://[{address}]{end}/a?b=http://::1:2/"
    )
    assert asked.target == target
    assert is_parsable_url(normalize_request_url(target) if not tunnel else f"https://{target}/")


@given(
    authority=st.text("aZ09.:[]@%~ \xe9", max_size=12),
    path=st.text(st.characters(max_codepoint=255), max_size=8),
)
def test_every_url_of_a_request_parses(authority: str, path: str) -> None:
    for scheme in ("http", "https", "ftp"):
        assert is_parsable_url(to_absolute_url(scheme, authority, path))
        assert is_parsable_url(normalize_request_url(f"{scheme}://{authority}/{path}"))


SAID = st.one_of(
    st.builds(
        lambda name, digits, body: (
            b"POST /%d HTTP/1.1\r\nHost: a\r\n%b: %b%d\r\nX: y\r\n\r\n%b"
            % (len(digits), name, digits, len(body), body)
        ),
        st.sampled_from((b"Content-Length", b"content-length", b"CONTENT-LENGTH")),
        st.sampled_from((b"", b"0")),
        st.sampled_from((b"", b"a", b"b", b"\r\n\r\n", b"GET / HTTP/1.1\r\n\r\n", b"x" * 12)),
    ),
    st.sampled_from(
        (
            b"GET /1 HTTP/1.1\r\nHost: a\r\n\r\n",
            b"\r\nGET /1 HTTP/1.1\r\nHost: a\r\n\r\n",
            b"\r\n\r\nGET /1 HTTP/1.1\r\nHost: a\r\n\r\n",
            b"\r\n\r\n",
            b"GET /1 HTTP/1.1\r\nHost: a\r\n\r\n" * 2,
            b"GET /1 HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n",
            b"POST /2 HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
            b"POST /2 HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n",
            b"PUT /4 HTTP/1.1\r\nUpgrade: h2c\r\nConnection: upgrade\r\n"
            b"Content-Length: 2\r\n\r\nhi",
            b"POST /5 HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 1\r\n\r\na",
            b"POST /6 HTTP/1.1\r\nContent-Length: 2\r\nExpect: 100-continue\r\n\r\nhi",
            b"POST /6 HTTP/1.1\r\nContent-Length: 2\r\nExpect: 100-continue\r\n\r\n",
            b"CONNECT a.example:443 HTTP/1.1\r\nHost: a\r\n\r\n",
        )
    ),
)


@given(st.lists(SAID, max_size=8))
def test_a_head_that_comes_again_says_what_it_says_to_a_parser(said: list[bytes]) -> None:
    """Fed byte by byte, no head is known again."""
    whole, parsed = Http1RequestReader(lambda: 0.0), Http1RequestReader(lambda: 0.0)
    for data in said * 2:
        whole.feed(data)
        for at in range(len(data)):
            parsed.feed(data[at : at + 1])
        assert list(whole.ready) == list(parsed.ready)
        assert whole.waits == parsed.waits
        whole.ready.clear()
        parsed.ready.clear()


@given(st.binary(max_size=200), st.integers(0, 200))
def test_no_bytes_are_worse_than_a_refusal(junk: bytes, at: int) -> None:
    requests = Http1RequestReader(time.monotonic)
    requests.feed(STREAM[:at] + junk)
    requests.feed(STREAM[at:])
    assert all(isinstance(item, Http1Request) or item in (400, 431) for item in requests.ready)


@pytest.mark.parametrize(
    ("url", "written"),
    [
        ("http://a.example", "http://a.example/"),
        ("http://a.example:80", "http://a.example/"),
        ("HTTPS://a.example:443/x", "https://a.example/x"),
        ("https://a.example:80/x", "https://a.example:80/x"),
        ("http://a.example:8080/x", "http://a.example:8080/x"),
        ("http://a.example?q=/x", "http://a.example/?q=/x"),
        ("http://a.example#a?b", "http://a.example/#a?b"),
        ("http://[::80]:80/x", "http://[::80]/x"),
        ("http://a.example/?next=http://b/", "http://a.example/?next=http://b/"),
    ],
)
def test_urls_are_written_as_they_are_recorded(url: str, written: str) -> None:
    assert normalize_request_url(url) == written


def test_options_for_the_whole_server_has_no_path() -> None:
    assert to_absolute_url("http", "a.example:80", "*") == "http://a.example"


@pytest.mark.parametrize(
    ("authority", "name"),
    [("a.example:443", "a.example"), ("[::1]:443", "::1"), ("[::1]", "::1"), ("a", "a")],
)
def test_the_host_of_an_authority(authority: str, name: str) -> None:
    assert parse_authority_host(authority) == name


LENGTH = ("Content-Length", "5")
CHUNKED = ("Transfer-Encoding", "gzip, chunked")
CLOSE = ("Connection", "close")
ADDED = ("transfer-encoding", "chunked")


@pytest.mark.parametrize(
    ("headers", "version", "agent", "body", "sent", "stays"),
    [
        ((LENGTH,), "HTTP/1.1", "1.1", "length", (LENGTH,), True),
        ((LENGTH, CLOSE), "HTTP/1.1", "1.1", "length", (LENGTH, CLOSE), False),
        ((LENGTH,), "HTTP/1.1", "1.0", "length", (LENGTH,), False),
        ((LENGTH,), "HTTP/1.0", "1.1", "length", (LENGTH,), False),
        ((CHUNKED,), "HTTP/1.1", "1.1", "chunked", (CHUNKED,), True),
        ((LENGTH, CHUNKED), "HTTP/1.1", "1.1", "chunked", (CHUNKED,), True),
        ((CHUNKED,), "HTTP/1.1", "1.0", "close", (), False),
        ((), "HTTP/1.1", "1.1", "chunked", (ADDED,), True),
        ((), "HTTP/2.0", "1.1", "chunked", (ADDED,), True),
        ((CLOSE,), "HTTP/1.1", "1.1", "close", (CLOSE,), False),
        ((), "HTTP/1.0", "1.1", "close", (), False),
        ((), "HTTP/2.0", "1.0", "close", (), False),
    ],
)
def test_how_a_body_is_framed(
    headers: Headers, version: str, agent: str, body: str, sent: Headers, stays: bool
) -> None:
    asked = Http1Request(
        method="GET",
        target="/",
        headers=(),
        body=b"",
        started=0.0,
        version=agent,
        stays=agent == "1.1",
        upgrade=False,
    )
    response = Response(status=200, reason="OK", headers=headers, version=version)
    frame = choose_response_framing(asked, response, length=5)
    assert (frame.body, frame.stays) == (body, stays)
    assert frame.head.split(b"\r\n")[1:-2] == [f"{k}: {v}".encode() for k, v in sent]
    assert frame.head.startswith(b"HTTP/1.0 " if version == "HTTP/1.0" else b"HTTP/1.1 ")


BARE = [
    b"GET /a HTTP/1.1\r\nhost: h\r\nx-a: b%bc\r\n\r\n",
    b"GET /a%bb HTTP/1.1\r\nhost: h\r\n\r\n",
    b"GET /a HTTP/1.1\r\nhost: h\r\nx%ba: b\r\n\r\n",
    b"GET /a HTTP/1.1\r\nhost: h\r\nx-a: b%b%bx: c\r\n\r\n",
]


@pytest.mark.parametrize("bare", [b"\r", b"\0"])
@pytest.mark.parametrize("text", BARE)
def test_bare_cr_and_nul_are_refused_and_never_passed_on(text: bytes, bare: bytes) -> None:
    data = text % ((bare,) * text.count(b"%b"))
    for cut in range(len(data)):
        reader = Http1RequestReader(lambda: 0.0)
        for part in (data[:cut], data[cut:]):
            reader.feed(part)
        assert list(reader.ready)[:1] == [400]
        assert reader.unparsed == b""
