"""A run whose client chose other values follows its recording, and tells which values these are."""

import os
import sys
from pathlib import Path

import pytest

from tests.support.servers.concurrent_model import serve_concurrent_model
from tests.support.tiers import EXHAUSTIVE
from tests.support.warm_stumble import CommandResult, run_stumble
from traces.tape.reader import read_tape

AGENTS = Path(__file__).parents[2] / "support" / "agents"
TRIES = 20 if EXHAUSTIVE else 2
A, X = "3f2b8f0e-7c1d-4a53-9a64-1f0c2d3e4b5a", "0a1b2c3d-4e5f-4a6b-8c7d-9e8f7a6b5c4d"


class Runs:
    """Runs of the agent, whose shells start in some order, in a session of some id."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def stumble(self, *arguments: str, shells: str = "ann,bob", id: str = A) -> CommandResult:
        home = self.folder / "home"
        home.mkdir(exist_ok=True)
        env = os.environ | {"HOME": str(home), "STUMBLE_STORE": str(self.folder / ".stumble")}
        env |= {"SHELLS": shells, "CHAT_ID": id}
        return run_stumble(arguments, cwd=self.folder, env=env, timeout=100)


@pytest.fixture
def runs(tmp_path: Path) -> Runs:
    with serve_concurrent_model() as url:
        made = Runs(tmp_path)
        agent = (sys.executable, str(AGENTS / "shells_agent.py"), url)
        result = made.stumble("record", "--times", "1", "-o", "a.tape", "--", *agent)
        assert result.code == 0, result.err
    return made


def test_shells_that_changed_places_and_another_session_follow_the_recording(runs: Runs) -> None:
    result = runs.stumble("-v", "replay", "a.tape", "--json", "--explain", shells="bob,ann", id=X)
    assert result.code == 0, result.err
    assert f"{X} for {A} but for header.x-session-id" in result.err
    first, second, third = result.json["matching"]
    assert f"{X} for {A}" in first
    assert "shellId 3 for shellId 2, shellId 2 for shellId 3" in second
    assert " for " not in third.partition("but for")[0]
    tape = read_tape(Path(result.json["tape"]))
    swap = ("shellId 2", "shellId 3", "shellId 3", "shellId 2")
    assert [each.renamed for each in tape.exchanges] == [(A, X), swap, ()]
    log = Path(result.json["agent_output"] or runs.folder / "none")
    text = log.read_text() if log.exists() else result.out
    assert "ann's output" in text, "it has read the shell that the model meant"
    shown = runs.stumble("show", str(tape.path), "--exchanges")
    assert "1 id renamed" in shown.out


@pytest.mark.parametrize("shells", ["carl,ann,bob", "ann,carl,bob"])
def test_other_numbers_leave_the_recording(runs: Runs, shells: str) -> None:
    result = runs.stumble("replay", "a.tape", shells=shells)
    assert result.code == 3
    assert "shellId: " in result.out + result.err


HELPERS = {
    "one": ("0.75",),
    "two in neighbouring turns": ("0.75", "1.25"),
    "two in one turn": ("0.7", "0.8"),
    "the second is first": ("1.3", "0.7"),
    "three": ("0.25", "0.75", "1.75"),
}
"""Seconds that each helper works; the agent hears of it every half second."""


@pytest.mark.parametrize("seconds", HELPERS.values(), ids=HELPERS)
def test_helpers_are_heard_of_in_the_turns_in_which_they_were(
    seconds: tuple[str, ...], tmp_path: Path
) -> None:
    """A replay answers at once, but its agent's own work takes as long as ever."""
    made = Runs(tmp_path)
    with serve_concurrent_model() as url:
        agent = (sys.executable, str(AGENTS / "helper_agent.py"), url, *seconds)
        recorded = made.stumble("record", "--times", "1", "-o", "a.tape", "--", *agent)
    assert recorded.out.count("heard words ") == len(seconds), recorded.err
    for _ in range(TRIES):
        again = made.stumble("replay", "a.tape")
        assert again.code == 0, again.err
        assert again.out.startswith(recorded.out)
