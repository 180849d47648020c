"""Never a false recovery, where tools are no HTTP: over MCP by HTTP and by stdio, and local ones.

The three truths of test_stumble_main_job.py, for each of these. A local tool has no server
that could be stopped: it runs again, so what is broken there is its file or its command.
"""

import os
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from scenarios.practice.tasks.shell import SHELL_TASKS
from tests.agents import environment
from tests.support.agents.mcp_tee_client import SMALL
from tests.support.practice_shop import (
    Said,
    Shop,
    shop,
)

LIMIT = 240.0
RETRIES = "practice/retries"
MINI = {
    "OPENAI_API_BASE": "http://model.practice/v1",
    "MSWEA_CONFIGURED": "true",
    "MSWEA_COST_TRACKING": "ignore_errors",
    "MSWEA_SILENT_STARTUP": "1",
}
PERMANENT = ("--fault", "http_status:code=503", "--persist", "permanent")
MCP = {
    "http, 2026-07-28": ("--mcp-version", "2026-07-28"),
    "http, 2025-11-25": ("--mcp-version", "2025-11-25"),
    "stdio": (),
    "stdio, 2025-11-25": ("--mcp-version", "2025-11-25"),
}

pytestmark = pytest.mark.timeout(LIMIT)


@dataclass(frozen=True, slots=True)
class Recorded:
    """A run whose tools are stopped now."""

    shop: Shop
    agent: tuple[str, ...]
    said: str

    def replay(self, *options: str) -> Said:
        words = ("replay", "a.tape", *options, "--", *self.agent)
        return self.shop.stumble(*words, timeout=LIMIT)

    def verdicts(self) -> list[dict[str, object]]:
        """What the store says about how well replays went, with or without an outcome."""
        asks = "select trajectories.passed, class from trajectories left join outcomes on"
        one = "split_part(injection_id, '/', 1) = trajectory_id where source = 'replay'"
        rows: list[dict[str, object]] = self.shop.stumble("sql", "--json", f"{asks} {one}").json
        return rows


@pytest.fixture(scope="module", params=MCP)
def over_mcp(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Recorded]:
    folder, version = tmp_path_factory.mktemp("mcp"), MCP[request.param]
    stdio = request.param.startswith("stdio")
    with shop(folder, mcp=None if stdio else ()) as world:
        if stdio:
            recorded = over_stdio(world, *version)
            program(world).unlink()
        else:
            recorded = record(world, *version)
            world.stop("mcp")
        yield recorded


def over_stdio(world: Shop, *more: str) -> Recorded:
    """A run with `stumble practice mcp` for a server, started by a program that can be removed."""
    program(world).write_text("from stumble.__main__ import main\nmain()\n")
    served = f"{sys.executable} {program(world)} practice mcp --db {world.book}"
    tee = f"{sys.executable} -m stumble mcp --name shop -- {served}"
    return record(world, "--mcp-command", tee, *more)


def program(world: Shop) -> Path:
    return world.book.with_name("server.py")


def record(world: Shop, *more: str, tools: str = "mcp") -> Recorded:
    said = world.record("a.tape", RETRIES, "--tools", tools, *more)
    assert said.code == 0, said.err
    assert world.passed()
    return Recorded(world, world.agent(RETRIES, "--tools", tools, *more), said.out)


def test_truth_1_with_mcp_stopped_a_strict_replay_says_nothing_about_recovery(
    over_mcp: Recorded,
) -> None:
    said = over_mcp.replay()
    assert (said.code, said.out) == (0, over_mcp.said), said.err
    assert "tools were not contacted: this says nothing about recovery" in said.err
    assert "0 upstream, 0 diverged" in said.err
    assert over_mcp.verdicts() == [{"passed": None, "class": None}]


def test_truth_2_with_live_mcp_that_is_down_the_recorded_answer_is_never_reached(
    over_mcp: Recorded,
) -> None:
    said = over_mcp.replay("--live", "tools", *over_mcp.shop.host_options())
    assert said.code == 3
    assert over_mcp.said not in said.out
    assert "diverged: live answer to " in said.err


def test_truth_2_with_another_server_in_its_place_it_is_not_reached_either(
    tmp_path: Path,
) -> None:
    """It answers whatever it is asked, but with nothing in it."""
    folder = tmp_path / "place"
    folder.mkdir()
    with shop(folder) as world:
        recorded = over_stdio(world)
        program(world).write_bytes(Path(SMALL[-1]).read_bytes())
        said = recorded.replay("--live", "tools", *world.host_options())
    assert said.code == 3
    assert recorded.said not in said.out
    assert "diverged: live answer to MESSAGE stdio://shop/" in said.err


def test_truth_3_a_permanent_503_over_mcp_without_a_fork_diverges(over_mcp: Recorded) -> None:
    """Over HTTP the client is told a status, and tells the model only that there was an error."""
    said = over_mcp.replay(*PERMANENT)
    assert said.code == 3
    assert over_mcp.said not in said.out
    assert re.search("503|Server returned an error response", said.err)
    assert "nearest is exchange" in said.err


STRUCK = {
    "http, 2026-07-28": ("digit:field=amount", "nearest is exchange"),
    "http, 2025-11-25": ("protocol_error", "MCP error -32603: Internal error"),
    "stdio": ("tool_error", "invalid_argument"),
    "stdio, 2025-11-25": ("truncate:keep=0.4", "nearest is exchange"),
}


def test_a_strike_at_mcp_without_a_fork_never_ends_in_the_recorded_answer(
    over_mcp: Recorded, request: pytest.FixtureRequest
) -> None:
    fault, says = STRUCK[request.node.callspec.params["over_mcp"]]
    options = ("--fault", fault, "--at", "mcp", "--where", "tool=get_order")
    said = over_mcp.replay(*options)
    assert said.code == 3
    assert "1 faulted" in said.err
    assert over_mcp.said not in said.out
    assert re.search(says, said.err)


@pytest.fixture(scope="module")
def local(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Recorded]:
    """The practice agent with the order book in its own folder, which is used up now."""
    folder = tmp_path_factory.mktemp("local")
    with shop(folder) as world:
        world.book.rename(folder / "book.db")
        more = ("--tools", "local", "--db", "book.db")
        result = world.stumble(
            "record", "-o", "a.tape", *world.host_options(), "--", *world.agent(RETRIES, *more)
        )
        assert result.code == 0, result.err
        yield Recorded(world, world.agent(RETRIES, *more), result.out)


def test_truth_1_local_tools_run_again_and_still_say_nothing_about_recovery(
    local: Recorded,
) -> None:
    said = local.replay()
    assert (said.code, said.out) == (0, local.said), said.err
    assert "tools were not contacted: this says nothing about recovery" in said.err
    assert local.verdicts() == [{"passed": None, "class": None}]


@pytest.mark.parametrize("live", [(), ("--live", "tools")], ids=["strict", "live"])
def test_truth_2_with_a_file_that_is_gone_the_recorded_answer_is_never_reached(
    local: Recorded, live: tuple[str, ...]
) -> None:
    book = local.shop.folder / "book.db"
    recorded = book.read_bytes()
    book.unlink()
    try:
        said = local.replay("--in-place", *live, *(local.shop.host_options() if live else ()))
    finally:
        book.write_bytes(recorded)  # an empty one is in its place, which the next test would get
    assert said.code == 3
    assert local.said not in said.out
    assert "no such table" in said.err


def test_truth_3_a_permanent_503_of_local_tools_without_a_fork_diverges(local: Recorded) -> None:
    said = local.replay(*PERMANENT)
    assert said.code == 3
    assert local.said not in said.out
    assert "503" in said.err
    assert "nearest is exchange" in said.err


@pytest.mark.parametrize("live", [(), ("--live", "tools")], ids=["strict", "live"])
def test_a_command_that_fails_in_the_copied_folder_never_reaches_the_recorded_answer(
    tmp_path: Path, live: tuple[str, ...]
) -> None:
    """mini-swe-agent runs `cat`, which is another one now; refused, it would ask for minutes."""
    broken = tmp_path / "broken" / "cat"
    broken.parent.mkdir()
    broken.write_text("#!/bin/sh\necho 'cat: Input/output error' >&2\nexit 1\n")
    broken.chmod(0o755)
    folder = tmp_path / "place"
    folder.mkdir()
    with shop(folder) as world:
        program = environment("sdks-httpx").with_name("mini")
        words = ("-t", SHELL_TASKS["shell-sum"].prompt, "-y", "--exit-immediately")
        agent = (str(program), "-m", "openai/practice/naive", *words, "-o", "run.json")
        result = world.stumble(
            "record", "-o", "a.tape", *world.host_options(), "--", *agent, env=MINI, timeout=LIMIT
        )
        assert result.code == 0, result.err
        asked = len(world.asked())

        env = MINI | {"PATH": f"{broken.parent}:{os.environ['PATH']}"}
        hosts = world.host_options() if live else ()
        result = world.stumble(
            "replay",
            "a.tape",
            "--on-miss",
            "halt",
            *live,
            *hosts,
            "--json",
            "--",
            *agent,
            env=env,
            timeout=LIMIT,
        )
        assert result.code == 3, result.err
        assert len(world.asked()) == asked
        assert result.json["answered"] < asked
        assert "Input/output error" in result.json["diverged"][0]


@pytest.fixture(scope="module")
def over_http(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Recorded]:
    with shop(tmp_path_factory.mktemp("http")) as world:
        yield record(world, "--stream", tools="http")


@pytest.mark.parametrize(
    "fault",
    ["http_status:code=429", "cut:how=sse_error", "truncate"],
)
def test_truth_4_a_struck_model_without_a_fork_never_reaches_the_recorded_answer(
    over_http: Recorded, fault: str
) -> None:
    """Also where the agent's SDK tries again and would be told what was recorded."""
    said = over_http.replay("--fault", fault, "--at", "model", "--nth", "3", "--json")
    assert said.code == 3, said.err
    assert over_http.said not in said.out
    assert said.json["injected"] == 1
    assert over_http.verdicts()[-1]["passed"] is None
