"""`stumble_attach` records no secret of a known shape or place, as little as the proxy does."""

import json
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from random import Random
from urllib.parse import quote

import brotli
import pytest

from stumble.store.secret_scan import scan_files
from tests.hostile.test_secrets_issuers import ALL, TAIL
from tests.hostile.test_secrets_shapes import core
from tests.support.attached_program import run_attached, serve_echo
from tests.support.leak_search import copies, inflated, leaks
from tests.support.secret_shapes import PLACES, TOKENS, password
from traces.model import Exchange, Headers
from traces.tape.reader import read_tape

PROGRAM = """
import json, sys, httpx, stumble_attach
with stumble_attach.record("x.tape"), httpx.Client(timeout=60) as client:
    for path, headers, body in json.load(open("cases.json")):
        url = sys.argv[1] + path
        client.post(url, headers=headers, content=body.encode("latin-1")).raise_for_status()
"""

type Case = tuple[str, Headers, bytes]
"""Path, headers and body of a request, whose body the server returns."""

SHAPES = {f"place: {name}": place for name, place in PLACES.items()} | {
    f"token: {name}": ('{"a": "%s"}', shape) for name, shape in TOKENS.items()
}
FORM: Headers = (("content-type", "application/x-www-form-urlencoded"),)
JSON: Headers = (("content-type", "application/json"),)
BY_PLACE: Mapping[str, Callable[[str, str], Case]] = {
    "json": lambda name, secret: ("/", JSON, json.dumps({name: secret}).encode()),
    "form": lambda name, secret: ("/", FORM, f"a=1&{name}={quote(secret, safe='')}&b=2".encode()),
    "header": lambda name, secret: ("/", ((f"X-{name.replace('_', '-')}", secret),), b""),
    "query": lambda name, secret: (f"/?id={name}&api_key={quote(secret, safe='')}", (), b""),
    "brotli": lambda name, secret: (
        "/",
        (*JSON, ("content-encoding", "br")),
        brotli.compress(json.dumps({name: secret}).encode()),
    ),
}
PARAMETERS = ("subscription-key", "private_token", "jwt", "api_key", "access_token", "sig")


def list_cases() -> Iterator[tuple[str, str, Case]]:
    """Yield for each case its name, its secret and its request."""
    for name, (text, shape) in SHAPES.items():
        secret = shape(Random(name.partition(": ")[2]))
        yield name, secret, ("/", JSON, (text % secret).encode())
    for name, (variable, shape) in ALL.items():
        for place, make in BY_PLACE.items():
            secret = shape(Random(f"{name} {place}"))
            yield f"{place}: {name}", secret, make(variable, secret)
    for name in PARAMETERS:
        secret = password(Random(name))
        yield f"parameter: {name}", secret, (f"/?{name}={secret}", (), b"")


CASES = {name: (secret, case) for name, secret, case in list_cases()}


@pytest.fixture(scope="module")
def tape(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Record all cases in one program; return the tape."""
    folder = tmp_path_factory.mktemp("attached")
    sent = [(path, headers, body.decode("latin-1")) for _, (path, headers, body) in CASES.values()]
    (folder / "cases.json").write_text(json.dumps(sent))
    with serve_echo() as url:
        code, printed = run_attached(folder, PROGRAM, url)
    assert code == 0, printed
    return folder / "x.tape"


@pytest.fixture(scope="module")
def recorded(tape: Path) -> Mapping[str, Exchange]:
    exchanges = read_tape(tape).exchanges
    return dict(zip(CASES, exchanges, strict=True))


def list_texts(exchange: Exchange) -> Iterator[bytes]:
    """Yield all data of an exchange, its bodies also decoded."""
    request, response = exchange.request, exchange.response
    assert response is not None
    yield repr((request.url, request.headers, response.headers)).encode()
    yield from inflated(request.body)
    yield from inflated(response.body)


def test_no_secret_is_recorded(recorded: Mapping[str, Exchange]) -> None:
    """In one test, as one program sends all cases."""
    assert [name for name in CASES if is_recorded(name, recorded[name])] == []


def is_recorded(name: str, exchange: Exchange) -> bool:
    """Whether an exchange has a case's secret, or the end of it, or another length."""
    secret, (_, _, body) = CASES[name]
    parts: tuple[bytes, ...] = ()
    if name.startswith("token"):
        parts = (core(secret)[-12:],)
    elif not name.startswith(("place", "parameter")):
        parts = (secret[-TAIL:].encode(), quote(secret, safe="")[-TAIL:].encode())
    texts = list(list_texts(exchange))
    return (
        (len(exchange.request.body) != len(body) and not name.startswith("brotli"))
        or any(copies(secret.encode(), text) for text in texts)
        or any(part in text for part in parts for text in texts)
    )


def test_a_scan_finds_nothing(tape: Path) -> None:
    assert not [file for file in scan_files((tape,)) if file.found or file.unread]


def test_secrets_given_by_the_program_are_not_recorded(tmp_path: Path) -> None:
    secret = "any thing/at-all"
    program = (
        "import sys, httpx, stumble_attach\n"
        "with stumble_attach.record('x.tape', secrets=[sys.argv[2]]):\n"
        "    httpx.post(sys.argv[1], content=sys.argv[2].encode())\n"
    )
    with serve_echo() as url:
        code, printed = run_attached(tmp_path, program, url, secret)
    assert code == 0, printed
    assert leaks(secret, tmp_path / "x.tape") == 0
