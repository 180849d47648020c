"""Coding agents of the day are given a task by argument, pipe and terminal."""

import os
from pathlib import Path

import pytest

from tests.clients.test_stumble_client_table import clock as clock
from tests.support.agents.daily_agents import DAILY
from tests.support.agents.form_rows import write_form_row
from tests.support.agents.form_trial import FORMS, RUN_LIMIT, failed_cells, try_form

ALL = "STUMBLE_CLIENTS" in os.environ
CASES = [
    (name, form)
    for name, agent in DAILY.items()
    for form in FORMS
    if form not in agent.lacks and (ALL or name == "claude-code")
]

pytestmark = [pytest.mark.thorough, pytest.mark.agents, pytest.mark.timeout(RUN_LIMIT * 6)]


@pytest.mark.parametrize(("name", "form"), CASES)
def test_an_agent_in_a_form(name: str, form: str, clock: Path, tmp_path: Path) -> None:
    row = try_form(tmp_path / "place", name, form, clock)
    if ALL:
        write_form_row(row)
    assert failed_cells(row) == []
