"""Each client goes through every stage, and its row of the table of docs/clients.md is written."""

import os
import subprocess
from pathlib import Path

import pytest

from tests.agents import CACHE, LATEST
from tests.clients.test_stumble_clients import SAYING
from tests.support.agents.client_rows import ROWS, write_row
from tests.support.agents.client_trial import failed_stages, try_client
from tests.support.agents.third_party_agents import AGENTS, LIMIT, TASK, workplace

ALL = "STUMBLE_CLIENTS" in os.environ
CHOSEN = tuple(AGENTS) if ALL else ("cohere",)
"""All of them in `make test-clients`; else one, which no other test takes through all stages."""
WRITTEN = (CACHE / "latest.jsonl" if LATEST else ROWS) if ALL else None
"""The newest releases have a file of their own, as the table is that of the pinned ones."""

pytestmark = [pytest.mark.thorough, pytest.mark.agents, pytest.mark.timeout(LIMIT * 6)]


@pytest.fixture(scope="module")
def clock(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the library that shifts a clock."""
    source = Path(__file__).parents[1] / "support" / "agents" / "shifted_clock.c"
    library = tmp_path_factory.mktemp("clock") / "shifted_clock.so"
    command = ("cc", "-shared", "-fPIC", "-O1", "-o", str(library), str(source), "-ldl")
    subprocess.run(command, check=True, timeout=60)
    return library


@pytest.mark.parametrize("name", CHOSEN)
def test_a_client_goes_through_every_stage(name: str, clock: Path, tmp_path: Path) -> None:
    tools = name != "aider"
    with workplace(tmp_path, name) as place:
        place.task = TASK if tools else SAYING
        row = try_client(place, name, clock, tools=tools)
    if WRITTEN is not None:
        write_row(row, WRITTEN)
    assert failed_stages(row) == []
