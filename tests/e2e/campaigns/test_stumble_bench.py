"""stumble-bench: a table that can be had again from the tapes, by weights said beforehand."""

import json
import os
import shutil
import signal
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from stumble.campaigns.bench import read_bench
from tests.support.campaign_folder import Bench
from tests.support.stores.in_memory_relations import (
    Sql,
    empty,
    fill,
)
from traces.store.sql import run_question

type Row = Mapping[str, object]

TINY = """
title = "tiny-bench 1"
seeds = [1]
budget = 60
[practice]
tasks = ["refund-1", "reorder-1"]
models = ["practice/retries"]
max_steps = 60
[analysis]
text = "None but this."
[[faults]]
fault = "http_status:code=503"
persist = "once"
weight = 3
[[faults]]
fault = "digit"
persist = "once"
weight = 1
"""


def test_the_bench_has_weights_for_all_its_faults_and_a_name_by_its_bytes(tmp_path: Path) -> None:
    found = read_bench()
    asked = found.to_campaign(found.to_campaign_table((), None, "own"))
    assert sum(found.weights.values()) == 100
    assert {f"{fault.name} {fault.persist}" for fault in asked.faults} == set(found.weights)
    assert len(asked.sources) == 12 * 3
    assert asked.name == f"stumble-bench-1-{found.digest[:8]}"
    changed = tmp_path / "b.toml"
    changed.write_text(TINY)
    assert read_bench(changed).name != found.name


@pytest.mark.timeout(300)
def test_tapes_are_judged_again_to_the_same_table(tmp_path: Path) -> None:
    folder = Bench(tmp_path)
    file = folder.write("tiny.toml", TINY)
    first = folder.stumble("bench", "--file", file, "--json")
    assert first.code == 5, first.err
    [row] = first.json["rows"]
    assert (row["model"], row["traces"], row["judged"]) == ("practice/retries", 2, 4)
    assert row["handled_rate"] is not None
    store = tmp_path / ".stumble" / "bench"
    shutil.rmtree(store / "index")
    again = folder.stumble("bench", "--file", file, "--from", str(store), "--json")
    assert again.json["rows"] == first.json["rows"]
    assert folder.stumble("bench", "--from", str(store)).code == 2


def filled(outcomes: Sequence[tuple[str, str]]) -> Sql:
    """A store of injections, each an operator and what became of it, over six traces."""
    sql, runs, injections, verdicts = empty(), list[Row](), list[Row](), list[Row]()
    for number, (op, outcome) in enumerate(outcomes):
        run, id = f"r{number}", f"r{number}/1"
        common: Row = {"model": "m", "world": "fresh", "condition": "fault", "source": "fork"}
        trace: Row = {"trajectory_id": run, "parent_id": f"t{number % 6}", "campaign": "b-1"}
        runs.append({**common, **trace, "ended": "final"})
        injected: Row = {"injection_id": id, "trajectory_id": run, "op": op, "persist": "once"}
        injections.append({**injected, "consumed": True, "sham": False})
        said: Row = {"injection_id": id, "judge_version": 1, "class": outcome}
        verdicts.append({**said, "baseline_valid": True})
    fill(sql, "trajectories", runs)
    fill(sql, "injections", injections)
    fill(sql, "outcomes", verdicts)
    return sql


def asked(sql: Sql) -> Row:
    weights = json.dumps({"digit once": 1, "cut once": 3})
    answer = run_question(sql, "bench", weights=weights, campaign="b")
    names = [column[0] for column in answer.description or ()]
    [row] = answer.fetchall()
    return dict(zip(names, row, strict=True))


def test_a_fault_counts_by_its_weight_and_not_by_how_often_it_struck() -> None:
    digits = [("digit", "recovered" if n % 3 == 0 else "silent_wrong") for n in range(18)]
    row: Any = asked(filled([*digits, *[("cut", "recovered")] * 6]))
    assert (row["traces"], row["judged"], row["faults"]) == (6, 24, 2)
    assert row["recovery_rate"] == pytest.approx((1 * 6 / 18 + 3 * 1) / 4)
    assert row["silent_rate"] == pytest.approx(1 * 12 / 18 / 4)
    assert row["recovery_rate_lo"] < row["recovery_rate"] < row["recovery_rate_hi"]


def test_a_fault_that_never_struck_leaves_no_standardised_figure() -> None:
    row = asked(filled([("digit", "recovered")] * 6))
    assert (row["reason"], row["faults"], row["declared_faults"]) == ("faults_missing", 1, 2)
    assert {row[name] for name in row if "_rate" in name and "unknown" not in name} == {None}


@pytest.mark.many(1)
@pytest.mark.thorough
@pytest.mark.timeout(300)
@pytest.mark.parametrize("as_json", [False, True])
def test_a_table_of_some_of_the_runs_is_marked(tmp_path: Path, as_json: bool) -> None:
    """Stopped while it runs, it says how many runs are left, and ends by the signal."""
    folder = Bench(tmp_path)
    file = folder.write("tiny.toml", TINY)
    options = ("--json",) if as_json else ()
    command = folder.start("bench", "--file", file, "--jobs", "1", *options)
    tapes = tmp_path / ".stumble" / "bench" / "tapes"
    deadline = time.monotonic() + 200
    while len(list(tapes.glob("*.tape"))) < (5 if as_json else 1):
        assert command.poll() is None, command.communicate()
        assert time.monotonic() < deadline
        time.sleep(0.02)
    os.killpg(command.pid, signal.SIGTERM)
    out, err = command.communicate(timeout=90)
    assert command.returncode == 143, err
    if as_json:
        document = json.loads(out)
        assert document["finished"] is False
        assert document["done"] + document["left"] == document["wanted"]
        assert document["left"] > 0
    else:
        assert out.startswith("INCOMPLETE: ")
