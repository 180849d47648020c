"""What may differ in a replay is said once: in options, in a scenario's file, and on the tape."""

import sys
from collections.abc import Iterator
from copy import replace
from pathlib import Path

import pytest

from replay.matching.rules import parse_match_rule
from tests.support.practice_shop import (
    Said,
    Shop,
    shop,
)
from traces.conversation.volatile_fields import VOLATILE_VERSION
from traces.model import Trajectory
from traces.tape.reader import read_tape
from traces.tape.writer import TapeWriter

AGENT = """
import json, os, sys, urllib.request, uuid
for step in range(2):
    asked = {"order_id": "ord-7100", "step": step, "run": {"id": uuid.uuid4().hex}}
    url = "http://shop.practice/tools/get_order"
    request = urllib.request.Request(url, json.dumps(asked).encode())
    try:
        print(urllib.request.urlopen(request, timeout=30).status)
    except urllib.error.HTTPError as error:
        print(error.code)
"""
RULE = "ignore:body.run.id"


@pytest.fixture
def agent(tmp_path: Path) -> Iterator[tuple[Shop, tuple[str, ...]]]:
    folder = tmp_path / "work"
    folder.mkdir()
    (folder / "agent.py").write_text(AGENT)
    with shop(folder) as opened:
        yield opened, (sys.executable, "agent.py")


def record(agent: tuple[Shop, tuple[str, ...]], *options: str) -> Said:
    opened, command = agent
    return opened.stumble(
        "record", "-o", "a.tape", *opened.host_options(), *options, "--", *command
    )


def scenario(agent: tuple[Shop, tuple[str, ...]], text: str) -> str:
    (agent[0].folder / "polite.toml").write_text(text)
    return "polite.toml"


def test_an_id_of_the_run_diverges_until_a_rule_lets_it_pass(agent) -> None:
    assert record(agent, "--times", "1").code == 0
    result = agent[0].stumble("replay", "a.tape")
    assert result.code == 3
    assert f"to let it pass: --match '{RULE}'" in result.err
    assert agent[0].stumble("replay", "a.tape", "--match", RULE).code == 0
    file = scenario(agent, f'[match]\nrules = ["{RULE}"]\n')
    assert agent[0].stumble("replay", "a.tape", "--scenario", file).code == 0


@pytest.mark.parametrize("told", ["option", "file"])
def test_what_was_said_when_it_was_recorded_holds_in_every_replay(agent, told: str) -> None:
    file = scenario(agent, f'[match]\nrules = ["{RULE}"]\n')
    assert record(agent, *(("--scenario", file) if told == "file" else ("--match", RULE))).code == 0
    trajectory = read_tape(agent[0].folder / "a.tape").trajectory
    assert (trajectory.rules, trajectory.volatile) == ((RULE,), VOLATILE_VERSION)
    assert trajectory.scenario == ("polite" if told == "file" else None)

    result = agent[0].stumble("replay", "a.tape", "--json")

    assert result.code == 0
    again = Path(result.json["tape"])
    assert read_tape(again).trajectory.rules == (RULE,)
    assert agent[0].stumble("replay", str(again)).code == 0, "a replay is a recording as well"


def alone(folder: Path) -> Shop:
    return Shop(folder=folder, book=folder, log=folder, hosts=(), task="none")


@pytest.mark.parametrize(
    ("option", "why"),
    [
        (("--scenario", "polite.toml"), "polite.toml: match.rules[1]: 'ignroe:body.x': no class"),
        (("--scenario", "polite.toml"), "did you mean ignore?"),
        (("--scenario", "rude.toml"), "rude.toml: match.rule: no such key; did you mean rules?"),
        (("--scenario", "flapping-toool"), "no scenario is called 'flapping-toool'"),
        (("--match", "ignore:bdy.x"), "--match: 'ignore:bdy.x': no place 'bdy'; did you mean body"),
    ],
)
def test_a_rule_that_is_none_is_told_before_anything_starts(
    tmp_path: Path, option: tuple[str, ...], why: str
) -> None:
    (tmp_path / "polite.toml").write_text('[match]\nrules = ["ignore:body.y", "ignroe:body.x"]')
    (tmp_path / "rude.toml").write_text("[match]\nrule = []")
    result = alone(tmp_path).stumble("record", "-o", "a.tape", *option, "--", "true")
    assert result.code == 2
    assert why in result.err
    assert result.err.count("\n") == 1
    assert not (tmp_path / "a.tape").exists()


def test_a_rule_of_a_newer_version_on_a_tape_is_said(tmp_path: Path) -> None:
    run = Trajectory(id="r", recorded_at=0.0, rules=("guess:body.x",), command=("true",))
    TapeWriter(tmp_path / "new.tape", run).close()
    result = alone(tmp_path).stumble("replay", "new.tape")
    assert result.code == 2
    assert "new.tape: a rule of its recording: 'guess:body.x': no class 'guess'" in result.err


@pytest.mark.parametrize("text", ["ignore:body.a.*.b", "map:path./v1/*/x", "exact:body.m"])
def test_a_rule_reads_as_it_was_written(text: str) -> None:
    rule = parse_match_rule(text)
    assert str(rule) == text
    assert replace(parse_match_rule(str(rule))) == rule
