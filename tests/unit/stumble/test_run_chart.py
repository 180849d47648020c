"""The chart of a run begins with its first bar, however long the agent took to start."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stumble.ui.values.run_view import CHART_WIDTH, RunItem, RunView, build_lanes


def make_view(bars: list[tuple[float, float]]) -> RunView:
    """A run with a bar for each (start, seconds), after a message of the system at 0."""
    system = RunItem(
        key="0", kind="system", title="system", text="", seq=0, step=0, lane="conversation",
        start=0.0, seconds=None, answered_by="",
    )  # fmt: skip
    items = [
        RunItem(
            key=str(n), kind="agent", title="m", text="", seq=n, step=n, lane="conversation",
            start=start, seconds=seconds, answered_by="live",
        )
        for n, (start, seconds) in enumerate(bars, start=1)
    ]  # fmt: skip
    return RunView(
        id="r", title="r", facts=(), parent=None, ending="right", is_live=False,
        items=(system, *items), injections=(), end=max((a + b for a, b in bars), default=0.0),
    )  # fmt: skip


@given(
    st.lists(st.tuples(st.floats(0, 50), st.floats(0.1, 5)), min_size=1, max_size=6),
    st.floats(0, 1000),
)
def test_a_later_start_of_the_agent_moves_no_bar(
    bars: list[tuple[float, float]], waited: float
) -> None:
    [lane] = build_lanes(make_view(bars), "time")
    [later] = build_lanes(make_view([(start + waited, long) for start, long in bars]), "time")
    assert min(bar.x for bar in lane.bars) == 0
    assert max(bar.x + bar.width for bar in lane.bars) == pytest.approx(CHART_WIDTH, abs=2)
    assert [bar.x for bar in later.bars] == pytest.approx([bar.x for bar in lane.bars], abs=0.1)


def test_a_run_without_a_bar_has_no_chart() -> None:
    assert build_lanes(make_view([]), "time") == ()
