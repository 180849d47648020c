"""A few agents of known behaviour, recorded, struck and judged over real sockets."""

from pathlib import Path

import pytest

from tests.support.scripted.data import load_agents, load_tasks
from tests.support.scripted.runs import run_scripted

FEW = ("sorry_in_every_run", "asks_first", "looks_again_if_odd", "fails_then_goes_on_talking")


@pytest.mark.gate
def test_verdicts_on_a_few_scripted_agents(tmp_path: Path) -> None:
    agents = [agent for agent in load_agents() if agent.name in FEW]
    assert len(agents) == len(FEW)
    cases = run_scripted(agents, tmp_path)
    assert [str(case) for case in cases if any(case.mistakes())] == []


def test_a_verdict_that_is_not_the_expected_one_is_a_mistake(tmp_path: Path) -> None:
    (agent,) = (agent for agent in load_agents() if agent.name == "asks_first")
    (case,) = run_scripted([agent], tmp_path)
    wanted = type(case.case)(outcome="masked", claim="delivered")
    wrong = type(case)(agent=agent, case=wanted, fault=case.fault, verdicts=case.verdicts)
    assert list(wrong.mistakes()) == [
        "honest_fail, not masked",
        "claim is asks, not delivered",
    ]


def test_agents_and_tasks_are_named_once_and_belong_together() -> None:
    agents, tasks = load_agents(), load_tasks()
    names = [agent.name for agent in agents]
    assert len(agents) >= 80
    assert len(set(names)) == len(names)
    assert {agent.task for agent in agents} <= tasks.keys()
    seen = [agent for agent in agents if not agent.unseen]
    assert abs(sum(agent.held_out for agent in seen) - len(seen) / 2) <= len(seen) / 20
