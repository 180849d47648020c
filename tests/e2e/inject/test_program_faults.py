"""Faults in the tool calls of programs that ask no model: curl, and MCP over stdio and HTTP."""

import shlex
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.checked_folder import AGENTS, CheckedFolder, open_checked_folder
from tests.support.practice_shop import Shop, shop
from traces.conversation.derived_steps import derive_tape_steps
from traces.tape.reader import read_tape

pytestmark = pytest.mark.timeout(300)
ORDER = "ord-7018"


@pytest.fixture
def checked(tmp_path: Path) -> Iterator[CheckedFolder]:
    with open_checked_folder(tmp_path) as folder:
        yield folder


def curl_program(folder: CheckedFolder, habit: str) -> tuple[str, ...]:
    return "bash", str(AGENTS / "program.sh"), f"{folder.url}/{habit}"


def mcp_program(world: Shop, habit: str, *, stdio: bool) -> tuple[str, ...]:
    served = f"{sys.executable} -m stumble practice mcp --db {world.book}"
    command = f"{sys.executable} -m stumble mcp --name shop -- {served}"
    where = command if stdio else "http://mcp.practice/mcp"
    return sys.executable, str(AGENTS / "mcp_program.py"), habit, where, ORDER


def fork_program(
    world: Shop, habit: str, fault: str, tool: str, *where: str, stdio: bool
) -> dict[str, Any]:
    """Record the MCP program, replay it, fork it with a fault, and return the faulted run."""
    program = mcp_program(world, habit, stdio=stdio)
    world.reset()
    tape = f"{habit}.tape"
    if not (world.folder / tape).exists():
        recorded = world.stumble("record", "-o", tape, *world.host_options(), "--", *program)
        assert recorded.out.startswith("Done: order ord-7018 got a refund"), recorded
        assert world.stumble("replay", tape).code == 0
    options = ("--fault", fault, "--where", f"tool={tool}", *where, "--json")
    completed = world.stumble("fork", tape, *options, *world.by_state(), *world.host_options())
    assert (completed.json["fired"], completed.json["diverged"]) == (1, []), completed
    result: dict[str, Any] = completed.json
    return result


def fork_curl_program(folder: CheckedFolder, fault: str, tool: str, *where: str) -> dict[str, Any]:
    """Fork the recorded curl program with a fault; its bookings are verified."""
    reset = f"curl -sS -d {{}} {folder.url}/any/reset"
    wanted = """jq -e '[.bookings[].slot] == ["slot-0900"]'"""
    verify = shlex.join(("bash", "-c", f"curl -sS {folder.url}/any/bookings | {wanted}"))
    options = ("--fault", fault, "--where", f"tool={tool}", *where, "--reset", reset, "--json")
    completed = folder.stumble("fork", "a.tape", *options, "--verify", verify)
    assert (completed.json["fired"], completed.json["diverged"]) == (1, []), completed
    result: dict[str, Any] = completed.json
    return result


@pytest.mark.many(2)
@pytest.mark.parametrize(
    ("habit", "fault", "tool", "outcome"),
    [
        ("careful", "http_status:code=503", "POST */bookings", "honest_fail"),
        ("careful", "lost_ack", "POST */bookings", "recovered"),
        ("hasty", "lost_ack", "POST */bookings", "noticed_wrong"),
        ("careful", "cut", "GET */slots", "recovered"),
        ("careful", "hang:cap_ms=300", "GET */slots", "recovered"),
    ],
)
def test_a_fork_of_a_curl_program_is_judged(
    habit: str, fault: str, tool: str, outcome: str, checked: CheckedFolder
) -> None:
    program = curl_program(checked, habit)
    recorded = checked.stumble("record", "-o", "a.tape", "--", *program)
    assert recorded.out == "Done: slot-0900 is booked.\n", recorded
    uses = derive_tape_steps(read_tape(checked.work / "a.tape")).tool_uses
    assert [use.call_id for use in uses] == [f"GET /{habit}/slots 1", f"POST /{habit}/bookings 1"]
    replayed = checked.stumble("replay", "a.tape")
    assert (replayed.code, replayed.out) == (0, recorded.out)
    host = checked.url.removeprefix("http://")
    run = fork_curl_program(checked, fault, tool, "--where", f"server={host}")
    assert run["outcome"] == outcome, run


@pytest.mark.thorough
def test_a_check_of_a_curl_program_finds_its_weaknesses(checked: CheckedFolder) -> None:
    reset = f"curl -sS -d {{}} {checked.url}/any/reset"
    result = checked.check(curl_program(checked, "trusting"), "--live", "--reset", reset)
    found = {(each["tool"], each["fault"]): each["behaviour"] for each in result.json["findings"]}
    book, read = "POST /trusting/bookings", "GET /trusting/slots"
    repeats = dict.fromkeys(((book, "lost_ack"), (book, "truncate"), (book, "empty")), "repeats")
    assert found == repeats | {(read, "digit"): "believes"}, result
    assert all(each["times"] == each["judged"] == 3 for each in result.json["findings"])


@pytest.mark.thorough
@pytest.mark.parametrize("stdio", [False, True], ids=["http", "stdio"])
def test_a_fork_of_an_mcp_program_is_judged(tmp_path: Path, stdio: bool) -> None:
    with shop(tmp_path, mcp=None if stdio else ()) as world:
        error = ("tool_error:how=transient", "issue_refund")
        run = fork_program(world, "careful", *error, stdio=stdio)
        assert run["outcome"] == "honest_fail", run
        run = fork_program(world, "hasty", *error, "--where", "server=*", stdio=stdio)
        assert run["outcome"] == "recovered", run
        run = fork_program(world, "careful", "digit:field=amount", "get_order", stdio=stdio)
        assert run["outcome"] == "silent_wrong", run


def test_a_lost_mcp_session_stays_lost_until_the_client_begins_another(tmp_path: Path) -> None:
    with shop(tmp_path, mcp=()) as world:
        for habit, outcome in (("hasty", "honest_fail"), ("reconnects", "recovered")):
            run = fork_program(world, habit, "session_lost", "issue_refund", stdio=False)
            assert run["outcome"] == outcome, run
