"""The reason that a campaign names for rates without intervals is the true one."""

from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from stumble.campaigns.results import CampaignResult
from stumble.campaigns.scheduler import CampaignProgress
from stumble.campaigns.spec import Campaign, TraceSource


@given(st.integers(1, 8), st.integers(0, 3), st.integers(3, 9))
def test_few_traces_are_named_only_if_there_are_few(traces: int, diverged: int, runs: int) -> None:
    sources = tuple(TraceSource(name=f"t{n}", tape=Path("a.tape")) for n in range(traces))
    now = CampaignProgress(done=runs, diverged=["left"] * diverged, wanted=runs)
    result = CampaignResult(
        campaign=Campaign(name="c", sources=sources, faults=()),
        standing=now,
        stopped=None,
        recovery=({"silent_rate_reason": "few_traces"},),
        shams=(),
        excluded=({"injections": 2, "reason": "no_verdict"},),
        unlike_twins=(),
    )
    [line] = [each for each in result._list_next_steps() if "without intervals" in each]
    assert ("add traces" in line) == (traces < 5)
    if traces >= 5:
        reason = f"{diverged} of {runs} runs left" if diverged else "2 faulted runs are in no rate"
        assert reason in line
