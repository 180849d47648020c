"""`stumble check` finds the weakness that an agent was written with, and nothing else."""

import os
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.support.servers.booking_clinic import BookingClinic, serve_booking_clinic
from tests.support.warm_stumble import CommandResult, run_stumble

AGENTS = Path(__file__).parents[2] / "support" / "agents" / "booking"
HTTP = (sys.executable, str(AGENTS / "http_agent.py"))
MCP = (sys.executable, str(AGENTS / "mcp_agent.py"))
NODE = ("node", str(AGENTS / "node_agent.mjs"))
CURL = ("bash", str(AGENTS / "curl_agent.sh"))
type Weakness = tuple[str, str, str]
"""Tool, fault, and what the agent does."""


@dataclass(frozen=True, slots=True)
class CheckedFolder:
    """A folder from which agents are checked, and the clinic that they use."""

    folder: Path
    url: str
    clinic: BookingClinic

    def check(self, habit: str, command: tuple[str, ...], *options: str) -> CommandResult:
        home = self.folder / "home"
        home.mkdir(exist_ok=True)
        work = self.folder / "work"
        work.mkdir(exist_ok=True)
        env = os.environ | {"HOME": str(home), "STUMBLE_STORE": str(self.folder / "store")}
        program, *words = command
        agent = (program, words[0], f"{self.url}/{habit}", *words[1:])
        arguments = ("check", "--json", *options, "--", *agent)
        return run_stumble(arguments, cwd=work, env=env, timeout=400)


@pytest.fixture
def checked(tmp_path: Path) -> Iterator[CheckedFolder]:
    with serve_booking_clinic() as (url, clinic):
        yield CheckedFolder(tmp_path, url, clinic)


def find_weaknesses(result: CommandResult) -> set[Weakness]:
    found = result.json["findings"]
    return {(each["tool"], each["fault"], each["behaviour"]) for each in found}


HASTY: set[Weakness] = {
    ("book_slot", fault, "repeats") for fault in ("lost_ack", "truncate", "empty")
}
PLANTED: dict[str, tuple[str, tuple[str, ...], set[Weakness]]] = {
    "http, right": ("careful", HTTP, set()),
    "http, books twice": ("hasty", HTTP, HASTY),
    "curl, gives up silently": (
        "mute",
        CURL,
        {
            ("book_slot", "lost_ack", "stops"),
            ("book_slot", "http_status", "stops"),
            ("get_slots", "http_status", "stops"),
            ("get_slots", "truncate", "stops"),
        },
    ),
    "node, crashes": (
        "careful",
        NODE,
        {
            ("book_slot", "lost_ack", "crashes"),
            ("book_slot", "http_status", "crashes"),
            ("get_slots", "http_status", "crashes"),
        },
    ),
    "mcp, believes a wrong number": ("trusting", MCP, {("get_slots", "digit", "believes")}),
}


@pytest.mark.gate
@pytest.mark.timeout(500)
@pytest.mark.parametrize("planted", PLANTED)
def test_a_check_finds_what_an_agent_was_written_with(planted: str, checked: CheckedFolder) -> None:
    habit, command, weaknesses = PLANTED[planted]
    reset = f"curl -sS -d {{}} {checked.url}/{habit}/reset"
    result = checked.check(habit, command, "--live", "--reset", reset)
    assert find_weaknesses(result) == weaknesses, result.out + result.err
    assert result.code == (1 if weaknesses else 0), result.out
    assert all(each["times"] == each["judged"] == 3 for each in result.json["findings"])
