"""Recorded tool calls sent to a service that has changed since."""

import json
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest

from tests.support.leak_search import leaks
from tests.support.practice_shop import (
    Said,
    Shop,
)
from traces.tape.reader import read_tape

TOKEN = "tok-8f1c55d0aa9e"

AGENT = f"""
import json, sys, urllib.error, urllib.request
def ask(method, path, body=None):
    request = urllib.request.Request("http://api.shop" + path, data=body, method=method)
    request.add_header("Authorization", "Bearer {TOKEN}")
    try:
        urllib.request.urlopen(request).read()
    except urllib.error.HTTPError as error:
        error.read()
ask("GET", "/orders/7")
ask("GET", "/orders?page=2")
ask("POST", "/refunds", b'{{"order": 7}}')
"""


@dataclass(slots=True)
class Service:
    """A real server whose answers a test changes between two runs."""

    answers: dict[str, tuple[int, dict[str, object]]]
    asked: list[tuple[str, str, str | None]] = field(default_factory=list)
    busy: int = 0
    """How many requests are answered 429 first."""
    port: int = 0


ANSWERS: dict[str, tuple[int, dict[str, object]]] = {
    "/orders/7": (200, {"id": 7, "total": "12.50"}),
    "/orders?page=2": (200, {"orders": [{"id": 8}]}),
    "/refunds": (201, {"refund": 1}),
}


@pytest.fixture(scope="module")
def serving() -> Iterator[Service]:
    found = Service(dict(ANSWERS))

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def answer(self) -> None:
            body = self.rfile.read(int(self.headers.get("content-length") or 0))
            assert self.command == "GET" or body
            found.asked.append((self.command, self.path, self.headers.get("authorization")))
            status, value = found.answers[self.path]
            if found.busy:
                found.busy -= 1
                status, value = 429, {"error": "slow down"}
            data = json.dumps(value).encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(data)))
            if status == 429:
                self.send_header("Retry-After", "0")
            self.end_headers()
            self.wfile.write(data)

        do_GET = do_POST = answer

        def log_message(self, format: str, *args: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    found.port = server.server_port
    thread = Thread(target=server.serve_forever)
    thread.start()
    try:
        yield found
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@pytest.fixture(scope="module")
def user(tmp_path_factory: pytest.TempPathFactory, serving: Service) -> Shop:
    """Somebody with a recording of an agent that called the service."""
    folder = tmp_path_factory.mktemp("user")
    agent = folder / "agent.py"
    agent.write_text(AGENT)
    host = f"api.shop=127.0.0.1:{serving.port}"
    found = Shop(folder=folder, book=folder, log=folder, hosts=(host,), task="")
    result = found.stumble(
        "record", "-o", "a.tape", *found.host_options(), "--", sys.executable, str(agent)
    )
    assert result.code == 0, result.err
    return found


@pytest.fixture
def service(serving: Service, user: Shop) -> Service:
    """The service as it was when it was recorded."""
    serving.answers, serving.busy = dict(ANSWERS), 0
    serving.asked.clear()
    return serving


def redrive(user: Shop, service: Service, *more: str) -> Said:
    against = f"http://127.0.0.1:{service.port}"
    return user.stumble("redrive", "a.tape", "--against", against, "--rate", "500", *more)


def test_reads_are_sent_and_an_unchanged_service_has_not_drifted(
    user: Shop, service: Service
) -> None:
    said = redrive(user, service, "--header", f"Authorization=Bearer {TOKEN}")
    assert said.code == 0, said.err
    assert [asked[:2] for asked in service.asked] == [
        ("GET", "/orders/7"),
        ("GET", "/orders?page=2"),
    ]
    assert {key for _, _, key in service.asked} == {f"Bearer {TOKEN}"}
    assert "GET http://api.shop/orders/7: 200 -> 200, same" in said.out
    assert "1 not sent: may write (--writes sends them)" in said.out


def test_recorded_secrets_are_not_sent_in_the_form_they_have_on_the_tape(
    user: Shop, service: Service
) -> None:
    redrive(user, service)
    assert {key for _, _, key in service.asked} == {None}


def test_drift_is_told_field_by_field_and_ends_in_exit_1(user: Shop, service: Service) -> None:
    service.answers["/orders/7"] = (200, {"id": 7, "total": 12.5, "currency": "EUR"})
    service.answers["/orders?page=2"] = (404, {"error": "no such page"})
    said = redrive(user, service)
    assert said.code == 1
    assert "  added    currency" in said.out
    assert "  retyped  total: string -> number" in said.out
    assert "GET http://api.shop/orders?page=2: 200 -> 404, drifted" in said.out
    assert "2 sent, 2 drifted in status or schema" in said.out


def test_a_changed_value_is_told_and_is_drift_only_where_asked_for(
    user: Shop, service: Service
) -> None:
    service.answers["/orders/7"] = (200, {"id": 7, "total": "99.00"})
    said = redrive(user, service)
    assert said.code == 0
    assert '  value    total: "12.50" -> "99.00"' in said.out
    assert redrive(user, service, "--values").code == 1


def test_writes_are_sent_when_asked_for(user: Shop, service: Service) -> None:
    said = redrive(user, service, "--writes", "--json")
    assert said.code == 0, said.err
    assert ("POST", "/refunds", None) in service.asked
    assert said.json["sent"] == 3
    assert said.json["latency_now"]["calls"] == 3


def test_a_busy_service_is_waited_for_and_every_attempt_is_on_the_tape(
    user: Shop, service: Service
) -> None:
    service.busy = 2
    said = redrive(user, service, "--json")
    assert said.code == 0, said.out
    assert [call["attempts"] for call in said.json["calls"]] == [3, 1]
    statuses = [
        x.response.status for x in read_tape(Path(said.json["tape"])).exchanges if x.response
    ]
    assert statuses == [429, 429, 200, 200]


def test_the_new_tape_holds_no_key(user: Shop, service: Service) -> None:
    said = redrive(user, service, "--header", f"Authorization=Bearer {TOKEN}", "--json")
    assert leaks(TOKEN, Path(said.json["tape"])) == 0


def test_a_service_that_is_gone_is_drift_and_not_a_crash(user: Shop, service: Service) -> None:
    result = user.stumble("redrive", "a.tape", "--against", "http://127.0.0.1:9", "--rate", "500")
    assert result.code == 1
    assert "200 -> refused: " in result.out


@pytest.mark.parametrize(
    ("against", "why"),
    [
        (("ftp://x",), "not an http:// or https:// URL"),
        (("http://a", "http://b"), "give each a URL: --against http://api.shop=URL"),
    ],
)
def test_an_unclear_target_is_refused_before_anything_is_sent(
    user: Shop, service: Service, against: tuple[str, ...], why: str
) -> None:
    words = [word for url in against for word in ("--against", url)]
    result = user.stumble("redrive", "a.tape", *words)
    assert result.code == 2
    assert why in result.err
    assert service.asked == []
