"""Keys of 140 issuers, in the forms of their documentation, reach nothing that is written.

The forms were written down from the issuers' pages, none from the rules of this project.
"""

import gzip
import json
from base64 import b64encode
from collections.abc import Callable
from random import Random
from urllib.parse import quote

import pytest

from tests.support.issuer_formats import BARE, NAMED
from traces.bodies.content_encoding import decode_content
from traces.model import Chunk, Exchange, Headers, Request, Response
from traces.redaction.redactor import Redactor
from traces.redaction.secret_scan import SecretFileScanner

TAIL = 10
"""So many characters of the end of a secret may not stay."""
ALL = {name: ("SERVICE_API_KEY", shape) for name, shape in BARE.items()} | dict(NAMED)


def _sent(headers: Headers, body: bytes, url: str = "http://h/") -> bytes:
    said = Redactor().redact_request(Request(method="POST", url=url, headers=headers, body=body))
    plain = decode_content(said.headers, said.body)
    return repr((said.url, said.headers)).encode() + (said.body if plain is None else plain)


def _json(name: str, secret: str) -> bytes:
    return _sent((("content-type", "application/json"),), json.dumps({name: secret}).encode())


def _form(name: str, secret: str) -> bytes:
    body = f"a=1&{name}={quote(secret, safe='')}&b=2".encode()
    return _sent((("content-type", "application/x-www-form-urlencoded"),), body)


def _header(name: str, secret: str) -> bytes:
    return _sent(((f"X-{name.replace('_', '-')}", secret),), b"")


def _query(name: str, secret: str) -> bytes:
    return _sent((), b"", f"http://h/?id={name}&api_key={quote(secret, safe='')}")


def _argument(name: str, secret: str) -> bytes:
    option = f"--{name.lower().replace('_', '-')}"
    words = ("agent", option, secret, f"{option}={secret}", f"{name}={secret}")
    return repr(Redactor().redact_command(words)).encode()


def _packed(name: str, secret: str) -> bytes:
    headers = (("content-encoding", "gzip"), ("content-type", "application/json"))
    return _sent(headers, gzip.compress(json.dumps({"env": {name: secret}}).encode()))


def _login(name: str, secret: str) -> bytes:
    """A basic login whose user is plain, and its echo by a server."""
    login = b64encode(f"joe:{secret}".encode()).decode()
    redactor = Redactor()
    request = Request(method="GET", url="http://h/", headers=(("authorization", f"Basic {login}"),))
    said = redactor.redact_request(request)
    echo = redactor.redact_bytes(f'{{"got": "{login}", "plain": "{secret}"}}'.encode())
    assert login[-TAIL:].encode() not in echo
    return repr(said.headers).encode() + echo


def _stream(name: str, secret: str) -> bytes:
    """An event stream whose chunks cut the secret anywhere."""
    data = f'data: {{"{name}": "{secret}"}}\n\n'.encode()
    written = b""
    for cut in range(1, len(data), 7):
        chunks = (Chunk(at=0.0, data=data[:cut]), Chunk(at=0.1, data=data[cut:]))
        answer = Response(
            status=200, headers=(("content-type", "text/event-stream"),), chunks=chunks, ended=1.0
        )
        request = Request(method="GET", url="http://h/")
        said = Redactor().redact_exchange(Exchange(seq=0, request=request, response=answer))
        assert said.response is not None
        assert len(said.response.body) == len(data)
        written += said.response.body
    return written


PLACES: dict[str, Callable[[str, str], bytes]] = {
    "json": _json,
    "form": _form,
    "header": _header,
    "query": _query,
    "argument": _argument,
    "gzip": _packed,
    "login": _login,
    "stream": _stream,
}


@pytest.mark.parametrize("name", ALL)
def test_a_documented_key_is_written_nowhere(name: str) -> None:
    variable, shape = ALL[name]
    secret = shape(Random(name))
    for place, write in PLACES.items():
        written = write(variable, secret)
        for form in {secret, quote(secret, safe="")}:
            assert form[-TAIL:].encode() not in written, place


@pytest.mark.parametrize("name", ALL)
def test_a_file_with_a_documented_key_is_not_kept(name: str) -> None:
    variable, shape = ALL[name]
    secret = shape(Random(name))
    for file in ("production.env", "settings.yaml", "notes.txt"):
        text = f"HOST=db\n{variable}={secret}\n" if "env" in file else f"{variable}: {secret}\n"
        assert SecretFileScanner().has_secret(file, text.encode()), file


@pytest.mark.parametrize("name", BARE)
@pytest.mark.parametrize("around", ['{"note": "%s"}', "use %s, please", "[%s](x)", "`%s`"])
def test_a_key_of_its_own_form_needs_no_name(name: str, around: str) -> None:
    secret = BARE[name](Random(name))
    data = b"lorem ipsum " + (around % secret).encode() + b" dolor"
    said = Redactor().redact_bytes(data)
    assert len(said) == len(data)
    assert secret[-TAIL:].encode() not in said


@pytest.mark.parametrize(
    "text",
    [
        "call_4f1b2c3d4e5f60718293a4b5, msg_01XFDUDYJgAACzvnptvVoYEL",
        "chatcmpl-B9MHDbslfkBeAs8l4bebGdFOJ6PeG, resp_67ccd2bed1ec8190b14f964abc0542670bb6a6b4",
        "key_points_of_the_story_in_the_first_chapter_of_the_book_2, pa-4 pa-rt_of-the_grid-x1",
        "api-version-2024-05-01-preview-of-the-service, sdk-js-core-2.14.3-alpha.20240101",
        "re_compile_pattern_with_flags_2, cs_CZ_cp1250_collation_ci_2",
        "a cs_test_a1b2c3d4e5f6g7h8i9j0 session, pk_test_51H8abcdefghijklmnopqrstuvwxyz",
        "0123456789abcdef0123456789abcdef.min.js, d41d8cd98f00b204e9800998ecf8427e.chunk2css",
        "sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef",
        "data:font/woff2;base64,EAAAJjMAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA/AA",
    ],
)
def test_ids_and_names_stay(text: str) -> None:
    assert Redactor().redact_bytes(text.encode()) == text.encode()
