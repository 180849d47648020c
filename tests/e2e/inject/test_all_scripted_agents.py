"""The judge on all agents of known behaviour; half of them it was not made with."""

import pytest

from tests.support.scripted.data import load_agents
from tests.support.scripted.report import Agreement, split
from tests.support.scripted.runs import run_scripted

RIGHT, UNKNOWN = 0.98, 0.03


@pytest.fixture(scope="module")
def agreements(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Agreement]:
    return split(run_scripted(load_agents(), tmp_path_factory.mktemp("scripted")))


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
