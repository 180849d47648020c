"""Run events of a replay whose recording was cut: it ends where the recording does."""

from pathlib import Path

from stumble.runs.budgets import BudgetTap
from traces.conversation.tracker import ConversationTap
from traces.model import Trajectory
from traces.tape import TapeWriter


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
