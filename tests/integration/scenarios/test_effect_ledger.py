"""Ledgers as users have them: commands and addresses, in several forms, and broken in all ways."""

import asyncio
import json
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scenarios import effect_ledger
from scenarios.effect_ledger import EffectLedger, EffectReading, count_effects
from scenarios.world import CommandWorld

PAID = {"order": "ord-1", "amount": 5}


def printing(text: str, key: tuple[str, ...] = ("order", "amount")) -> EffectReading:
    program = f"import sys; sys.stdout.write({text!r})"
    return asyncio.run(EffectLedger((sys.executable, "-c", program), key).read())


@pytest.mark.parametrize(
    "text",
    [
        json.dumps([PAID, PAID]),
        json.dumps({"as_of": 7, "payments": [PAID, PAID]}),
        f"{json.dumps(PAID)}\n\n{json.dumps({'amount': 5.0, 'order': 'ord-1', 'id': 9})}\n",
        "[" + ",".join([' {"order":"ord\\u002d1", "amount":5}'] * 2) + "]",
    ],
)
def test_each_form_lists_one_key_twice(text: str) -> None:
    found = printing(text)
    assert found.why is None
    assert list(found.counts.values()) == [2]
    assert list(found.names.values()) == ["order=ord-1 amount=5"]


def test_one_line_is_one_effect_and_an_empty_list_is_none() -> None:
    assert list(printing(json.dumps(PAID)).counts.values()) == [1]
    assert (printing("[]").counts, printing("[]").why) == ({}, None)
    nested = json.dumps([{"body": {"order": 1}, "at": 2}])
    assert list(printing(nested, ("body.order",)).names.values()) == ["1"]


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "printed nothing; no effect is the empty list []"),
        ("Error: database is locked", "printed no JSON in line 1"),
        ('[{"order": "ord-1"}]', "has no 'amount' in entry 1, which is part of the key"),
        ('[{"order": "ord-1", "amount": null}]', "has no 'amount' in entry 1, which is part"),
        ("[1, 2]", "has no 'order' in entry 1"),
        ('{"a": [], "b": []}', "printed JSON that is no list of effects"),
        ("[" * 100_000, "printed no JSON in line 1"),
        ("17", "printed JSON that is no list of effects"),
    ],
)
def test_what_is_no_ledger_is_unknown_and_never_empty(text: str, why: str) -> None:
    found = printing(text)
    assert found.why is not None
    assert found.why.startswith(f"the effect ledger {why}")
    assert not found.counts


def test_a_ledger_that_fails_or_hangs_is_unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    world = CommandWorld(("true",), ledger=EffectLedger(("sh", "-c", "echo [] ; exit 3")))
    found = asyncio.run(world.read_effects())
    assert found is not None
    assert found.why == "the effect ledger exited 3: []"
    missing = asyncio.run(EffectLedger(("no-such-program",)).read())
    assert missing.why is not None
    monkeypatch.setattr(effect_ledger, "LEDGER_SECONDS", 0.3)
    hanging = asyncio.run(EffectLedger(("sleep", "60")).read())
    assert hanging.why == "the effect ledger exited 124: no end after 0.3 s"


def test_placeholders_leave_the_digest_alone() -> None:
    world = CommandWorld(("true",), ledger=EffectLedger(("echo", "{port}")))
    filled = [world.with_values({"port": port}) for port in ("1", "2")]
    assert [each.ledger.source for each in filled if each.ledger] == [("echo", "1"), ("echo", "2")]
    assert len({each.ledger.digest for each in (world, *filled) if each.ledger}) == 1


class Ledger(BaseHTTPRequestHandler):
    """Answers by path."""

    def do_GET(self) -> None:
        if self.path == "/slow":
            self.server.stopped.wait(20)  # type: ignore[attr-defined]
        body = b"[]" if self.path != "/wrong" else b"<html>"
        self.send_response(503 if self.path == "/down" else 200)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Log nothing."""


@pytest.fixture
def address() -> Iterator[str]:
    server = HTTPServer(("127.0.0.1", 0), Ledger)
    server.stopped = threading.Event()  # type: ignore[attr-defined]
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.stopped.set()  # type: ignore[attr-defined]
    server.shutdown()
    server.server_close()
    thread.join()


def test_a_ledger_at_an_address(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def read(path: str) -> str | None:
        return asyncio.run(EffectLedger((address + path,)).read()).why

    assert read("/ledger") is None
    assert read("/down") == "the effect ledger answered 503"
    assert read("/wrong") == "the effect ledger printed no JSON in line 1"
    monkeypatch.setattr(effect_ledger, "LEDGER_SECONDS", 0.2)
    assert read("/slow") == "the effect ledger gave no answer within 0.2 s"
    monkeypatch.undo()
    nowhere = asyncio.run(EffectLedger(("http://127.0.0.1:9/ledger",)).read()).why
    assert nowhere is not None
    assert nowhere.startswith("the effect ledger cannot be reached: ")


@given(st.lists(st.fixed_dictionaries({"key": st.text() | st.integers()})), st.randoms())
def test_any_order_gives_the_same_counts(entries: list[dict[str, object]], order: object) -> None:
    straight = count_effects(json.dumps(entries).encode())
    order.shuffle(entries)  # type: ignore[attr-defined]
    assert count_effects(json.dumps(entries).encode())[0] == straight[0]
    assert sum(straight[0].values()) == len(entries)


def test_too_many_keys_are_unknown(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(effect_ledger, "MAX_LEDGER_KEYS", 2)
    found = printing(json.dumps([{"key": n} for n in range(3)]), ("key",))
    assert found.why == "the effect ledger has more than 2 different keys"
