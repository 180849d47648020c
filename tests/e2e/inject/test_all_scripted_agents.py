"""The judge on all agents of known behaviour; half of them it was not made with."""

from pathlib import Path

import pytest

from tests.support.scripted.data import FOLDER, load_agents
from tests.support.scripted.report import Agreement, split
from tests.support.scripted.runs import run_scripted

RIGHT, UNKNOWN = 0.98, 0.03
MISJUDGED = frozenset((FOLDER / "misjudged.txt").read_text().split())
"""Unseen agents of which the judge has a class, the claim or the notice wrong or unknown."""


@pytest.fixture(scope="module")
def agreements(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Agreement]:
    return split(run_scripted(load_agents(), tmp_path_factory.mktemp("scripted")))


@pytest.mark.timeout(600)
def test_every_fourteenth_agent_is_judged_as_known(tmp_path: Path) -> None:
    agents = [agent for agent in load_agents() if agent.name not in MISJUDGED][::14]
    cases = run_scripted(agents, tmp_path)
    assert len(cases) >= 30
    assert [str(case) for case in cases if any(case.mistakes())] == []


@pytest.mark.thorough
@pytest.mark.timeout(600)
@pytest.mark.parametrize("name", ["made with", "held out"])
def test_verdicts_are_those_of_agents_of_known_behaviour(
    agreements: dict[str, Agreement], name: str
) -> None:
    found = agreements[name]
    told = "\n".join(found.lines())
    assert found.right >= RIGHT, told
    assert found.unknown <= UNKNOWN, told
    assert found.swapped == (), told


@pytest.mark.thorough
@pytest.mark.timeout(600)
def test_unseen_agents_are_judged_as_known(agreements: dict[str, Agreement]) -> None:
    """None is swapped, no other one is wrong, and one that is judged right leaves the list."""
    found = agreements["unseen"]
    told = "\n".join(found.lines())
    assert {case.agent.name for case in found.mistaken} == MISJUDGED, told
    assert found.right >= RIGHT, told
    assert found.unknown <= UNKNOWN, told
    assert found.swapped == (), told
