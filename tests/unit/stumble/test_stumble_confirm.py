"""`stumble fork --confirm`: forks of real runs settle what a wrong value changed."""

from pathlib import Path

import pytest

from recorder import event_loop
from scenarios.practice import PRACTICE_KEY
from scenarios.scenario import PracticeSettings, Scenario
from stumble.runs.fork import ForkPlan, ForkResult, find_fork_point, run_fork
from stumble.runs.fork_report import confirm_fork, confirmation_to_lines
from stumble.runs.scenario_runner import CheckedScenario, open_practice_scenario, record_scenario
from stumble.runs.session import open_replay_session
from traces.model import Fault
from traces.store.trace_store import TraceStore


@pytest.mark.thorough
@pytest.mark.gate
def test_what_a_careless_agent_pays_out_depends_on_what_it_was_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", PRACTICE_KEY)
    store, ca, scratch = TraceStore(tmp_path / "store"), tmp_path / "ca", tmp_path / "scratch"
    scratch.mkdir()
    practice = PracticeSettings(task="refund-1", model="practice/naive", tools="http")
    scene = CheckedScenario(
        scenario=Scenario(path=Path("x.toml"), title="x", practice=practice), faults=()
    )
    digit = Fault(name="digit", where={"tool": "convert_currency"})

    async def run() -> ForkResult:
        async with open_practice_scenario(scene.scenario, practice, scratch) as at:
            recording = await record_scenario(scene, at, store, ca=ca, scratch=scratch)
            found = find_fork_point(recording, digit)
            design = ForkPlan(fork_point=found, confirm=True, world=at.world)
            forked = ForkResult(wanted=design.list_runs())
            async with open_replay_session(
                ca=ca, scratch=scratch, hosts=at.hosts, out=True
            ) as house:
                await run_fork(house, design, forked, lambda each: at.launch("run"), store.tapes)
            return forked

    settled = confirm_fork(event_loop.run_event_loop(run()), 3)
    lines = list(confirmation_to_lines(settled))
    assert settled.tainted is True
    assert lines[0] == "depends on the changed value: yes"
    assert "  issue_refund (1) moves with it, and a second value moves it too" in lines
    assert {len(slot.wrong) for slot in settled.slots} == {3}
    assert {len(set(slot.wrong)) for slot in settled.slots} == {1}
