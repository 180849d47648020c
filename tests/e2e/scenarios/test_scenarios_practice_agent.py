"""The practice agent as a program, cold and warm, on real servers and a real shop."""

import json
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import count
from pathlib import Path

import pytest

from scenarios.practice import world
from scenarios.practice.tasks.registry import ORDER_TASKS
from tests.support.agents.practice_agents import (
    ROOT,
    Place,
    place,
    program,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Ran:
    exit: int
    out: str
    err: str


class Warm:
    """An agent that keeps its imports, asked over its stdin."""

    def __init__(self, process: subprocess.Popen[str], folder: Path) -> None:
        self.process = process
        self._folder = folder
        self._ids = count(1)

    def ask(self, *arguments: str, env: dict[str, str]) -> int:
        id = next(self._ids)
        asked = {"id": id, "argv": arguments, "env": env, "cwd": str(self._folder)}
        files = {name: str(self._folder / f"{id}.{name}") for name in ("stdout", "stderr")}
        self.say(asked | files)
        return id

    def say(self, what: dict[str, object]) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(f"{json.dumps(what)}\n")
        self.process.stdin.flush()

    def ended(self) -> tuple[int, Ran]:
        assert self.process.stdout is not None
        document = json.loads(self.process.stdout.readline())
        out, err = (
            (self._folder / f"{document['id']}.{n}").read_text() for n in ("stdout", "stderr")
        )
        return document["id"], Ran(exit=document["exit"], out=out, err=err)

    def run(self, *arguments: str, env: dict[str, str]) -> Ran:
        id = self.ask(*arguments, env=env)
        ended, ran = self.ended()
        assert ended == id
        return ran


@pytest.fixture(scope="module")
def practice(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    with place(tmp_path_factory.mktemp("place")) as found:
        yield found


@pytest.fixture(scope="module")
def warm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Warm]:
    with program("agents.openai_agent", "--warm") as process:
        yield Warm(process, tmp_path_factory.mktemp("warm"))


def cold(*arguments: str, env: dict[str, str]) -> Ran:
    command = (sys.executable, "-m", "scenarios.practice.agents.openai_agent", *arguments)
    ran = subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True, timeout=60)
    return Ran(exit=ran.returncode, out=ran.stdout, err=ran.stderr)


@pytest.mark.many(4)
@pytest.mark.parametrize("task", ORDER_TASKS)
@pytest.mark.parametrize("skill", ["naive", "retries", "verifies"])
def test_every_task_is_done_by_every_skill(
    practice: Place, warm: Warm, task: str, skill: str
) -> None:
    world.reset_order_book(practice.shop, ORDER_TASKS[task])
    ran = warm.run(task, "--model", f"practice/{skill}", env=practice.env)
    assert (ran.exit, ran.err) == (0, "")
    assert ran.out.startswith("DONE: ")
    verdict = world.verify_order_book(practice.shop, ORDER_TASKS[task])
    assert verdict.passed is True, verdict.detail


@pytest.mark.parametrize("extra", [(), ("--stream",)], ids=["whole", "streamed"])
def test_a_warm_run_is_a_cold_run(practice: Place, warm: Warm, extra: tuple[str, ...]) -> None:
    arguments = ("price-2", "--model", "practice/verifies", *extra)
    before = len(practice.log.read_text().splitlines())
    world.reset_order_book(practice.shop, ORDER_TASKS["price-2"])
    one = cold(*arguments, env=practice.env)
    world.reset_order_book(practice.shop, ORDER_TASKS["price-2"])
    two = warm.run(*arguments, env=practice.env)
    assert one == two
    lines = [json.loads(line) for line in practice.log.read_text().splitlines()[before:]]
    said = [{k: v for k, v in line.items() if k != "seq"} for line in lines]
    assert said[:23] == said[23:]
    assert said[0]["stream"] is bool(extra)


def test_local_tools_do_the_same_without_a_server(
    practice: Place, warm: Warm, tmp_path: Path
) -> None:
    shop, task = tmp_path / "local.db", ORDER_TASKS["reorder-3"]
    world.set_up_order_book(shop, task)
    nowhere = practice.env | {"TOOLS_URL": "http://127.0.0.1:9"}
    local = ("--tools", "local", "--db", str(shop))
    ran = warm.run(task.id, "--model", "practice/verifies", *local, env=nowhere)
    assert ran.exit == 0
    assert world.verify_order_book(shop, task).passed is True
    missing = warm.run(task.id, "--tools", "local", env=nowhere)
    assert missing.exit == 2
    assert "local tools need --db" in missing.err


def test_the_proxy_variables_are_honoured(practice: Place, warm: Warm) -> None:
    """The model server is a proxy that knows the model and not the shop."""
    proxy = practice.env["OPENAI_BASE_URL"].removesuffix("/v1")
    ran = warm.run("refund-1", env={"HTTP_PROXY": proxy})
    assert ran.out.startswith("NOT DONE: search_customer failed: HTTP 404: 404: Not Found")


def test_what_goes_wrong_with_a_tool_is_told_to_the_model(
    practice: Place, warm: Warm, tmp_path: Path
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        hung = {"TOOLS_URL": f"http://127.0.0.1:{silent.getsockname()[1]}", "TOOLS_TIMEOUT": "0.2"}
        ran = warm.run("refund-1", env=practice.env | hung)
    assert ran.exit == 0
    assert ran.out.startswith("NOT DONE: search_customer failed: error: ReadTimeout: timed out")
    closed = warm.run("refund-1", env=practice.env | {"TOOLS_URL": "http://127.0.0.1:9"})
    assert closed.out.startswith("NOT DONE: search_customer failed: error: ConnectError: ")


def test_how_a_run_ends(practice: Place, warm: Warm) -> None:
    assert warm.run("refund-1", "--max-steps", "3", env=practice.env).exit == 3
    assert warm.run("refund-9", env=practice.env).exit == 2
    crashed = warm.run("refund-1", "--model", "gpt-4o", env=practice.env)
    assert crashed.exit == 1
    assert "NotFoundError" in crashed.err.splitlines()[-1]
    assert cold("refund-1", "--model", "gpt-4o", env=practice.env).exit == 1


def test_a_warm_run_has_the_environment_it_was_given_and_no_other(warm: Warm) -> None:
    def longest(env: dict[str, str]) -> int:
        return max(map(len, warm.run("--help", env=env).out.splitlines()))

    assert longest({"COLUMNS": "100"}) < 100 < longest({"COLUMNS": "200"})
    assert longest({}) == longest({"COLUMNS": "80"})


def test_several_warm_runs_at_once_and_the_end_of_one(practice: Place, warm: Warm) -> None:
    world.reset_order_book(practice.shop, ORDER_TASKS["refund-1"])
    with socket.create_server(("127.0.0.1", 0)) as silent:
        hung = practice.env | {"TOOLS_URL": f"http://127.0.0.1:{silent.getsockname()[1]}"}
        stuck = warm.ask("refund-1", env=hung)
        others = {warm.ask("refund-1", "--max-steps", "2", env=practice.env) for _ in range(3)}
        assert {warm.ended()[0] for _ in range(3)} == others
        warm.say({"kill": stuck})
        id, ran = warm.ended()
    assert (id, ran.exit) == (stuck, -signal.SIGKILL)


@pytest.mark.parametrize("told", ["end of stdin", "SIGTERM"])
def test_the_end_of_a_warm_agent_ends_its_runs(practice: Place, tmp_path: Path, told: str) -> None:
    with (
        program("agents.openai_agent", "--warm") as process,
        socket.create_server(("127.0.0.1", 0)) as silent,
    ):
        silent.settimeout(30)
        warm = Warm(process, tmp_path)
        warm.ask(
            "refund-1",
            env=practice.env | {"TOOLS_URL": f"http://127.0.0.1:{silent.getsockname()[1]}"},
        )
        connection, _ = silent.accept()
        with connection:
            assert process.stdin is not None
            if told == "SIGTERM":
                process.terminate()
            else:
                process.stdin.close()
            assert process.wait(20) == (143 if told == "SIGTERM" else 0)
            connection.settimeout(20)
            while connection.recv(1 << 16):
                pass
