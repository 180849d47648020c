"""Clients that take a base URL and no proxy: recorded under the real URL, and replayed."""

import asyncio
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

from recorder.event_loop import run_event_loop
from stumble.errors import UsageError
from stumble.runs.environment.base_urls import parse_base_urls as read_upstreams
from tests.e2e.record.test_stumble_ca import stumble
from tests.support.servers.raw_servers import (
    says,
    server_ca,
    server_tls,
    serving,
)
from traces.tape.reader import read_tape

NAME = "api.example.test"
OK = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}"
ASK = """
import os, sys, httpx
url = os.environ["MY_BASE"] + "/items"
with httpx.Client(trust_env=sys.argv[1] == "proxy") as client:
    print(client.post(url, json={"n": 1}).text, url.startswith("http://127.0.0.1:"))
"""


def agent(way: str) -> tuple[str, ...]:
    return ("--", sys.executable, "-c", ASK, way)


@dataclass(frozen=True)
class Done:
    code: int
    out: str
    err: str


async def told(folder: Path, *arguments: str) -> Done:
    """`stumble` with a server of this process to talk to."""
    extra = {"SSL_CERT_FILE": str(server_ca())}
    done = await asyncio.to_thread(stumble, folder, *arguments, extra=extra)
    return Done(done.returncode, done.stdout, done.stderr)


@pytest.mark.many(1)
@pytest.mark.parametrize("way", ["direct", "proxy"])
def test_a_client_with_a_base_url_is_recorded_and_replayed(way: str, tmp_path: Path) -> None:
    async def main() -> None:
        async with serving(says(OK), tls=server_tls(NAME)) as server:
            host = ("--host", f"{NAME}=127.0.0.1:{server.port}")
            base = ("--upstream", f"https://{NAME}/v2", "--base-url-env", "MY_BASE")
            said = await told(tmp_path, "record", "-o", "a.tape", *host, *base, *agent(way))
            assert (said.code, said.out) == (0, "{} True\n"), said.err
            assert f"stands for https://{NAME}/v2 (set as MY_BASE)" in said.err
            (exchange,) = read_tape(tmp_path / "a.tape").exchanges
            assert exchange.request.url == f"https://{NAME}/v2/items"
            assert ("Host", NAME) in [(k.title(), v) for k, v in exchange.request.headers]
            assert b"127.0.0.1" not in server.requests[0]
            assert f"host: {NAME}\r\n".encode() in server.requests[0].lower()

            again = await told(tmp_path, "replay", "a.tape", *agent(way))
            assert (again.code, again.out) == (0, "{} True\n"), again.err
            assert len(server.requests) == 1

            live = await told(tmp_path, "replay", "a.tape", "--live", "tools", *host, *agent(way))
            assert (live.code, live.out) == (0, "{} True\n"), live.err
            assert len(server.requests) == 2
            assert server.requests[0].split(b"\r\n")[0] == server.requests[1].split(b"\r\n")[0]
            assert f"host: {NAME}\r\n".encode() in server.requests[1].lower()

    run_event_loop(asyncio.wait_for(main(), 120))


@pytest.mark.parametrize(
    ("texts", "names", "found"),
    [
        (
            ("https://api.openai.com/v1",),
            (),
            {"https://api.openai.com/v1": ("OPENAI_BASE_URL", "OPENAI_API_BASE")},
        ),
        (
            ("https://API.anthropic.com:443/",),
            (),
            {"https://api.anthropic.com": ("ANTHROPIC_BASE_URL",)},
        ),
        (
            ("https://generativelanguage.googleapis.com",),
            (),
            {"https://generativelanguage.googleapis.com": ("GOOGLE_GEMINI_BASE_URL",)},
        ),
        (
            ("http://10.0.0.7:8000/v1",),
            (),
            {"http://10.0.0.7:8000/v1": ("OPENAI_BASE_URL", "OPENAI_API_BASE")},
        ),
        (("https://x.test/api",), (), {"https://x.test/api": ()}),
        (("https://x.test/v1",), ("A", "B"), {"https://x.test/v1": ("A", "B")}),
        (
            ("https://x.test", "https://y.test"),
            ("A=https://x.test/", "B=https://y.test"),
            {"https://x.test": ("A",), "https://y.test": ("B",)},
        ),
    ],
)
def test_which_variables_a_client_reads(
    texts: tuple[str, ...], names: tuple[str, ...], found: Mapping[str, tuple[str, ...]]
) -> None:
    assert {each.url: each.variables for each in read_upstreams(texts, names)} == found


@pytest.mark.parametrize(
    ("texts", "names", "why"),
    [
        (("api.openai.com",), (), "not \\[PORT=\\]"),
        (("https://u:p@x.test",), (), "not \\[PORT=\\]"),
        (("https://x.test/v1", "https://y.test/v1"), (), "OPENAI_BASE_URL would stand for two"),
        (("https://x.test", "https://y.test"), ("A",), "say which --upstream"),
        ((), ("A",), "say which --upstream"),
        (("99999=https://x.test",), (), "cannot listen there"),
    ],
)
def test_what_makes_no_sense_is_said_before_anything_runs(
    texts: tuple[str, ...], names: tuple[str, ...], why: str
) -> None:
    with pytest.raises(UsageError, match=why):
        read_upstreams(texts, names)


def test_a_port_of_the_users_choice_is_kept_for_the_replay(tmp_path: Path) -> None:
    [each] = read_upstreams(("8123=https://api.openai.com/v1",))
    assert (each.port, each.text) == (8123, "8123=https://api.openai.com/v1")
    assert each.to_local_url({each.origin: 8123}) == "http://127.0.0.1:8123/v1"
