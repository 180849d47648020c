"""`stumble fork --confirm`: forks of real runs settle what a wrong value changed."""

from pathlib import Path

import pytest

from recorder import loop
from scenarios.file import Practice, Scenario
from scenarios.practice import KEY
from stumble.forks import Design, Forked, branch, fork
from stumble.scenes import Scene, practising, recorded
from stumble.theatre import theatre
from stumble.verdicts import confirmed, told
from traces.model import Fault
from traces.store import Store


def test_what_a_careless_agent_pays_out_depends_on_what_it_was_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    store, ca, scratch = Store(tmp_path / "store"), tmp_path / "ca", tmp_path / "scratch"
    scratch.mkdir()
    practice = Practice(task="refund-1", model="practice/naive", tools="http")
    scene = Scene(scenario=Scenario(path=Path("x.toml"), title="x", practice=practice), faults=())
    digit = Fault(name="digit", where={"tool": "convert_currency"})

    async def run() -> Forked:
        async with practising(scene.scenario, practice, scratch) as at:
            recording = await recorded(scene, at, store, ca=ca, scratch=scratch)
            found = branch(recording, digit)
            design = Design(found=found, confirm=True, world=at.world)
            forked = Forked(wanted=design.continuations())
            async with theatre(ca=ca, scratch=scratch, hosts=at.hosts, out=True) as house:
                await fork(house, design, forked, lambda each: at.launch("run"), store.tapes)
            return forked

    settled = confirmed(loop.run(run()), 3)
    lines = list(told(settled))
    assert settled.tainted is True
    assert lines[0] == "depends on the struck value: yes"
    assert "  issue_refund (1) moves with it, and a second value moves it too" in lines
    assert {len(slot.wrong) for slot in settled.slots} == {3}
    assert {len(set(slot.wrong)) for slot in settled.slots} == {1}
