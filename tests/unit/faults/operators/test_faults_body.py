"""An answer that is bent stays valid, or is not bent."""

import gzip
import hashlib
import zlib
from base64 import b64encode
from copy import replace

import pytest

from faults.operator_examples import make_example_exchange
from faults.response_body import (
    NoInjectionSite,
    check_rewritable_request,
    decode_response_text,
    replace_response_text,
)
from traces.model import Chunk, Exchange, Headers, Request, find_header


def bent(*headers: tuple[str, str], body: str = '{"total": 1250.40}') -> Exchange:
    exchange = make_example_exchange(body, headers)
    return replace_response_text(exchange, decode_response_text(exchange).replace("1250", "1259"))


def md5(body: str) -> str:
    return b64encode(hashlib.md5(body.encode()).digest()).decode()


def sha(body: str) -> str:
    return b64encode(hashlib.sha1(body.encode()).digest()).decode()


BODY = '{"total": 1250.40}'
BENT = '{"total": 1259.40}'


@pytest.mark.parametrize(
    ("name", "before", "after"),
    [
        ("Content-MD5", md5(BODY), md5(BENT)),
        ("ETag", f'"{hashlib.md5(BODY.encode()).hexdigest()}"',
         f'"{hashlib.md5(BENT.encode()).hexdigest()}"'),
        ("etag", 'W/"v17-2026"', 'W/"v17-2026"'),
        ("Digest", f"md5={md5(BODY)}, SHA={sha(BODY)}", f"md5={md5(BENT)}, SHA={sha(BENT)}"),
        ("x-amz-checksum-crc32", b64encode(zlib.crc32(BODY.encode()).to_bytes(4)).decode(),
         b64encode(zlib.crc32(BENT.encode()).to_bytes(4)).decode()),
        ("x-checksum-sha1", hashlib.sha1(BODY.encode()).hexdigest(),
         hashlib.sha1(BENT.encode()).hexdigest()),
        ("x-request-id", "1250", "1250"),
    ],
)  # fmt: skip
def test_a_checksum_is_that_of_the_bent_body(name: str, before: str, after: str) -> None:
    answer = bent((name, before)).response
    assert answer is not None
    assert answer.body.decode() == BENT
    assert find_header(answer.headers, name) == after


@pytest.mark.parametrize(
    ("headers", "says"),
    [
        ((("x-acme-signature", "t=1,v1=ab"),), "the answer is signed (x-acme-signature)"),
        ((("Signature-Input", "sig1=()"),), "the answer is signed (signature-input)"),
        ((("x-hub-signature-256", "sha256=ab"),), "the answer is signed"),
        ((("x-amz-checksum-crc32c", "AAAAAA=="),), "(AAAAAA==) could not be kept valid"),
        ((("content-md5", "bm90IGl0cyBzdW0="),), "could not be kept valid"),
        ((("x-goog-hash", f"crc32c=AAAAAA==,md5={md5(BODY)}"),), "could not be kept valid"),
        ((("content-type", "application/grpc+json"),), "counts its own bytes"),
        ((("content-type", "application/jwt"),), "a signed token"),
        ((("content-encoding", "lzma"),), "cannot be undone"),
        ((("content-type", "text/plain; charset=klingon"),), "no character set is called klingon"),
    ],
)
def test_what_cannot_be_kept_valid_is_no_site(headers: Headers, says: str) -> None:
    with pytest.raises(NoInjectionSite) as error:
        bent(*headers)
    assert says in str(error.value)


def test_a_signed_token_is_no_site_whatever_its_type() -> None:
    with pytest.raises(NoInjectionSite, match="signed token"):
        replace_response_text(
            make_example_exchange("eyJhbGciOiJub25l.eyJzdWIiOiIxMjUwIn0.c2lnbmF0dXJl"), "x"
        )


def test_a_range_keeps_its_length_or_is_no_site() -> None:
    exchange = make_example_exchange(BODY, (("content-range", "bytes 0-17/99"),))
    assert exchange.response is not None
    part = replace(exchange, response=replace(exchange.response, status=206))
    assert decode_response_text(replace_response_text(part, BENT)) == BENT
    with pytest.raises(NoInjectionSite, match="a range"):
        replace_response_text(part, BODY[:5])


def test_chunks_keep_their_times_where_nothing_is_encoded() -> None:
    exchange = make_example_exchange(BODY)
    assert exchange.response is not None
    pieces = tuple(Chunk(at=n * 0.5, data=BODY[n : n + 6].encode()) for n in range(0, 18, 6))
    exchange = replace(exchange, response=replace(exchange.response, chunks=pieces))
    answer = replace_response_text(exchange, BENT).response
    assert answer is not None
    assert [chunk.at for chunk in answer.chunks] == [0.0, 3.0, 6.0]
    assert [chunk.data for chunk in answer.chunks] == [b'{"tota', b'l": 12', b"59.40}"]


def test_a_compressed_body_stays_so_and_has_its_new_length() -> None:
    exchange = make_example_exchange(BODY, (("content-encoding", "gzip"), ("content-length", "0")))
    assert exchange.response is not None
    data = (Chunk(at=0.0, data=gzip.compress(BODY.encode())),)
    exchange = replace(exchange, response=replace(exchange.response, chunks=data))
    answer = replace_response_text(exchange, BENT).response
    assert answer is not None
    assert gzip.decompress(answer.body).decode() == BENT
    assert find_header(answer.headers, "content-length") == str(len(answer.body))


def test_a_body_in_another_character_set_stays_in_it() -> None:
    exchange = make_example_exchange("x", (("content-type", "text/plain; charset=latin-1"),))
    assert exchange.response is not None
    data = (Chunk(at=0.0, data="Köln 1250".encode("latin-1")),)
    exchange = replace(exchange, response=replace(exchange.response, chunks=data))
    answer = replace_response_text(
        exchange, decode_response_text(exchange).replace("1250", "1259")
    ).response
    assert answer is not None
    assert answer.body == "Köln 1259".encode("latin-1")
    with pytest.raises(NoInjectionSite, match="character set"):
        replace_response_text(exchange, "Łódź")


@pytest.mark.parametrize(
    ("url", "headers", "says"),
    [
        ("http://m/", (("Authorization", "AWS4-HMAC-SHA256 Credential=x"),), "AWS SigV4"),
        ("http://m/?X-Amz-Signature=ab", (), "AWS SigV4"),
        ("http://m/", (("content-digest", "sha-256=:x:"),), "content-digest"),
        ("http://m/", (("x-acme-signature", "x"),), "x-acme-signature"),
        ("http://m/", (("content-encoding", "gzip"),), "compressed"),
    ],
)
def test_a_request_that_is_signed_is_not_rewritten(url: str, headers: Headers, says: str) -> None:
    with pytest.raises(NoInjectionSite, match=says):
        check_rewritable_request(Request(method="POST", url=url, headers=headers))


def test_any_other_request_is_rewritten() -> None:
    plain: Headers = (("authorization", "Bearer x"), ("content-encoding", "identity"))
    check_rewritable_request(Request(method="POST", url="http://m/", headers=plain))
