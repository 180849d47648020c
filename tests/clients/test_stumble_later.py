"""Agents of others, recorded as a user records them, are replayed on later days and elsewhere.

No variable of ours is set, the folder is in no repository, and the store is in the folder. The
clock of `stumble` and of the agent is shifted by a preloaded library.
"""

import json
import subprocess
from collections.abc import Callable, Iterator
from copy import replace
from pathlib import Path

import pytest

from tests.support.agents.third_party_agents import LIMIT, Workplace, workplace
from tests.support.practice_shop import Said
from traces.tape.reader import read_tape

type Command = Callable[[str], tuple[str, ...]]

DAY = 24 * 3600
SOURCE = Path(__file__).parents[1] / "support" / "agents" / "shifted_clock.c"

TRIES = 3
"""Gemini CLI lists its own two skills in the order in which it read them (docs/clients.md), which a
busy machine changes from run to run."""

pytestmark = [pytest.mark.thorough, pytest.mark.agents, pytest.mark.timeout(LIMIT * 6)]


@pytest.fixture(scope="module")
def clock(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the library that shifts a clock."""
    library = tmp_path_factory.mktemp("clock") / "shifted_clock.so"
    command = ("cc", "-shared", "-fPIC", "-O1", "-o", str(library), str(SOURCE), "-ldl")
    subprocess.run(command, check=True, timeout=60)
    return library


def keep_old_files(command: Command) -> Command:
    """Let Claude Code keep files of more than 30 days.

    The clock of the file system is not shifted: its own new files are a year old for it, and it
    removes the output of a tool before it has read it, if it is slow.
    """
    settings = ("--settings", json.dumps({"cleanupPeriodDays": 3650}))
    return lambda prompt: (*command(prompt), *settings)


@pytest.fixture(params=["claude-code", "gemini-cli"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Workplace]:
    with workplace(tmp_path, request.param) as opened:
        opened.plain = True
        if request.param == "claude-code":
            opened.agent = replace(opened.agent, command=keep_old_files(opened.agent.command))
        yield opened


def test_a_plain_recording_replays_a_day_a_month_and_a_year_later_and_elsewhere(
    place: Workplace, clock: Path, request: pytest.FixtureRequest
) -> None:
    tries = TRIES if "gemini-cli" in request.node.name else 1
    said = record(place, tries)
    assert said.code == 0, said.err
    assert "control replay: diverged" not in said.err
    recorded = read_tape(place.tape).trajectory.recorded_at
    kept = set((place.folder / ".stumble" / "tapes").iterdir())
    place.shop.stop("model")
    for days in (1, 31, 366):
        place.more = {"LD_PRELOAD": str(clock), "SHIFT_SECONDS": str(days * DAY)}
        again = replay(place, tries)
        assert again.code == 0, (days, again.err)
        assert ", 0 upstream, 0 diverged" in again.err
        for run in set((place.folder / ".stumble" / "tapes").iterdir()) - kept:
            at = read_tape(run).trajectory.recorded_at
            assert recorded is not None
            assert at is not None
            assert at - recorded >= days * DAY, "the clock was shifted"
            run.unlink()
    place.more = {"TZ": "Asia/Kathmandu"}
    assert replay(place, tries).code == 0


def record(place: Workplace, tries: int) -> Said:
    """Record, and once more if the control replay met another order."""
    for _ in range(tries):
        place.tape.unlink(missing_ok=True)
        result = place.stumble("record", "-o", str(place.tape), *place.hosts)
        if "control replay: diverged" not in result.err:
            break
    return result


def replay(place: Workplace, tries: int) -> Said:
    """Replay, and once more if the agent's prompt had another order."""
    for _ in range(tries):
        result = place.stumble("replay", str(place.tape))
        if result.code == 0:
            break
    return result
