"""The runs of a fork: the struck one, and clean ones that differ from it by the lie alone."""

import json
from copy import replace
from pathlib import Path

import pytest

from faults.injector.injector import FaultInjector, RunSeeds
from stumble.runs.fork import find_fork_point, plan_fork_run
from tests.support.practice_shop import shop
from tests.support.stores.scripted_runs import (
    ORDER,
    Telling,
)
from traces.conversation.tracker import ConversationTap
from traces.model import Condition, Fault

RUN = Telling().calls(ORDER).says("DONE").over()
TWO = Telling().calls(ORDER).calls(ORDER).says("DONE").over().tape


@pytest.mark.parametrize(("condition", "name"), [("clean", "sham"), ("fault", "http_status")])
def test_a_clean_twin_is_a_sham_at_the_same_place(condition: Condition, name: str) -> None:
    found = find_fork_point(RUN.tape, Fault(name="http_status", persist="permanent"))
    planned = plan_fork_run(found, condition, world=None, seed=7)
    assert planned.injection_plan is not None
    assert [each.fault.name for each in planned.injection_plan.bound_faults] == [name]
    assert planned.injection_plan.site == found.site
    assert planned.fork is not None
    assert (planned.fork.call_id, planned.condition) == (found.site.call_id, condition)


@pytest.mark.parametrize("position", ["early", "mid", "late", "uniform"])
def test_a_position_is_settled_before_a_run_is_armed(position: str) -> None:
    found = find_fork_point(RUN.tape, Fault(name="digit", when={"position": position}))
    armed = found.injection_plan.bound_faults
    nemesis = FaultInjector(
        armed, ConversationTap(), lambda injection: None, seeds=RunSeeds(run="r", trace="t")
    )
    assert nemesis.unfired == ("digit",)
    assert armed[0].fault.nth == 1


def test_faults_at_other_calls_count_as_the_run_goes_on() -> None:
    """Of a fork after its first strike no call has the id it had in the recording."""
    first = Fault(name="digit", where={"tool": "get_order"})
    found = find_fork_point(TWO, [replace(first, nth=2), first])
    assert [armed.site is None for armed in found.bound_faults] == [False, True]
    assert found.site.call_id == "c1"
    assert found.bound_faults[1].fault.nth == 2


def test_a_fault_that_never_reached_the_tool_leaves_the_tools_answer_on_the_tape(
    tmp_path: Path,
) -> None:
    with shop(tmp_path) as world:
        world.record()
        world.stop("shop")
        result = world.stumble(
            "fork", "a.tape", "--fault", "http_status", "--where", "tool=get_order", "--twins", "0",
            *world.host_options(), "--json", "--", *world.agent(),
        )  # fmt: skip
    found = json.loads(result.out.splitlines()[-1])
    assert (found["fired"], found["missed"], found["diverged"]) == (1, [], [])


def test_a_call_that_no_tape_holds_ends_a_run_without_a_world_as_censored(tmp_path: Path) -> None:
    """The model is told of another amount and wants to pay that back, which it never did before."""
    with shop(tmp_path) as world:
        world.record()
        world.stop("shop")
        result = world.stumble(
            "fork", "a.tape", "--fault", "digit:field=amount", "--where", "tool=get_order",
            "--seed", "7", *world.host_options(), "--json", "--", *world.agent(),
        )  # fmt: skip
        assert result.code == 5, result.err
        found = result.json
        assert (found["fired"], found["diverged"], found["outcome"]) == (1, [], None)
        assert len(found["missed"]) == 1
        runs = world.stumble(
            "sql", "--json", "select condition, world, ended, passed, n_steps from trajectories"
            " where source = 'fork' order by all",
        ).json  # fmt: skip
        counted = world.stumble("sql", "--json", "select fired, judged, excluded from recovery")
    assert [(run["condition"], run["ended"]) for run in runs] == [
        *[("clean", "final")] * 3,
        ("fault", "replay_miss"),
    ]
    assert {(run["world"], run["passed"]) for run in runs} == {("recorded", None)}
    assert counted.json == [{"fired": 1, "judged": 0, "excluded": 1}]
