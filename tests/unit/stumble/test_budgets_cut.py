"""Run events of a replay whose recording was cut: it ends where the recording does."""

from pathlib import Path

import pytest

from stumble.runs.budgets import BudgetTap
from traces.conversation.tracker import ConversationTap
from traces.model import Trajectory
from traces.tape.writer import TapeWriter


def test_the_first_event_after_the_cut_ends_the_replay(tmp_path: Path) -> None:
    reached: list[int] = []
    with TapeWriter(tmp_path / "a.tape", Trajectory(id="a", recorded_at=0.0)) as tape:
        budgets = BudgetTap(ConversationTap({}), tape, began=0.0, run="a")
        budgets.most_events = 2
        budgets.reach_cut = lambda: reached.append(len(budgets.marks))
        for name in ("pipeline", "stage", "agent"):
            budgets.handle_run_event(name, {"stage": "T1"})
    assert reached == [3]


def test_a_whole_recording_has_no_such_end(tmp_path: Path) -> None:
    with TapeWriter(tmp_path / "a.tape", Trajectory(id="a", recorded_at=0.0)) as tape:
        budgets = BudgetTap(ConversationTap({}), tape, began=0.0, run="a")
        budgets.reach_cut = lambda: 1 / 0
        for name in ("pipeline", "stage", "agent", "graded"):
            budgets.handle_run_event(name, {"stage": "T1", "cases": {}})


@pytest.mark.parametrize("scope", ["stage", "run"])
def test_the_attempts_at_a_stage_share_its_budget(tmp_path: Path, scope: str) -> None:
    with TapeWriter(tmp_path / "a.tape", Trajectory(id="a", recorded_at=0.0)) as tape:
        budgets = BudgetTap(ConversationTap({}), tape, began=0.0, run="a")
        stage = {"stage": "T1", "limits": {"calls": 5}, "scope": scope}
        told = [budgets.handle_run_event("stage", stage)]
        for calls in (2, 2, 1):
            budgets._stage.calls += calls
            told.append(budgets.handle_run_event("agent", {"stage": "T1"}))
            told.append(budgets.handle_run_event("attempt", {"stage": "T1"}))
        assert [each["calls"] for each in told] == [0, 2, 2, 4, 4, 5, 5]
        assert [each["over"] for each in told] == [None] * 5 + ["calls"] * 2
        budgets.handle_run_event("agent", {"stage": "T1"})
        following = budgets.handle_run_event("stage", {**stage, "stage": "T2"})
        assert following["over"] == ("calls" if scope == "run" else None)


def test_dollars_are_counted_once_for_all_stages_that_have_budgets_of_their_own(
    tmp_path: Path,
) -> None:
    with TapeWriter(tmp_path / "a.tape", Trajectory(id="a", recorded_at=0.0)) as tape:
        budgets = BudgetTap(ConversationTap({}), tape, began=0.0, run="a")
        limits = {"calls": 5, "dollars": 2.0}
        over = []
        for stage in ("T1", "T2"):
            budgets.handle_run_event("stage", {"stage": stage, "limits": limits, "scope": "stage"})
            budgets._stage.calls, budgets._stage.dollars = 4, 1.2
            over.append(budgets.handle_run_event("agent", {"stage": stage})["over"])
        assert over == [None, "dollars"]
