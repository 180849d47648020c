"""The runs of a fork: the struck one, and clean ones that differ from it by the lie alone."""

import json
from pathlib import Path

import pytest

from stumble.forks import branch, plan
from tests.shop import shop
from tests.told_runs import ORDER, Telling
from traces.model import Condition, Fault

RUN = Telling().calls(ORDER).says("DONE").over()


@pytest.mark.parametrize(("condition", "name"), [("clean", "sham"), ("fault", "http_status")])
def test_a_clean_twin_is_a_sham_at_the_same_place(condition: Condition, name: str) -> None:
    found = branch(RUN.tape, Fault(name="http_status", persist="permanent"))
    planned = plan(found, condition, world=None, seed=7)
    assert planned.strike is not None
    assert [each.fault.name for each in planned.strike.armed] == [name]
    assert planned.strike.site == found.site
    assert planned.fork is not None
    assert (planned.fork.call_id, planned.condition) == (found.site.call_id, condition)


def test_a_fault_that_never_reached_the_tool_leaves_the_tools_answer_on_the_tape(
    tmp_path: Path,
) -> None:
    with shop(tmp_path) as world:
        world.record()
        world.stop("shop")
        said = world.stumble(
            "fork", "a.tape", "--fault", "http_status", "--where", "tool=get_order", "--twins", "0",
            *world.host_options(), "--json", "--", *world.agent(),
        )  # fmt: skip
    found = json.loads(said.out.splitlines()[-1])
    assert (found["fired"], found["missed"], found["diverged"]) == (1, [], [])


def test_a_call_that_no_tape_holds_ends_a_run_without_a_world_as_censored(tmp_path: Path) -> None:
    """The model is told of another amount and wants to pay that back, which it never did before."""
    with shop(tmp_path) as world:
        world.record()
        world.stop("shop")
        said = world.stumble(
            "fork", "a.tape", "--fault", "digit:field=amount", "--where", "tool=get_order",
            "--seed", "7", *world.host_options(), "--json", "--", *world.agent(),
        )  # fmt: skip
        assert said.code == 5, said.err
        found = said.json
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
