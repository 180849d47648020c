"""Which clean runs are the control of a faulted one: those of its own experiment, and no others."""

from copy import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from traces.model import RunEnding, Trajectory
from traces.store.control_groups import digest_control_group, find_control_runs

type Run = tuple[Trajectory, RunEnding | None]

FORK = Trajectory(
    id="faulted", recorded_at=0.0, condition="fault", world="fresh", parent="p", forked_at="c1",
    command=("python", "a.py"), source="fork", experiment="e1", agent="a", model="m",
)  # fmt: skip
ENDING = RunEnding(ended="final", passed=False, verifier="CommandWorld", verifier_of="v1")

few = st.sampled_from
RUN = st.builds(
    lambda command, **fields: replace(FORK, command=(command,), **fields),
    id=st.uuids().map(str),
    condition=few(["clean", "clean", "fault", "sham", "shrink"]),
    experiment=few(["e1", "e2", None]),
    parent=few(["p", "q"]),
    forked_at=few(["c1", "c2", None]),
    world=few(["fresh", "recorded"]),
    campaign=few([None, "nightly"]),
    agent=few(["a", "b", None]),
    model=few(["m", "n", None]),
    command=few(["python", "python3"]),
    cell=few([None, "s/clean/0", "s/clean/1", "s/clean/2"]),
)
END = st.builds(
    RunEnding,
    ended=few(["final", "crash", "budget"]),
    passed=few([True, False, None]),
    verifier=few(["CommandWorld", None]),
    verifier_of=few(["v1", "v2", None]),
)


def found(of: Run, among: list[Run]) -> list[str]:
    return [run.id for run, _ in find_control_runs(of, among, lambda each: each)]


RUNS = st.lists(st.tuples(RUN, END), max_size=8)
CHANGED = st.fixed_dictionaries(
    {"experiment": few(["e8", "e9"]), "id": st.uuids().map(str)},
    optional={"agent": few(["b"]), "model": few(["n"]), "world": few(["recorded"])},
)
"""Another's fork: its experiment, and perhaps another agent, model or world."""


@settings(max_examples=40)
@given(of=st.tuples(RUN, END), first=RUNS, later=st.lists(CHANGED, max_size=8))
def test_what_others_run_later_moves_no_control(
    of: Run, first: list[Run], later: list[dict[str, Any]]
) -> None:
    """Any agent, command, model, verifier or world: only runs of the same experiment count."""
    run, ending = of
    others = [(replace(run, condition="clean", **changes), ending) for changes in later]
    assert found(of, [*first, *others]) == found(of, first)
    assert found(of, [*others, *first]) == found(of, first)


@settings(max_examples=40)
@given(of=st.tuples(RUN, END), among=RUNS)
def test_a_control_is_a_clean_run_like_it_in_all_else(of: Run, among: list[Run]) -> None:
    for run, end in find_control_runs(of, among, lambda each: each):
        assert run.condition == "clean"
        same = ("experiment", "parent", "forked_at", "world", "campaign", "agent", "command")
        assert all(getattr(run, name) == getattr(of[0], name) for name in same)
        assert (run.model, end and end.verifier_of) == (of[0].model, of[1] and of[1].verifier_of)


def twin(id: str, **more: object) -> Run:
    run = replace(FORK, id=id, condition="clean", cell=None)
    return replace(run, **more), ENDING  # type: ignore[arg-type]


def test_controls_come_in_the_order_of_their_ids() -> None:
    assert found((FORK, ENDING), [twin("t2"), twin("t1"), (FORK, ENDING)]) == ["t1", "t2"]


@pytest.mark.parametrize(
    "other",
    [
        {"experiment": "e2"},
        {"agent": "b"},
        {"command": ("python", "b.py")},
        {"model": "n"},
        {"world": "recorded"},
        {"campaign": "nightly"},
        {"parent": "q"},
        {"forked_at": "c2"},
    ],
)
def test_whatever_differs_makes_another_control(other: dict[str, object]) -> None:
    assert found((FORK, ENDING), [twin("t1", **other)]) == []


def test_another_verifier_makes_another_control() -> None:
    run, _ = twin("t1")
    assert found((FORK, ENDING), [(run, replace(ENDING, verifier_of="v2"))]) == []


def test_runs_of_an_older_version_are_grouped_by_all_that_they_hold() -> None:
    old = replace(FORK, experiment=None)
    among = [twin("t1", experiment=None), twin("t2"), twin("t3", experiment=None, model="n")]
    assert found((old, ENDING), among) == ["t1"]


def test_a_plan_that_grows_later_leaves_earlier_verdicts_their_controls() -> None:
    """A campaign is asked for five twins at a site where three were the plan."""
    planned = replace(FORK, campaign="nightly", controls=("s/clean/0", "s/clean/1"))
    among = [twin(f"t{n}", campaign="nightly", cell=f"s/clean/{n}") for n in range(4)]
    assert found((planned, ENDING), among) == ["t0", "t1"]


def test_what_is_no_fork_has_no_control() -> None:
    assert digest_control_group(replace(FORK, forked_at=None), ENDING) is None
    assert found((replace(FORK, forked_at=None), ENDING), [twin("t1", forked_at=None)]) == []
