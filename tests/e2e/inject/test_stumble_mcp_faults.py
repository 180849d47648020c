"""Strikes at mcp in real runs: the official SDK's client and server, over HTTP and stdio.

No run says `--at`: where a call goes over MCP that is where it is struck.
"""

import json
import re
import sys
from pathlib import Path

import pytest

from faults.judging.consumption import decide_consumption
from tests.support.practice_shop import (
    Shop,
    shop,
)
from traces.conversation.derived_steps import ToolUse, derive_tape_steps
from traces.model import Exchange, Injection
from traces.tape.reader import Tape, read_tape

NEW, OLD = ("--mcp-version", "2026-07-28"), ("--mcp-version", "2025-11-25")
LIMIT = 300.0
OURS = re.compile(rb"(?i)stumble|inject|fault|chaos|nemesis|mutat")


pytestmark = pytest.mark.timeout(LIMIT)


def command(world: Shop) -> tuple[str, str]:
    """The option for a server over stdio, behind a tee."""
    served = f"{sys.executable} -m stumble practice mcp --db {world.book}"
    return "--mcp-command", f"{sys.executable} -m stumble mcp --name shop -- {served}"


def record(world: Shop, fault: str, *more: str) -> tuple[Tape, Injection, ToolUse, Exchange]:
    """A live run that is struck at the first order that it asks for."""
    world.reset()
    (world.folder / "b.tape").unlink(missing_ok=True)
    options = ("--fault", fault, "--where", "tool=get_order")
    agent = world.agent("practice/naive", "--tools", "mcp", *more)
    result = world.stumble("record", "-o", "b.tape", *world.host_options(), *options, "--", *agent)
    assert "faulted get_order at mcp with " in result.err
    tape = read_tape(world.folder / "b.tape")
    (injection,) = tape.injections
    derived_steps = derive_tape_steps(tape)
    use = derived_steps.find_use(injection.call_id or "")
    assert use is not None
    assert decide_consumption(injection, derived_steps, tape.exchanges).consumed is True
    injected = next(x for x in tape.exchanges if x.seq == injection.seq)
    assert injected.response is None or not OURS.search(injected.response.body)
    return tape, injection, use, injected


def test_over_http_a_client_tells_its_model_of_each_kind_of_failure(tmp_path: Path) -> None:
    with shop(tmp_path, mcp=()) as world:
        _, injection, use, _ = record(world, "tool_error:how=transient", *NEW)
        assert (injection.error_channel, injection.detect) == ("flag", "D0")
        assert "Temporarily unavailable" in (use.result or "")
        assert use.is_error

        _, injection, use, _ = record(world, "protocol_error:code=-32602", *OLD)
        assert (injection.error_channel, injection.detect) == ("jsonrpc", "D0")
        assert use.result == "error: MCP error -32602: Invalid params"

        fault = "hang:progress=true,cap_ms=1200"
        _, injection, use, struck = record(world, fault, *OLD)
        assert injection.error_channel == "http"
        assert struck.response is not None
        assert [chunk.data for chunk in struck.response.chunks] == [b": ping\r\n\r\n"] * 2
        assert "stream ended without a response" in (use.result or "")


def test_over_stdio_the_same_result_and_the_same_failures_are_heard(tmp_path: Path) -> None:
    with shop(tmp_path) as world:
        server = command(world)
        _, injection, use, _ = record(world, "digit:field=amount", *server)
        assert use.result == (injection.mutated or b"").decode()
        assert use.stdio
        assert injection.detect == "D2", "the list of orders said another amount"

        tape, injection, use, struck = record(world, "hang:cap_ms=400", *server)
        assert injection.error_channel == "jsonrpc"
        assert use.result == "error: MCP error -32001: Request timed out"
        assert struck.response is not None
        assert struck.response.at - struck.started >= 0.4
        assert len(derive_tape_steps(tape).tool_uses) > 1

        _, injection, use, struck = record(world, "cut", *server)
        assert (injection.error_channel, struck.error) == ("jsonrpc", "eof: the server ended")
        assert (use.result or "").startswith("error: ")


@pytest.mark.parametrize("stdio", [False, True], ids=["http", "stdio"])
def test_a_fork_strikes_at_mcp_and_its_twins_get_the_clean_bytes(
    tmp_path: Path, stdio: bool
) -> None:
    with shop(tmp_path, mcp=None if stdio else ()) as world:
        more = ("--tools", "mcp", *(command(world) if stdio else NEW))
        assert world.record("a.tape", "practice/retries", *more).code == 0
        result = world.stumble(
            "fork", "a.tape", *world.world(), *world.host_options(), "--json",
            "--fault", "tool_error:how=transient", "--where", "tool=get_order",
            "--", *world.agent("practice/retries", *more),
        )  # fmt: skip
        found = json.loads(result.out)
        assert "at mcp with tool_error" in found["strike"]
        assert (found["fired"], found["consumed"], found["diverged"]) == (1, True, [])
        twin = read_tape(world.folder / ".stumble" / "tapes" / f"{found['twins'][0]['run']}.tape")
        recorded = derive_tape_steps(read_tape(world.folder / "a.tape"))
        (sham,) = twin.injections
        assert (sham.place, sham.original) == ("mcp", sham.mutated)
        same = derive_tape_steps(twin).find_use(sham.call_id or "")
        assert same is not None
        assert same.result == getattr(recorded.find_use(sham.call_id or ""), "result", None)


def test_a_status_goes_to_the_model_request_where_the_server_is_one_of_stdio(
    tmp_path: Path,
) -> None:
    with shop(tmp_path) as world:
        more = ("--tools", "mcp", *command(world))
        assert world.record("a.tape", "practice/naive", *more).code == 0
        options = ("--fault", "http_status:code=503", "--where", "tool=get_order")
        result = world.stumble("replay", "a.tape", *options)
        assert result.code == 3
        assert "HTTP 503: " in result.err
        result = world.stumble("replay", "a.tape", *options, "--at", "mcp")
        assert result.code == 2
        assert "one over stdio, which has no status; try tool_error" in result.err
