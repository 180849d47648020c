"""What an answer is read as does not depend on how its bytes are cut, and ends where it ends."""

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recorder.proxy.http1_response import Http1ResponseReader, announce_close, encode_request
from recorder.proxy.route import Origin, split_origin
from tests.support.servers.http_shapes import FRAMINGS
from traces.model import Request, Response


def read(pieces: list[bytes], *, head_only: bool = False) -> tuple[Response | None, bytes, object]:
    reader = Http1ResponseReader(head_only=head_only)
    for piece in pieces:
        reader.feed(piece, 1.0)
    reader.finish()
    body = b"".join(reader.take_pieces())
    return reader.head, body, (reader.complete, reader.error, reader.trailers, reader.keeps)


@pytest.mark.parametrize("name", [name for name in FRAMINGS if len(FRAMINGS[name]) < 1000])
def test_cuts_change_nothing(name: str) -> None:
    answer, chance = FRAMINGS[name], Random(name)
    whole = read([answer])
    for _ in range(20):
        cuts = sorted(chance.randrange(len(answer) + 1) for _ in range(3))
        pieces = [answer[a:b] for a, b in zip([0, *cuts], [*cuts, len(answer)], strict=True)]
        assert read([piece for piece in pieces if piece]) == whole


@given(st.binary(max_size=200), st.booleans())
def test_no_bytes_of_a_server_raise(data: bytes, head_only: bool) -> None:
    for start in (
        b"",
        b"HTTP/1.1 200 OK\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n",
    ):
        read([start + data], head_only=head_only)


@pytest.mark.parametrize(
    ("fields", "keeps"),
    [
        ("HTTP/1.1 200 OK\r\nContent-Length: 0", True),
        ("HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: x, Close", False),
        ("HTTP/1.0 200 OK\r\nContent-Length: 0", False),
        ("HTTP/1.0 200 OK\r\nContent-Length: 0\r\nConnection: Keep-Alive", True),
        ("HTTP/1.1 200 OK", False),
        ("HTTP/1.1 204 No Content", True),
    ],
)
def test_a_connection_is_kept_if_the_answer_says_so(fields: str, keeps: bool) -> None:
    _, _, facts = read([f"{fields}\r\n\r\n".encode()])
    assert facts == (True, None, (), keeps)


def test_a_request_keeps_its_fields_but_for_those_of_the_proxy() -> None:
    headers = (
        ("hOST", "a"), ("Proxy-Authorization", "x"), ("Expect", "100-continue"), ("X", "1"),
        ("x", "2"), ("Transfer-Encoding", "chunked"),
    )  # fmt: skip
    request = Request(method="POST", url="http://a/", headers=headers, body=b"hello")
    head, body = encode_request(request, "/", "1.1", (("Proxy-Authorization", "ours"),))
    assert head == (
        b"POST / HTTP/1.1\r\nhOST: a\r\nX: 1\r\nx: 2\r\nTransfer-Encoding: chunked\r\n"
        b"Proxy-Authorization: ours\r\n\r\n"
    )
    assert body == b"5\r\nhello\r\n0\r\n\r\n"


@pytest.mark.parametrize(
    ("url", "origin"),
    [
        ("http://A.example", Origin("http", "A.example", 80)),
        ("https://[::1]:8443", Origin("https", "::1", 8443)),
        ("https://[fe80::1]", Origin("https", "fe80::1", 443)),
    ],
)
def test_where_a_url_leads(url: str, origin: Origin) -> None:
    assert split_origin(url) == origin


@pytest.mark.parametrize("url", ["ftp://a", "http://", "http://a:x", "http://a:99999"])
def test_what_cannot_be_dialled(url: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        split_origin(url)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (b"HTTP/1.1 200 OK\r\nA: 1\r\n\r\nbody", b"HTTP/1.1 200 OK\r\nA: 1\r\n{}\r\n\r\nbody"),
        (
            b"HTTP/1.1 200 OK\r\nCONNECTION : keep-alive\r\nKeep-Alive: timeout=5\r\nA: 1\r\n\r\n",
            b"HTTP/1.1 200 OK\r\nA: 1\r\n{}\r\n\r\n",
        ),
        (
            b"HTTP/1.1 200\r\n\r\nConnection: x\r\n\r\n",
            b"HTTP/1.1 200\r\n{}\r\n\r\nConnection: x\r\n\r\n",
        ),
        (b"HTTP/1.1 200 OK\r\nA: 1\r\n b\r\n\r\n", None),
        (b"HTTP/1.1 200 OK\r\nA: 1\r\n", None),
        (b"HTTP/1.1 103 Early Hints\r\n\r\nHTTP/1.1 200 OK\r\n\r\n", None),
        (b"1\r\n\r\n", None),
    ],
)
def test_the_end_of_a_connection_is_announced_in_whole_heads_only(
    before: bytes, after: bytes | None
) -> None:
    head = Response(status=200, headers=(), version="HTTP/1.1")
    expected = after and after.replace(b"{}", b"Connection: close")
    assert announce_close(before, head) == expected


HEAD = b"HTTP/1.1 200 OK\r\n"
CHUNKED = HEAD + b"Transfer-Encoding: chunked\r\n\r\n"


@pytest.mark.parametrize(
    ("answer", "unparsed"),
    [
        (b"SSH-2.0-OpenSSH\r\n", b"SSH-2.0-OpenSSH\r\n"),
        (HEAD + b"Content-Le", HEAD + b"Content-Le"),
        (b"\r\n" + HEAD + b"\r\n", b"\r\n" + HEAD + b"\r\n"),
        (HEAD + b"\r\nto the end", b""),
        (HEAD + b"Content-Length: 9\r\n\r\npart", b""),
        (HEAD + b"Content-Length: 3\r\n\r\nallmore", b"more"),
        (HEAD.replace(b"200", b"103") + b"\r\n", HEAD.replace(b"200", b"103") + b"\r\n"),
        (HEAD.replace(b"200", b"103") + b"\r\n" + HEAD + b"Content-Length: 0\r\n\r\n+", b"+"),
        (CHUNKED + b"3\r\n1\n1\r\n", b""),
        (CHUNKED + b"3\r\n1\n1\r\n1\r", b"\r\n1\r"),
        (CHUNKED + b"3\r\n1\n1\r\n0\r\nX: 1", b"\r\n0\r\nX: 1"),
        (CHUNKED + b"3\r\n1\n1zz\r\n1\r\n", b"zz\r\n1\r\n"),
        (CHUNKED + b"1\r\n1\r\n0\r\n\r\nmore", b"more"),
        (CHUNKED + b"1\r\n1\r\n0\r\nX: 1\r\n\r\nmore", b"more"),
    ],
)
def test_what_is_no_part_of_an_answer_is_found_in_any_cuts(answer: bytes, unparsed: bytes) -> None:
    for size in (1, 2, 7, len(answer)):
        reader, at = Http1ResponseReader(head_only=False), 0
        while at < len(answer) and not reader.complete:
            reader.feed(answer[at : at + size], 1.0)
            at += size
        # What comes in a segment of its own after the end is not the answer's.
        assert reader.find_unparsed() + answer[at:] == unparsed
