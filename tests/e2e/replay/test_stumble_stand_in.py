"""`stumble mcp --replay`: an MCP server from a tape, for clients that know nothing of it."""

import json
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.clients.test_stumble_tee import Desk, desk, server
from tests.support.agents.mcp_tee_client import (
    ROOT,
    SMALL,
)
from tests.support.practice_shop import shop
from traces.dialects import mcp
from traces.tape.reader import read_tape

__all__ = ["desk"]

LIMIT = 240.0
STUMBLE = (sys.executable, "-m", "stumble")
TALK = (sys.executable, str(ROOT / "tests" / "support" / "agents" / "mcp_client.py"))
INITIALIZE = {"protocolVersion": "2024-01-01", "clientInfo": {"name": "another"}}

pytestmark = pytest.mark.timeout(LIMIT)


@pytest.fixture
def tape(desk: Desk) -> tuple[str, dict[str, object]]:
    """A session with the small server, which is not there any more, and what was heard of it."""
    small = server(desk)
    (desk.folder / ".stumble").mkdir(mode=0o700)  # else one in a folder above would be found
    command = " ".join((*STUMBLE, "mcp", "--name", "small", "--", *small))
    code, out, err = desk.run(*TALK, command)
    assert code == 0, err
    path = closed(desk.folder / ".stumble" / "tapes")
    Path(small[-1]).unlink()
    heard = json.loads(out)
    assert heard["progress"] == [0, 1, 2]
    assert (heard["heard"], heard["cancelled"]) == (["unasked"], True)
    return str(path), heard


def closed(folder: Path) -> Path:
    """The one tape there, once its recorder, which is a process of its own, is done with it."""
    until = time.monotonic() + 60
    while time.monotonic() < until:
        for path in folder.glob("*.tape"):
            if read_tape(path).ending is not None:
                return path
        time.sleep(0.02)
    raise TimeoutError(f"no tape was closed in {folder}")


@pytest.mark.many(1)
@pytest.mark.parametrize("mode", ["legacy", "auto"])
def test_a_client_hears_over_stdio_what_it_heard(
    desk: Desk, tape: tuple[str, dict[str, object]], mode: str
) -> None:
    """Parallel calls, progress, an error, a call that was cancelled, and words unasked."""
    command = " ".join((*STUMBLE, "mcp", "--replay", tape[0], "--speed", "1"))
    code, out, err = desk.run(*TALK, command, mode)
    assert code == 0, err
    assert json.loads(out) == tape[1]
    assert "17 answered from the tape, 0 diverged" in err


def test_over_http_it_is_the_same_but_for_what_was_said_unasked(
    desk: Desk, tape: tuple[str, dict[str, object]]
) -> None:
    with listening(desk, "--replay", tape[0]) as (url, ended):
        code, out, err = desk.run(*TALK, url)
        assert code == 0, err
    assert json.loads(out) == tape[1] | {"progress": [], "heard": []}
    ((code, err),) = ended
    assert code == 0
    assert "0 diverged" in err


def test_another_call_is_refused_explained_and_no_answer_is_given_twice(
    desk: Desk, tape: tuple[str, dict[str, object]]
) -> None:
    said, code, err = lines(
        desk,
        tape[0],
        {"id": 1, "method": "initialize", "params": INITIALIZE},
        {"id": 2, "method": "ping"},
        {"id": 3, "method": "tools/call", "params": echo("last")},
        {"id": 4, "method": "tools/call", "params": echo("last")},
        {"id": 5, "method": "tools/call", "params": echo("never said")},
    )
    assert [each["id"] for each in said] == [1, 2, 3, 4, 5]
    assert ["result" in each for each in said] == [True, True, True, False, False]
    assert "nearest is exchange" in said[4]["error"]["message"]
    assert code == 3
    assert "2 diverged" in err


@pytest.mark.many(1)
@pytest.mark.parametrize("version", ["2026-07-28", "2025-11-25"])
def test_a_server_of_http_is_one_of_stdio_and_of_http_again(tmp_path: Path, version: str) -> None:
    folder = tmp_path / "shop"
    folder.mkdir()
    more = ("--tools", "mcp", "--mcp-version", version)
    with shop(folder, mcp=()) as world:
        recorded = world.record("a.tape", "practice/retries", *more)
        assert recorded.code == 0, recorded.err
        world.stop("mcp")
        here = Desk(folder)
        calls = [
            json.loads(x.request.body)
            for x in read_tape(folder / "a.tape").exchanges
            if (message := mcp.read_client_message(x.request)) and message.role != "aside"
        ]
        said, code, err = lines(here, "a.tape", *calls)
        assert code == 0, err
        assert [each["id"] for each in said] == [each["id"] for each in calls]
        assert all("result" in each for each in said)
        assert "0 diverged" in err

        with listening(here, "--replay", "a.tape") as (url, ended):
            again = world.stumble(
                "record", "-o", "b.tape", *world.host_options(),
                "--", *world.agent("practice/retries", *more), env={"MCP_URL": url},
            )  # fmt: skip
        assert (again.code, again.out) == (0, recorded.out), again.err
        assert ended[0][0] == 0, ended


def test_what_makes_no_sense_is_one_line(desk: Desk) -> None:
    assert desk.run(*STUMBLE, "record", "-o", "a.tape", "--", "true")[0] == 0
    for words, says in (
        (("--http",), "give a server's command after --, or a tape with --replay"),
        (("--replay", "no.tape"), "does not exist"),
        (("--replay", "a.tape"), "has no MCP server on it"),
        (("--replay", "a.tape", "--", "cat"), "starts no server"),
    ):
        code, _, err = desk.run(*STUMBLE, "mcp", *words)
        assert code == 2, words
        assert says in err
        assert "Traceback" not in err


def test_of_several_servers_one_is_named(desk: Desk) -> None:
    server(desk)
    one, two = (" ".join((*STUMBLE, "mcp", "--name", n, "--", *SMALL)) for n in ("one", "two"))
    both = " && ".join(" ".join((*TALK, f"'{each}'")) for each in (one, two))
    code, _, err = desk.run(*STUMBLE, "record", "-o", "a.tape", "--", "sh", "-c", both)
    assert code == 0, err
    code, _, err = desk.run(*STUMBLE, "mcp", "--replay", "a.tape")
    assert code == 2
    assert "say which by --name: stdio://one/, stdio://two/" in err
    asked = {"id": 1, "method": "initialize", "params": INITIALIZE}
    said, code, err = lines(desk, "a.tape", asked, name="two")
    assert ("result" in said[0], code) == (True, 0), err


def echo(text: str) -> dict[str, object]:
    return {"name": "echo", "arguments": {"text": text}}


def lines(
    desk: Desk, tape: str, *messages: dict[str, object], name: str | None = None
) -> tuple[list[dict[str, Any]], int, str]:
    """What a stand-in over stdio answers to these, its exit code and its errors."""
    named = () if name is None else ("--name", name)
    done = subprocess.run(
        (*STUMBLE, "mcp", *named, "--replay", tape),
        input="".join(json.dumps({"jsonrpc": "2.0"} | each) + "\n" for each in messages),
        cwd=desk.folder,
        env=desk.env(),
        capture_output=True,
        text=True,
        timeout=LIMIT,
    )
    return [json.loads(line) for line in done.stdout.splitlines()], done.returncode, done.stderr


@contextmanager
def listening(desk: Desk, *words: str) -> Iterator[tuple[str, list[tuple[int, str]]]]:
    """The URL of a stand-in over HTTP; after the block its exit code and its errors."""
    ended: list[tuple[int, str]] = []
    with subprocess.Popen(
        (*STUMBLE, "mcp", *words, "--http"),
        cwd=desk.folder,
        env=desk.env(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            assert process.stdout is not None
            yield process.stdout.readline().split()[1], ended
        finally:
            process.send_signal(signal.SIGTERM)
            _, err = process.communicate(timeout=60)
            ended.append((process.returncode, err))
