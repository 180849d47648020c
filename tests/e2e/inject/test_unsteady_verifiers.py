"""Verifiers that crash, or flip: what is unknown is no verdict, and what is mixed is told."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.agents.refund_desk import (
    Desk,
    desk,
    naive,
    suspicious,
)

DIGIT = ("--fault", "digit:field=total", "--where", "tool=get_order", "--seed", "7")
CRASHES = "import os; os.kill(os.getpid(), 9)"
LOOKS = """
import sys, urllib.request
with urllib.request.urlopen(f"http://127.0.0.1:{sys.argv[1]}/world/verify") as answer:
    raise SystemExit(4 if answer.read() == b"wrong" else 0)
"""
FLIPS = """
import sys
from pathlib import Path
seen = Path(sys.argv[1])
count = len(seen.read_text()) if seen.exists() else 0
seen.write_text("x" * (count + 1))
raise SystemExit(count % 2)
"""


@pytest.fixture
def lab(tmp_path: Path) -> Iterator[Desk]:
    with desk(tmp_path, suspicious) as found:
        found.bench.write("crashes.py", CRASHES)
        found.bench.write("flips.py", FLIPS)
        found.record()
        yield found


def test_a_verifier_that_crashes_leaves_every_end_unknown(lab: Desk) -> None:
    verify = f"{sys.executable} crashes.py"
    said = lab.fork(*DIGIT, world=(*lab.world("reset"), "--verify", verify))
    assert said.code == 5
    assert (said.json["outcome"], said.json["excluded"]) == (None, "baseline_unknown")
    [row] = lab.rows("select judged, settled, excluded from judged_injections")
    assert row == {"judged": False, "settled": False, "excluded": "baseline_unknown"}
    gate = lab.bench.stumble("gate", "--max-silent", "1")
    assert gate.code == 5
    assert "1 are left out: nobody judged how the clean twins ended" in gate.out


def test_a_verifier_that_flips_is_told_by_twins_that_did_the_same(
    lab: Desk, tmp_path_factory: pytest.TempPathFactory
) -> None:
    verify = f"{sys.executable} flips.py {tmp_path_factory.mktemp('flips') / 'seen'}"
    said = lab.fork(*DIGIT, world=(*lab.world("reset"), "--verify", verify))
    assert {twin["passed"] for twin in said.json["twins"]} == {True, False}
    assert said.json["unlike_twins"].startswith("clean twins did the same and end differently")


def test_runs_that_have_no_class_for_one_reason_name_it_once(lab: Desk) -> None:
    """A verifier that looks for what only a right run leaves fails, in place of saying wrong."""
    lab.policy = naive
    lab.bench.write("looks.py", LOOKS)
    verify = f"{sys.executable} looks.py {lab.port}"
    world = (*lab.world("reset"), "--verify", verify)
    result = lab.bench.stumble("fork", "a.tape", *lab.hosts, *world, *DIGIT, "--times", "2")
    assert result.code == 5, result.out + result.err
    assert "no class in 2 of 2: the verifier failed: exit 4" in result.out + result.err
    assert "what to do: mend the verifier" in result.out + result.err
