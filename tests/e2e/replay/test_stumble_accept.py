"""What changes from run to run is accepted once; a changed word diverges as before."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.practice_shop import (
    Said,
    Shop,
    shop,
)
from traces.tape.reader import read_tape

AGENT = """
import datetime, json, os, urllib.request, uuid
for step in range(2):
    now = datetime.datetime.now()
    said = f"please, run {uuid.uuid4()} of process {os.getpid()}, at {now}"
    asked = {"order_id": "ord-7100", "step": step, "said": said}
    url = "http://shop.practice/tools/get_order"
    request = urllib.request.Request(url, json.dumps(asked).encode())
    try:
        print(urllib.request.urlopen(request, timeout=30).status)
    except urllib.error.HTTPError as error:
        print(error.code)
"""
RULES = [
    'uuid:body.said "please, run {} of process "',
    'pid:body.said " of process {}, at "',
    'clock:body.said ", at {}"',
]


@pytest.fixture
def agent(tmp_path: Path) -> Iterator[Shop]:
    folder = tmp_path / "work"
    folder.mkdir()
    (folder / "agent.py").write_text(AGENT)
    with shop(folder) as opened:
        yield opened


def record(agent: Shop, *options: str) -> Said:
    command = (sys.executable, "agent.py")
    return agent.stumble("record", "-o", "a.tape", *agent.host_options(), *options, "--", *command)


def test_a_diverging_replay_teaches_what_changes_from_run_to_run(agent: Shop) -> None:
    assert record(agent, "--times", "1").code == 0
    assert agent.stumble("accept", "a.tape").code == 2, "there is no replay yet"
    assert agent.stumble("replay", "a.tape").code == 3

    shown = agent.stumble("accept", "a.tape", "--dry-run")
    assert (shown.code, shown.out.splitlines()) == (0, [f"accepted {rule}" for rule in RULES])
    assert read_tape(agent.folder / "a.tape").trajectory.rules == ()
    assert agent.stumble("accept", "a.tape").code == 0
    assert list(read_tape(agent.folder / "a.tape").trajectory.rules) == RULES

    assert agent.stumble("replay", "a.tape").code == 0
    (agent.folder / "agent.py").write_text(AGENT.replace("please", "now"))
    assert agent.stumble("replay", "a.tape", "--in-place").code == 3
    refused = agent.stumble("accept", "a.tape")
    assert refused.code == 1
    assert "not accepted: said differs in more than" in refused.out
    assert list(read_tape(agent.folder / "a.tape").trajectory.rules) == RULES


def test_a_change_that_is_meant_is_recorded_again(agent: Shop) -> None:
    assert record(agent, "--times", "1", "--agent", "mine", "--match", "ignore:body.step").code == 0
    before = read_tape(agent.folder / "a.tape").trajectory
    script = agent.folder / "agent.py"
    script.write_text(AGENT.replace("please", "now") + "raise SystemExit(os.path.exists('bad'))\n")
    (agent.folder / "bad").touch()
    failed = agent.stumble("accept", "a.tape", "--record", *agent.host_options())
    assert (failed.code, "stays as it was" in failed.err) == (1, True)
    assert read_tape(agent.folder / "a.tape").trajectory == before
    (agent.folder / "bad").unlink()
    result = agent.stumble("accept", "a.tape", "--record", *agent.host_options())
    assert result.code == 0, result.err
    after = read_tape(agent.folder / "a.tape").trajectory
    assert result.out.endswith(f"a.tape is now run {after.id}; before, it was {before.id}\n")
    assert (after.agent, "ignore:body.step" in after.rules) == ("mine", True)
    assert agent.stumble("replay", "a.tape").code == 0
    [kept] = agent.folder.parent.rglob(f"{before.id}.tape")
    assert read_tape(kept).trajectory.id == before.id
    assert [path.name for path in agent.folder.glob("*.tape")] == ["a.tape"]


def test_what_changes_is_learnt_when_it_is_recorded(agent: Shop) -> None:
    said = record(agent, "--times", "2")
    assert said.code == 0, said.err
    for rule in RULES:
        assert f"control 1: accepted {rule}" in said.err
    assert "control 1: followed the recording" in said.err
    assert agent.stumble("replay", "a.tape").code == 0


def test_a_rule_that_names_nothing_is_told(agent: Shop) -> None:
    assert record(agent, "--times", "2").code == 0
    meant = agent.stumble("replay", "a.tape", "--match", "ignore:body./order_id")
    assert meant.code == 2
    assert "did you mean 'ignore:body.order_id'?" in meant.err
    idle = agent.stumble("replay", "a.tape", "--match", "ignore:body.nothing")
    assert idle.code == 2
    assert "--match 'ignore:body.nothing' never applied" in idle.err
