"""A sealed campaign of the practice agent, from its seal to the answer of a gate."""

import csv
import json
from pathlib import Path
from xml.etree import ElementTree

import pytest

from tests.support.campaign_folder import Bench

TASKS = ("refund-1", "refund-2", "price-1", "price-2", "reorder-1")
TEXT = f"""
seeds = [1]
shams = 0
[practice]
tasks = {json.dumps(TASKS)}
models = ["practice/naive", "practice/verifies"]
[[faults]]
fault = "digit"
[seal]
margin = 0.7
against = "practice/naive"
"""

pytestmark = pytest.mark.timeout(600)
"""Whichever test comes first in a process runs the campaign for all that follow."""


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Bench:
    """Five tasks by two models, sealed and run."""
    bench = Bench(tmp_path_factory.mktemp("sealed"))
    bench.write("five.toml", TEXT)
    sealed = bench.stumble("campaign", "five.toml", "--seal")
    assert sealed.code == 0, sealed.err
    assert bench.runs() == ()
    result = bench.stumble("campaign", "five.toml", "--jobs", "2", "--json", timeout=500)
    assert result.code == 0, result.err
    assert result.json["answer"] == "pass"
    return bench


def seal(bench: Bench) -> str:
    return str(json.loads((bench.folder / "five.seal.json").read_text())["seal"])


def test_every_tape_carries_the_seal(bench: Bench) -> None:
    runs = bench.runs()
    assert len(runs) == 5 * 2 * (1 + 3 + 1)
    assert {run.seal for run in runs} == {seal(bench)}
    assert bench.ask("select distinct seal from trajectories") == [(seal(bench),)]


def test_the_gate_answers_as_it_was_sealed(bench: Bench) -> None:
    result = bench.stumble(
        "gate", "--campaign", "five", "--require-seal", "--json", "--junit", "gate.xml",
        env={"GITHUB_STEP_SUMMARY": str(bench.folder / "summary.md")},
    )  # fmt: skip
    assert result.code == 0, result.err
    [check] = result.json["checks"]
    assert (check["answer"], check["seal"]) == ("pass", seal(bench))
    assert (check["paired_by"], check["roots"], check["margin"]) == ("task", 5, 0.7)
    assert check["candidate"]["model"] == "practice/verifies"
    suite = ElementTree.parse(bench.folder / "gate.xml").getroot()[0]
    assert (suite.get("failures"), suite.get("errors")) == ("0", "0")
    assert (bench.folder / "summary.md").read_text().startswith("### stumble gate: PASS")
    by_seal = bench.stumble("gate", "--campaign", "five", "--against", "practice/naive")
    assert by_seal.code == 0
    assert f"sealed {seal(bench)[:12]}" in by_seal.out


def test_verdicts_are_kept_with_the_seal(bench: Bench) -> None:
    with (bench.folder / "five.verdicts.csv").open(newline="") as file:
        kept = list(csv.DictReader(file))
    assert len(kept) == 5 * 2
    judged = bench.ask(
        "select injection_id, judge_version, class from judged_injections order by 1"
    )
    assert [
        (row["injection_id"], int(row["judge_version"]), row["class"]) for row in kept
    ] == judged


@pytest.mark.parametrize(
    ("options", "named"),
    [
        (("--margin", "0.9"), "analysis.margin: sealed 0.7, asked for 0.9"),
        (("--measure", "silent"), "analysis.measure"),
        (("--alpha", "0.2"), "analysis.alpha: sealed 0.05, asked for 0.2"),
    ],
)
def test_another_analysis_is_an_error(bench: Bench, options: tuple[str, ...], named: str) -> None:
    result = bench.stumble("gate", "--campaign", "five", *options)
    assert result.code == 2
    assert "ERROR" in result.out
    assert named in result.out


@pytest.mark.parametrize(
    ("was", "becomes", "named"),
    [
        ("seeds = [1]", "seeds = [1, 2]", "plan.seeds: sealed [1], now [1, 2]"),
        ("margin = 0.7", "margin = 0.9", "analysis.margin: sealed 0.7, now 0.9"),
        ('"digit"', '"scale_unit"', "plan.faults[0].name"),
    ],
)
def test_a_plan_that_changed_is_neither_run_nor_answered(
    bench: Bench, was: str, becomes: str, named: str
) -> None:
    before = bench.runs()
    bench.write("five.toml", TEXT.replace(was, becomes))
    try:
        run = bench.stumble("campaign", "five.toml")
        result = bench.stumble("gate", "--campaign", "five")
    finally:
        bench.write("five.toml", TEXT)
    assert (run.code, result.code) == (2, 2)
    assert named in run.err
    assert named in result.out
    assert bench.runs() == before


def test_runs_come_after_the_seal_and_names_are_known(bench: Bench) -> None:
    again = bench.stumble("campaign", "five.toml", "--seal")
    assert again.code == 2
    assert "a seal comes before the first" in again.err
    nobody = bench.stumble("gate", "--against", "practice/nave", "--margin", "0.1")
    assert nobody.code == 2
    assert "practice/naive" in nobody.err
    both = bench.stumble("gate", "--against", "x", "--margin", "0.1", "--max-silent", "0.1")
    assert (both.code, "exclude each other" in both.err) == (2, True)


def test_another_store_than_the_sealed_baseline_and_none_at_all_are_errors(
    bench: Bench, tmp_path: Path
) -> None:
    result = bench.stumble(
        "gate", "--against", ".stumble", "--campaign", "five", "--model", "practice/verifies"
    )
    assert result.code == 2
    assert 'analysis.against: sealed "practice/naive", asked for ".stumble"' in result.out
    nothing = bench.stumble("gate", "--against", str(tmp_path), "--margin", "0.5")
    assert nothing.code == 2
    assert "is no store" in nothing.err


def test_no_rate_of_a_sealed_plan_is_told_before_it_is_finished(
    bench: Bench, tmp_path: Path
) -> None:
    limit = ("gate", "--campaign", "five", "--max-silent", "1")
    assert bench.stumble(*limit).code == 0
    fork = next(run for run in bench.runs() if run.parent)
    tape = bench.store.tapes / f"{fork.id}.tape"
    tape.rename(tmp_path / tape.name)
    try:
        gate, report = bench.stumble(*limit), bench.stumble("report")
    finally:
        (tmp_path / tape.name).rename(tape)
    assert gate.code == 5
    why = "the sealed campaign five is not finished"
    assert why in gate.out
    assert "go on with stumble campaign five" in gate.out
    assert f"No rate is given: {why}" in report.out
