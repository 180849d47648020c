"""What runs took, and what became of planned faults: means over traces, and each fault once."""

from collections.abc import Iterator

import numpy as np
import pytest
import scipy
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.stores.in_memory_relations import (
    Sql,
    empty,
    fill,
    near,
)
from tests.support.tiers import examples
from traces.store.sql import run_question

RUN: dict[str, object] = {"model": "m", "world": "fresh", "source": "fork", "ended": "final"}
VERDICT: dict[str, object] = {"judge_version": 1, "baseline_valid": True, "twins": ["c1", "c2"]}


@pytest.fixture(scope="module")
def macros() -> Iterator[Sql]:
    with empty() as connection:
        yield connection


def asked(sql: Sql, name: str) -> list[dict[str, object]]:
    answer = run_question(sql, name)
    names = [column[0] for column in answer.description or ()]
    return [dict(zip(names, values, strict=True)) for values in answer.fetchall()]


@given(st.lists(st.floats(-1e3, 1e3).map(lambda x: round(x, 3)), min_size=5, max_size=30))
@settings(deadline=None, max_examples=examples(50))
def test_a_mean_over_traces_has_students_interval(macros: Sql, each: list[float]) -> None:
    [(found,)] = macros.execute("SELECT over_traces(?::DOUBLE[])", [each]).fetchall()
    assert found["mean"] == pytest.approx(np.mean(each), abs=1e-9)
    if len(set(each)) == 1:
        assert (found["lo"], found["reason"]) == (None, "all_alike")
    else:
        lo, hi = scipy.stats.t.interval(0.95, len(each) - 1, np.mean(each), scipy.stats.sem(each))
        # The quantiles come from a table of four digits.
        assert (found["lo"], found["hi"]) == pytest.approx((lo, hi), rel=1e-4, abs=1e-3)


@pytest.mark.parametrize("each", [[], [1.0], [1.0, 2.0, 3.0, 4.0]])
def test_few_traces_have_a_mean_and_no_interval(macros: Sql, each: list[float]) -> None:
    [(found,)] = macros.execute("SELECT over_traces(?::DOUBLE[])", [each]).fetchall()
    assert (found["lo"], found["hi"], found["reason"]) == (None, None, "few_traces")
    assert found["mean"] == (sum(each) / len(each) if each else None)


def test_time_to_recovery_counts_steps_of_the_agent_and_what_twins_did_without() -> None:
    with empty() as sql:
        runs = [RUN | {"trajectory_id": "f", "parent_id": "a", "n_steps": 9, "seconds": 5.0}]
        runs += [RUN | {"trajectory_id": f"c{n}", "n_steps": 6 + n, "seconds": 3.0} for n in (1, 2)]
        fill(sql, "trajectories", runs)
        sources = ["user", "agent", "agent", "user", "agent", "agent"]
        fill(
            sql,
            "steps",
            [
                {"trajectory_id": "f", "step": at, "source": source}
                for at, source in enumerate(sources, 1)
            ],
        )
        injected = {"trajectory_id": "f", "injection_id": "f/1", "op": "digit", "step": 2}
        fill(sql, "injections", [injected | {"consumed": True, "sham": False}])
        verdict = {"injection_id": "f/1", "class": "recovered", "noticed_step": 5}
        fill(sql, "outcomes", [VERDICT | verdict])
        [row] = asked(sql, "time_to_recovery")
    assert (row["recovered"], row["traces"], row["reason"]) == (1, 1, "few_traces")
    assert (row["steps_to_notice"], row["steps_to_notice_max"]) == (2, 2)
    assert row["extra_steps"] == near(9 - 7.5)
    assert row["extra_seconds"] == near(2.0)
    assert row["extra_steps_lo"] is None


type Known = dict[str, object]
FATES: dict[str, tuple[Known, Known, Known]] = {
    "judged": ({"consumed": True}, {"class": "recovered"}, {}),
    "absorbed": ({"consumed": False, "unreached_reason": "absorbed"}, {}, {}),
    "no_site": ({"consumed": False, "unreached_reason": "no_site"}, {}, {}),
    "undecided": ({"consumed": None, "unreached_reason": "undecidable"}, {}, {}),
    "cut_off": ({"consumed": True}, {"class": "crashed"}, {"ended": "diverged"}),
    "baseline_failed": ({"consumed": True}, {"class": "masked", "baseline_valid": False}, {}),
    "few_twins": ({"consumed": True}, {"baseline_valid": None}, {}),
    "baseline_unknown": ({"consumed": True}, {"baseline_valid": None, "twins": [*"cde"]}, {}),
    "no_verdict": ({"consumed": True}, {"class": None, "twins": [*"cde"]}, {}),
}


def test_each_fault_is_counted_once_under_the_first_reason_that_fits() -> None:
    with empty() as sql:
        fill(
            sql,
            "trajectories",
            [RUN | run | {"trajectory_id": id} for id, (_, _, run) in FATES.items()],
        )
        fill(
            sql,
            "injections",
            [
                {"trajectory_id": id, "injection_id": id, "op": id, "sham": False} | struck
                for id, (struck, _, _) in FATES.items()
            ],
        )
        fill(
            sql,
            "outcomes",
            [VERDICT | {"injection_id": id} | said for id, (_, said, _) in FATES.items()],
        )
        found = run_question(sql, "exclusions").fetchall()
    assert {(op, ending, count) for *_, op, ending, count in found} == {(id, id, 1) for id in FATES}


def test_what_is_not_known_of_a_run_costs_nothing_known() -> None:
    with empty() as sql:
        known = {"n_steps": 4, "tokens": None, "seconds": 1.0, "cost_usd": None}
        fill(
            sql,
            "trajectories",
            [RUN | known | {"trajectory_id": f"{n}", "source": "record"} for n in range(6)],
        )
        [row] = asked(sql, "cost_by_condition")
    assert (row["kind"], row["runs"], row["unpriced"]) == ("record", 6, 6)
    assert (row["tokens"], row["tokens_lo"], row["cost_usd"], row["cost_total"]) == (None,) * 4
    assert (row["steps"], row["steps_lo"], row["reason"]) == (4, None, "all_alike")
