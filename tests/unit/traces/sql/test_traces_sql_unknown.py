"""What is not known of a run leaves no rate in silence: bounds hold whatever it was."""

from collections.abc import Iterator, Mapping

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.stores.faulted_runs import Strike, store, strike
from tests.support.stores.in_memory_relations import Sql, empty, near, one
from tests.support.tiers import examples
from traces.store.sql import run_question

RATES = (
    "recovery_rate",
    "recovery_given_notice",
    "silent_rate",
    "handled_rate",
    "ends_right_rate",
)
FACTS: tuple[Strike, ...] = (
    {"class": "recovered", "noticed": True, "passed": True, "claims_success": True},
    {"class": "masked", "noticed": False, "passed": True, "claims_success": True},
    {"class": "honest_fail", "noticed": True, "passed": False, "claims_success": False},
    {"class": "honest_fail", "noticed": False, "passed": False, "claims_success": False},
    {"class": "noticed_wrong", "noticed": True, "passed": False, "claims_success": True},
    {"class": "noticed_wrong", "noticed": True, "passed": True, "claims_success": False},
    {"class": "silent_wrong", "noticed": False, "passed": False, "claims_success": True},
    {"class": "crashed", "noticed": False, "passed": False, "claims_success": False},
)
"""All that is known of a consumed fault, by class."""


def hide_notice(run: Strike) -> Strike:
    """Return the run as it is stored if its notice is unknown."""
    decided = run["class"] in ("honest_fail", "crashed") or (
        run["class"] == "noticed_wrong" and run["passed"]
    )
    return run | {"noticed": None} | ({} if decided else {"class": None})


def hide_claim(run: Strike) -> Strike:
    """Return the run as it is stored if what it claims is unknown."""
    decided = run["class"] == "crashed" or (run["passed"] and run["claims_success"])
    return run | {"claims_success": None} | ({} if decided else {"class": None})


def hide_end(run: Strike) -> Strike:
    """Return the run as it is stored if how it ended is unknown."""
    decided = {} if run["class"] == "crashed" else {"class": None}
    return run | {"passed": None} | decided


def cut_off(run: Strike) -> Strike:
    """Return the run as it is stored if it left the recording."""
    return run | {"ended": "diverged", "class": None, "noticed": None, "passed": None}


HIDING = (lambda run: run, hide_notice, hide_claim, hide_end, cut_off)
runs_and_what_hides_them = st.lists(
    st.tuples(
        st.sampled_from(FACTS),
        st.booleans(),
        st.sampled_from("abcdefgh"),
        st.sampled_from(HIDING),
    ),
    min_size=1,
    max_size=14,
)


def read_number(row: Mapping[str, object], name: str) -> float:
    value = row[name]
    assert isinstance(value, int | float), name
    return value


@pytest.fixture(scope="module")
def sql() -> Iterator[Sql]:
    with empty() as connection:
        yield connection


@pytest.mark.gate
@settings(max_examples=examples(120), deadline=None)
@given(runs_and_what_hides_them)
def test_bounds_hold_the_rate_of_all_runs_whatever_is_unknown(
    sql: Sql, drawn: list[tuple[Strike, bool, str, object]]
) -> None:
    full = [
        strike(trace=trace, steps_after=2, noticeable=noticeable, **facts)
        for facts, noticeable, trace, _ in drawn
    ]
    hidden = [hide(run) for run, (*_, hide) in zip(full, drawn, strict=True)]  # type: ignore[operator]
    store(sql, full)
    truth = one(sql, "FROM recovery")
    store(sql, hidden)
    found = one(sql, "FROM recovery")
    for rate in RATES:
        if truth[rate] is not None:
            true = read_number(truth, rate)
            assert read_number(found, f"{rate}_least") <= true + 1e-9, rate
            assert read_number(found, f"{rate}_most") >= true - 1e-9, rate
        if found[f"{rate}_unknown"] == 0 and truth["fired"] == found["fired"]:
            assert (found[rate] is None) == (truth[rate] is None)
            assert found[rate] is None or found[rate] == near(truth[rate])
        assert read_number(found, f"{rate}_of") <= read_number(found, "fired")


@pytest.mark.gate
@settings(max_examples=examples(60), deadline=None)
@given(runs_and_what_hides_them)
def test_bounds_of_a_bench_hold_its_rate_whatever_is_unknown(
    sql: Sql, drawn: list[tuple[Strike, bool, str, object]]
) -> None:
    full = [
        strike(
            trace=trace, op="e1" if trace < "e" else "v4", persist="once", steps_after=2, **facts
        )
        for facts, _, trace, _ in drawn
    ]
    hidden = [hide(run) for run, (*_, hide) in zip(full, drawn, strict=True)]  # type: ignore[operator]
    store(sql, full)
    truth = _ask_bench(sql)
    store(sql, hidden)
    found = _ask_bench(sql)
    for rate in ("recovery_rate", "silent_rate", "handled_rate"):
        if truth[rate] is not None and found[f"{rate}_least"] is not None:
            true = read_number(truth, rate)
            assert read_number(found, f"{rate}_least") <= true + 1e-9, rate
            assert read_number(found, f"{rate}_most") >= true - 1e-9, rate


def _ask_bench(sql: Sql) -> dict[str, object]:
    answer = run_question(sql, "bench", weights='{"e1 once": 1, "v4 once": 3}')
    names = [column[0] for column in answer.description or ()]
    [row] = answer.fetchall()
    return dict(zip(names, row, strict=True))


@settings(max_examples=examples(20), deadline=None)
@given(runs_and_what_hides_them)
def test_ends_right_needs_the_verified_end_and_nothing_else(
    sql: Sql, drawn: list[tuple[Strike, bool, str, object]]
) -> None:
    full = [strike(trace=trace, steps_after=2, **facts) for facts, _, trace, _ in drawn]
    store(sql, [hide_claim(hide_notice(run)) for run in full])
    found = one(sql, "FROM recovery")
    assert found["ends_right_rate_unknown"] == 0
    right = [run["passed"] for run in full]
    assert found["ends_right_rate"] == near(right.count(True) / len(right))


def test_a_wrong_end_with_an_unknown_notice_is_delivered_wrong(sql: Sql) -> None:
    wrong = {"passed": False, "claims_success": True}
    store(
        sql,
        [
            strike(noticed=None, **wrong) | {"class": None},
            strike(noticed=True, **wrong) | {"class": "noticed_wrong"},
            strike(noticed=False, **wrong) | {"class": "silent_wrong"},
            strike(noticed=None, passed=True, claims_success=True) | {"class": None},
        ],
    )
    found = one(sql, "FROM recovery")
    assert (found["delivered_wrong"], found["delivered_wrong_notice_unknown"]) == (3, 1)
    assert (found["silent_rate_of"], found["silent_rate_unknown"]) == (3, 1)
    assert (found["ends_right_rate"], found["ends_right_rate_of"]) == (0.25, 4)
    assert (found["handled_rate"], found["handled_rate_of"]) == (0.25, 4)


@pytest.mark.parametrize(("measure", "side"), [("silent", "hi"), ("ends_right", "lo")])
def test_a_gate_counts_each_unknown_run_against_its_limit(
    sql: Sql, measure: str, side: str
) -> None:
    known = [
        strike(trace=str(n), noticed=True, passed=True, claims_success=True) for n in range(40)
    ]
    store(sql, known)
    [sound] = [row for row in _ask_gate(sql) if row["measure"] == measure]
    store(sql, known + [cut_off(strike(trace=str(n))) for n in range(10)])
    [found] = [row for row in _ask_gate(sql) if row["measure"] == measure]
    assert found["unknown"] == 10
    bound = {"hi": "most", "lo": "least"}[side]
    assert read_number(found, "lo") <= read_number(found, bound) <= read_number(found, "hi")
    assert found[bound] == near({"hi": 0.2, "lo": 0.8}[side])
    assert sound[side] == sound[f"known_{side}"] == near(found[f"known_{side}"])


def _ask_gate(sql: Sql) -> list[dict[str, object]]:
    answer = run_question(sql, "gate")
    names = [column[0] for column in answer.description or ()]
    return [dict(zip(names, values, strict=True)) for values in answer.fetchall()]
