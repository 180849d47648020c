"""A run whose client chose other values follows its recording, and tells which values these are."""

import os
import sys
from pathlib import Path

import pytest

from tests.support.servers.concurrent_model import serve_concurrent_model
from tests.support.warm_stumble import CommandResult, run_stumble
from traces.tape import read_tape

AGENTS = Path(__file__).parents[2] / "support" / "agents"
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
        said = made.stumble("record", "--times", "1", "-o", "a.tape", "--", *agent)
        assert said.code == 0, said.err
    return made


def test_shells_that_changed_places_and_another_session_follow_the_recording(runs: Runs) -> None:
    said = runs.stumble("-v", "replay", "a.tape", "--json", "--explain", shells="bob,ann", id=X)
    assert said.code == 0, said.err
    assert f"{X} for {A} but for header.x-session-id" in said.err
    first, second, third = said.json["matching"]
    assert f"{X} for {A}" in first
    assert "shellId 3 for shellId 2, shellId 2 for shellId 3" in second
    assert " for " not in third.partition("but for")[0]
    tape = read_tape(Path(said.json["tape"]))
    swap = ("shellId 2", "shellId 3", "shellId 3", "shellId 2")
    assert [each.renamed for each in tape.exchanges] == [(A, X), swap, ()]
    log = Path(said.json["agent_output"] or runs.folder / "none")
    text = log.read_text() if log.exists() else said.out
    assert "ann's output" in text, "it has read the shell that the model meant"
    shown = runs.stumble("show", str(tape.path), "--exchanges")
    assert "1 id renamed" in shown.out


@pytest.mark.parametrize("shells", ["carl,ann,bob", "ann,carl,bob"])
def test_other_numbers_leave_the_recording(runs: Runs, shells: str) -> None:
    said = runs.stumble("replay", "a.tape", shells=shells)
    assert said.code == 3
    assert "shellId: " in said.out + said.err


def test_a_helper_is_heard_of_in_the_turn_in_which_it_was(tmp_path: Path) -> None:
    """A replay answers at once, but its agent's own work takes as long as ever."""
    made = Runs(tmp_path)
    with serve_concurrent_model() as url:
        agent = (sys.executable, str(AGENTS / "helper_agent.py"), url)
        said = made.stumble("record", "--times", "1", "-o", "a.tape", "--", *agent)
    assert said.out.startswith("heard in turn "), said.err
    for _ in range(3):
        again = made.stumble("replay", "a.tape")
        assert again.code == 0, again.err
        assert said.out.splitlines()[0] in again.out
