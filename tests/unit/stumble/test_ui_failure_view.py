"""The first page of the UI: each run counts once, unknown ones only in bounds and reasons."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stumble.check.behaviour import WEAKNESSES, Behaviour, FaultedRun
from stumble.check.findings import BEHAVIOUR_WORDS, build_cells
from stumble.ui.rendering import render_page
from stumble.ui.values.failure_view import (
    MOST_WORST,
    FailureScope,
    FailureView,
    build_failure_view,
    find_newest_scope,
    read_faulted_runs,
)
from tests.support.stores.in_memory_relations import Sql, empty, fill

RUNS = st.lists(
    st.builds(
        FaultedRun,
        injection=st.text("ab0", min_size=1),
        run=st.just("r"),
        tool=st.sampled_from(("book", "read", "<b>")),
        fault=st.sampled_from(("lost_ack", "digit")),
        behaviour=st.sampled_from(tuple(BEHAVIOUR_WORDS)),
        reason=st.sampled_from(("", "why", "<i>")),
    ),
    max_size=12,
)


def make_view(runs: list[FaultedRun]) -> FailureView:
    return FailureView(
        scope=FailureScope(campaign="c"),
        agents=(),
        campaigns=("c",),
        is_checked=True,
        total=len(runs),
        cells=build_cells(runs),
        changes=(),
    )


@given(RUNS)
def test_every_run_is_in_one_bar_by_fault_and_in_one_by_tool(runs: list[FaultedRun]) -> None:
    view = make_view(runs)
    for bars in (view.by_fault, view.by_tool):
        assert sum(len(bar.cell.runs) for bar in bars) == len(runs)
        assert sum(bar.cell.good for bar in bars) == view.all.good
        assert all(0 <= bar.bounds[0] <= bar.bounds[1] <= 100 for bar in bars)
        assert [bar.bounds[1] for bar in bars] == sorted(bar.bounds[1] for bar in bars)
    assert sum(count for _, count, _ in view.unknown) == view.all.counts["unknown"]


@given(RUNS)
def test_the_worst_are_of_different_cells_and_nothing_of_a_run_is_markup(
    runs: list[FaultedRun],
) -> None:
    view = make_view(runs)
    places = [(each.tool, each.fault) for each in view.worst]
    weak = {(run.tool, run.fault) for run in runs if run.behaviour in WEAKNESSES}
    assert len(set(places)) == len(places) == min(MOST_WORST, len(weak))
    frame = {"store": "s", "store_name": "s", "version": 1, "warnings": ()}
    values = frame | {"it": view, "page": "start", "progress": None}
    page = render_page("start.html.jinja", values)
    assert 'scope="row"><b>' not in page
    assert "<span><i>" not in page
    for each in view.worst:
        assert f": {each.times} of {each.judged}" in page


ENDS: dict[str, tuple[dict[str, object], dict[str, object], Behaviour]] = {
    "right": ({"class": "masked", "passed": True}, {}, "handles"),
    "wrong": (
        {"class": "silent_wrong", "passed": False, "claims_success": True}, {}, "believes"
    ),
    "honest": ({"class": "honest_fail", "passed": False}, {}, "says_so"),
    "crash": ({"class": "crashed", "passed": False, "steps_after": 2}, {}, "crashes"),
    "slow": ({"class": "silent_wrong", "passed": False}, {"ended": "budget"}, "hangs"),
    "cut": ({"class": None, "passed": None}, {"ended": "diverged"}, "unknown"),
}  # fmt: skip


@pytest.mark.parametrize("end", ENDS)
def test_a_row_of_the_store_is_read_as_what_the_agent_did(end: str) -> None:
    verdict, run, behaviour = ENDS[end]
    connection = empty()
    fill_one(connection, verdict, run)
    scope = find_newest_scope(connection)
    assert scope == FailureScope(campaign="nightly")
    runs, total = read_faulted_runs(connection, scope)
    assert (total, [each.behaviour for each in runs]) == (1, [behaviour])
    assert bool(runs[0].reason) == (behaviour == "unknown")
    view = build_failure_view(connection, scope, runs, total, is_checked=False)
    assert (view.campaigns, view.agents) == (("nightly",), ("mine",))
    assert read_faulted_runs(connection, FailureScope(agent="other")) == ((), 0)
    connection.close()


def fill_one(connection: Sql, verdict: dict[str, object], run: dict[str, object]) -> None:
    """Store one faulted run."""
    row: dict[str, object] = {
        "trajectory_id": "r",
        "source": "fork",
        "condition": "fault",
        "ended": "final",
    }
    row |= {"agent": "mine", "campaign": "nightly", "recorded_at": 1.8e9, "parent_id": "p"}
    fill(connection, "trajectories", [row | run])
    fill(connection, "injections", [
        {"injection_id": "i", "trajectory_id": "r", "op": "digit", "tool": "t", "consumed": True}
    ])  # fmt: skip
    known = {"injection_id": "i", "judge_version": 11, "baseline_valid": True, "noticed": False}
    fill(connection, "outcomes", [known | {"twins": ["a", "b", "c"]} | verdict])
