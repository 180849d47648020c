"""`stumble check` finds the weakness that an agent was written with, and nothing else."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.checked_folder import AGENTS, CURL_AGENT, CheckedFolder, open_checked_folder
from tests.support.warm_stumble import CommandResult

HTTP = (sys.executable, str(AGENTS / "http_agent.py"))
MCP = (sys.executable, str(AGENTS / "mcp_agent.py"))
NODE = ("node", str(AGENTS / "node_agent.mjs"))
CURL = ("bash", CURL_AGENT)
SHELL = ("bash", str(AGENTS / "shell_agent.sh"))
type Weakness = tuple[str, str, str]
"""Tool, fault, and what the agent does."""


@pytest.fixture
def checked(tmp_path: Path) -> Iterator[CheckedFolder]:
    with open_checked_folder(tmp_path) as folder:
        yield folder


def find_weaknesses(result: CommandResult) -> set[Weakness]:
    found = result.json["findings"]
    return {(each["tool"], each["fault"], each["behaviour"]) for each in found}


def list_weaknesses(behaviour: str, *places: str) -> set[Weakness]:
    """Return the weaknesses of `tool/fault` places."""
    return {(*place.split("/"), behaviour) for place in places}  # type: ignore[misc]


HASTY = list_weaknesses("repeats", "book_slot/lost_ack", "book_slot/truncate", "book_slot/empty")
MUTE = list_weaknesses(
    "stops", "book_slot/lost_ack", "book_slot/http_status", "get_slots/http_status",
    "get_slots/truncate",
)  # fmt: skip
CRASHING = list_weaknesses(
    "crashes", "book_slot/lost_ack", "book_slot/http_status", "get_slots/http_status"
)
SHELL_FAULTS = ("lost_ack", "truncate", "empty")
PLANTED: dict[str, tuple[str, tuple[str, ...], set[Weakness]]] = {
    "http, right": ("careful", HTTP, set()),
    "http, books twice": ("hasty", HTTP, HASTY),
    "curl, right": ("careful", CURL, set()),
    "shell, books twice": (
        "hasty",
        SHELL,
        list_weaknesses("repeats", *(f"bash (curl; writes)/{f}" for f in SHELL_FAULTS)),
    ),
    "curl, gives up silently": ("mute", CURL, MUTE),
    "node, crashes": ("careful", NODE, CRASHING),
    "mcp, believes a wrong number": (
        "trusting", MCP, list_weaknesses("believes", "get_slots/digit")
    ),
}  # fmt: skip


@pytest.mark.gate
@pytest.mark.many(2)
@pytest.mark.timeout(500)
@pytest.mark.parametrize("planted", PLANTED)
def test_a_check_finds_what_an_agent_was_written_with(planted: str, checked: CheckedFolder) -> None:
    habit, (program, file), weaknesses = PLANTED[planted]
    reset = f"curl -sS -d {{}} {checked.url}/{habit}/reset"
    command = (program, file, f"{checked.url}/{habit}")
    result = checked.check(command, "--live", "--reset", reset)
    assert find_weaknesses(result) == weaknesses, result.out + result.err
    assert result.code == (1 if weaknesses else 0), result.out
    assert all(each["times"] == each["judged"] == 3 for each in result.json["findings"])


@pytest.mark.thorough
@pytest.mark.timeout(500)
def test_tools_answer_from_one_recording_without_live(checked: CheckedFolder) -> None:
    result = checked.check(checked.curl_agent("hasty"), "--yes")
    assert len(checked.clinic.booked) == 1, "the clinic is written by the recording alone"
    assert find_weaknesses(result) == HASTY, result.out + result.err
    assert result.code == 1


@pytest.mark.thorough
@pytest.mark.timeout(1300)
def test_an_agent_that_obeys_a_tools_answer_is_found(checked: CheckedFolder) -> None:
    reset = f"curl -sS -d {{}} {checked.url}/obedient/reset"
    command = (*HTTP, f"{checked.url}/obedient")
    for _ in range(3):  # instructions are the last faults, and a busy machine needs another check
        result = checked.check(command, "--live", "--reset", reset)
        if not any("before the end came" in each for each in result.json["not_tried"]):
            break
    assert find_weaknesses(result) == list_weaknesses(
        "obeys", "get_slots/instruction", "book_slot/instruction"
    )
