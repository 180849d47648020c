"""Agents of others, recorded as a user records them, are replayed on later days and elsewhere.

No variable of ours is set, the folder is in no repository, and the store is in the folder. The
clock of `stumble` and of the agent is shifted by a preloaded library.
"""

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.agents.third_party_agents import LIMIT, Workplace, workplace
from traces.tape import read_tape

DAY = 24 * 3600
SOURCE = Path(__file__).parents[1] / "support" / "agents" / "shifted_clock.c"

pytestmark = [pytest.mark.agents, pytest.mark.timeout(LIMIT * 6)]


@pytest.fixture(scope="module")
def clock(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the library that shifts a clock."""
    library = tmp_path_factory.mktemp("clock") / "shifted_clock.so"
    command = ("cc", "-shared", "-fPIC", "-O1", "-o", str(library), str(SOURCE), "-ldl")
    subprocess.run(command, check=True, timeout=60)
    return library


@pytest.fixture(params=["claude-code", "gemini-cli"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Workplace]:
    with workplace(tmp_path, request.param) as opened:
        opened.plain = True
        yield opened


def test_a_plain_recording_replays_a_day_a_month_and_a_year_later_and_elsewhere(
    place: Workplace, clock: Path
) -> None:
    said = place.stumble("record", "-o", str(place.tape), *place.hosts)
    assert said.code == 0, said.err
    assert "control replay: diverged" not in said.err
    recorded = read_tape(place.tape).trajectory.recorded_at
    kept = set((place.folder / ".stumble" / "tapes").iterdir())
    place.shop.stop("model")
    for days in (1, 31, 366):
        place.more = {"LD_PRELOAD": str(clock), "SHIFT_SECONDS": str(days * DAY)}
        again = place.stumble("replay", str(place.tape))
        assert again.code == 0, (days, again.err)
        assert ", 0 upstream, 0 diverged" in again.err
        (run,) = set((place.folder / ".stumble" / "tapes").iterdir()) - kept
        at = read_tape(run).trajectory.recorded_at
        assert recorded is not None
        assert at is not None
        assert at - recorded >= days * DAY, "the clock was shifted"
        run.unlink()
    place.more = {"TZ": "Asia/Kathmandu"}
    assert place.stumble("replay", str(place.tape)).code == 0
