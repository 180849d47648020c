"""Campaigns on real processes: whole, killed and resumed, side by side, and what cannot be."""

import os
import signal
import time
from collections import Counter
from pathlib import Path

import pytest

from stumble.campaigns.sample_size import compute_sample_size, count_independent_cases
from tests.support.campaign_folder import (
    Bench,
    practising,
)

RETRIES = ("practice/retries",)
FIRST_FAULT = '[[faults]]\nfault = "http_status:code=503"\n'


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Bench:
    """Two tasks, two faults with two persistences, on two processes."""
    bench = Bench(tmp_path_factory.mktemp("campaign"))
    text = practising(("refund-1", "reorder-1"), RETRIES, 'persist = ["once", "same_args"]')
    file = bench.write("two.toml", text)
    result = bench.stumble("campaign", file, "--jobs", "2", "--json")
    assert result.code == 5, result.err
    found = result.json
    assert found["finished"]
    assert found["diverged"] == []
    assert (found["recorded_now"], found["done_now"]) == (2, found["wanted"])
    return bench


def test_every_run_that_was_wanted_is_on_one_tape_with_its_address(whole: Bench) -> None:
    runs = whole.runs()
    assert {run.campaign for run in runs} == {"two"}
    parents = {run.id: run.task for run in runs if run.cell == "record"}
    assert sorted(map(str, parents.values())) == ["refund-1", "reorder-1"]
    forks = [run for run in runs if run.cell != "record"]
    cells = Counter((run.parent, run.cell) for run in forks)
    assert set(cells.values()) == {1}
    for parent in parents:
        mine = [run for run in forks if run.parent == parent]
        sites = {str(run.cell).partition("/")[0] for run in mine}
        by = Counter(run.condition for run in mine)
        assert by == {"clean": 3 * len(sites), "sham": len(sites), "fault": 4}


def test_faults_share_the_site_that_the_seed_chose_with_its_twins(whole: Bench) -> None:
    found = whole.ask(
        "select parent_id, count(distinct split_part(cell, '/', 1)), count(distinct forked_at)"
        " from trajectories where condition = 'fault' group by 1"
    )
    assert [(sites, calls) for _, sites, calls in found] == [(1, 1), (1, 1)]
    judged = whole.ask("select count(*), count(class), min(len(twins)) from outcomes")
    assert judged == [(8 + 2, 8 + 2, 3)]


def test_the_same_command_again_makes_no_run(whole: Bench) -> None:
    before = whole.runs()
    result = whole.stumble("campaign", "two.toml", "--json")
    assert (result.code, result.json["done_now"], result.json["recorded_now"]) == (5, 0, 0)
    assert whole.runs() == before
    by_name = whole.stumble("campaign", "two", "--json").json
    assert by_name["recovery"] == result.json["recovery"]


def test_a_plan_says_what_is_left_and_what_it_would_take(whole: Bench) -> None:
    result = whole.stumble("campaign", "two", "--reps", "2", "--plan", "--json").json
    assert result["left"] == result["runs"]["fault"] - 8 == 8
    assert result["need"]["independent"] == 199
    assert (result["usd"], result["unpriced"]) == (None, ["practice/retries"])
    assert result["measured_runs"] == len([run for run in whole.runs() if run.cell != "record"])
    assert whole.stumble("campaign", "two", "--plan", "--detect", "0.9", "--rate", "0.5").code == 2


def test_a_plan_for_a_gate_takes_what_the_first_runs_showed(whole: Bench) -> None:
    result = whole.stumble("campaign", "two", "--plan", "--max-silent", "0.1")
    [line] = [line for line in result.out.splitlines() if line.startswith("so far: ")]
    assert "not enough evidence" in line
    assert "8 in 2 traces" in line
    assert "about 27 more recordings would decide" in line


def test_another_world_is_not_mixed_with_it(whole: Bench) -> None:
    result = whole.stumble("campaign", "two.toml", "--budget", "5")
    assert result.code == 2
    assert "not to be mixed" in result.err


@pytest.mark.timeout(300)
def test_a_campaign_until_decided_leaves_out_what_would_not_change_the_answer(
    tmp_path: Path,
) -> None:
    bench = Bench(tmp_path)
    tasks = tuple(
        f"{kind}-{n}" for kind in ("reprice", "amount", "weight", "tag") for n in (1, 2, 3)
    )
    text = practising(tasks, ("practice/naive",)).replace(FIRST_FAULT, "")
    file = bench.write("until.toml", text)
    options = ("--until", "decided", "--max-silent")
    assert bench.stumble("campaign", file, "--max-silent", "0.05").code == 2
    assert "needs the limit" in bench.stumble("campaign", file, "--until", "decided").err
    result = bench.stumble("campaign", file, *options, "0.05")
    assert result.code == 1, result.out + result.err
    lines = result.out.splitlines()
    assert lines[-2].startswith("FAIL  "), result.out
    assert "silent at most 0.05" in lines[-2]
    assert lines[-1] == "ended early: 7 traces of the plan were not run", result.out
    made = len(bench.runs())
    again = bench.stumble("campaign", file, *options, "0.05", "--json").json
    assert (again["verdict"], again["traces_left_out"]) == ("fail", 7)
    assert len(bench.runs()) == made


@pytest.mark.timeout(300)
def test_killed_in_the_middle_it_goes_on_and_neither_repeats_nor_loses_a_run(
    tmp_path: Path,
) -> None:
    bench = Bench(tmp_path)
    bench.write("k.toml", practising(("refund-1",), RETRIES))
    command = bench.start("campaign", "k.toml", "--jobs", "2")
    tapes = tmp_path / ".stumble" / "tapes"
    try:
        deadline = time.monotonic() + 120
        while len(list(tapes.glob("*.tape"))) < 4:
            assert command.poll() is None, command.communicate()
            assert time.monotonic() < deadline
            time.sleep(0.02)
    finally:
        os.kill(command.pid, signal.SIGKILL)
        command.communicate()
    kept = {run.id for run in bench.runs()}
    result = bench.stumble("campaign", "k", "--json")
    assert result.code == 5, result.err
    assert result.json["finished"]
    runs = bench.runs()
    assert kept <= {run.id for run in runs}
    cells = Counter(run.cell for run in runs)
    assert set(cells.values()) == {1}
    assert sum(cells.values()) == result.json["wanted"] + 1
    assert result.json["done"] == result.json["wanted"] > result.json["done_now"] > 0
    assert bench.ask("select count(*) from trajectories where ended is null") == [(0,)]
    judged = bench.ask("select count(*), min(len(twins)) from outcomes")
    assert judged == [(sum(run.condition in ("fault", "sham") for run in runs), 3)]


@pytest.mark.timeout(300)
def test_ctrl_c_keeps_what_is_finished_and_says_how_to_go_on(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    bench.write("c.toml", practising(("refund-1",), RETRIES))
    command = bench.start("campaign", "c.toml", "--jobs", "1")
    tapes = tmp_path / ".stumble" / "tapes"
    deadline = time.monotonic() + 120
    while len(list(tapes.glob("*.tape"))) < 3:
        assert command.poll() is None, command.communicate()
        assert time.monotonic() < deadline
        time.sleep(0.02)
    os.killpg(command.pid, signal.SIGINT)
    out, err = command.communicate(timeout=60)
    assert command.returncode == 130, err
    assert "go on with: stumble campaign c" in out
    assert "Traceback" not in err
    assert not list((tmp_path / ".stumble" / "campaigns" / "c").glob("runs/*"))
    assert all(run.campaign == "c" for run in bench.runs())


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ('seeds = 5\ntraces = ["unit-change"]', "seeds: 5 is not a list"),
        ('traces = ["nope.tape"]', "there is no such tape"),
        ('traces = ["nope"]', "no scenario is called 'nope'"),
        ('[practice]\ntasks = ["refund-9"]\nmodels = ["practice/naive"]', "did you mean refund-"),
        ('[practice]\ntasks = ["refund-1"]\nmodels = ["practice/nave"]', "no model is called"),
        ('[practice]\ntasks = ["refund-1"]', "practice.models: is missing"),
        ('traces = ["unit-change"]\npersist = ["twice"]', "persist[0]: "),
        ("reps = 2", "traces: none"),
        ("rep = 2", "no such key; did you mean reps?"),
    ],
)
def test_what_cannot_be_is_said_in_a_line_before_anything_runs(
    tmp_path: Path, text: str, says: str
) -> None:
    bench = Bench(tmp_path)
    result = bench.stumble("campaign", bench.write("x.toml", text))
    assert result.code == 2
    assert says in result.err
    assert result.err.count("\n") == 1
    assert bench.runs() == ()


@pytest.mark.parametrize(
    ("one", "two", "power", "cases"),
    [
        (0.8, 0.9, 0.8, 199),
        (0.8, 0.9, 0.9, 266),
        (0.85, 0.9, 0.8, 686),
        (0.9, 0.95, 0.8, 435),
        (0.6, 0.8, 0.8, 82),
        (0.02, 0.05, 0.9, 787),
    ],
)
def test_sample_sizes_are_those_of_the_book(
    one: float, two: float, power: float, cases: int
) -> None:
    assert count_independent_cases(one, two, power) == cases


def test_injections_of_one_trace_count_for_less() -> None:
    assert compute_sample_size(0.8, 0.1, power=0.8, icc=0.2, per_trace=6).injections == 398
    found = compute_sample_size(0.8, 0.1, power=0.8, icc=0.2, per_trace=10)
    assert (found.injections, found.traces) == (558, 56)
    assert compute_sample_size(0.95, 0.1, power=0.8, icc=0, per_trace=1).other == pytest.approx(
        0.85
    )
