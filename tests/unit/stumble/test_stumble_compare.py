"""`stumble compare`: the same cell of the same trace under A and under B."""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy

from tests.support.practice_shop import Shop
from tests.support.stores.in_memory_relations import (
    Sql,
    answers,
    empty,
    fill,
    near,
)
from traces.store.schema import make_relation_row, make_relation_table
from traces.store.sql import run_question
from traces.store.trace_store import TraceStore

R, S, M = "recovered", "silent_wrong", "masked"

type Told = dict[str, object]


def runs(side: str, classes: Iterable[str | None], **more: object) -> list[Told]:
    """One faulted run of a trace each, the same cell everywhere."""
    return [
        {"campaign": side, "task": f"t{k}", "class": each, "cell": "get#1/digit/0", "family": "V"}
        | more
        for k, each in enumerate(classes)
    ]


def tables(known: list[Told]) -> dict[str, list[Told]]:
    ids = [{"trajectory_id": f"r{k}", "injection_id": f"i{k}"} for k in range(len(known))]
    told = [
        {"model": "m", "op": "digit", "consumed": True, "baseline_valid": True, "sham": False,
         "agent": None, "source": "fork", "ended": "final", "judge_version": 1, "verifier": None,
         "recorded_at": float(k), "noticed": each["class"] == R} | each | ids[k]
        for k, each in enumerate(known)
    ]  # fmt: skip
    columns = {
        "trajectories": "trajectory_id campaign task cell agent model source ended recorded_at "
        "verifier",
        "injections": "injection_id trajectory_id op family consumed sham",
        "outcomes": "injection_id judge_version class noticed baseline_valid",
    }
    return {
        name: [{key: each[key] for key in keys.split()} for each in told]
        for name, keys in columns.items()
    }


@pytest.fixture(scope="module")
def sql() -> Iterator[Sql]:
    with empty() as connection:
        yield connection


def compared(sql: Sql, known: list[Told], **more: Any) -> dict[tuple[str, str], Told]:
    """Rows by measure and part."""
    rows = all_compared(sql, known, **more)
    return {(str(each["measure"]), str(each["part"])): each for each in rows}


def all_compared(sql: Sql, known: list[Told], **more: Any) -> list[Told]:
    for name, rows in tables(known).items():
        fill(sql, name, rows)
    answer = run_question(sql, "compare", **({"a": "before", "b": "after"} | more))
    names = [column[0] for column in answer.description or ()]
    return [dict(zip(names, each, strict=True)) for each in answer.fetchall()]


@pytest.mark.gate
def test_the_difference_is_that_of_a_paired_t_test_over_traces(sql: Sql) -> None:
    before = [R, S, S, M, R, S, S, R]
    after = [R, R, R, M, R, R, S, S]
    found = compared(sql, runs("before", before) + runs("after", after))[("recovery", "all")]
    x, y = (np.array([float(each == R) for each in side]) for side in (before, after))
    theirs = scipy.stats.ttest_rel(y, x)
    assert (found["pairs"], found["traces"]) == (8, 8)
    assert (found["gained"], found["lost"]) == (3, 1)
    assert found["delta"] == near(2 / 8)
    assert found["p"] == near(theirs.pvalue)
    assert (found["rate_a"], found["rate_b"]) == (near(x.mean()), near(y.mean()))
    assert found["lo"] < 0 < found["delta"] < found["hi"]  # type: ignore[operator]


def test_the_rates_differ_by_what_is_given_as_their_difference(sql: Sql) -> None:
    """One trace of eight pairs says the reverse of three with one: pooled, B would be ahead."""
    known: list[Told] = []
    for pair in range(8):
        cell = {"cell": f"get#1/digit/{pair}"}
        known += runs("before", [S], **cell) + runs("after", [R], **cell)
    rest = {"cell": "get#2/digit/1"}
    known += runs("before", [S, R, R, R, R, S], **rest) + runs("after", [S, S, S, S, R, R], **rest)
    found = compared(sql, known)[("recovery", "all")]
    assert (found["pairs"], found["gained"], found["lost"]) == (14, 9, 3)
    rate_a, rate_b = found["rate_a"], found["rate_b"]
    assert isinstance(rate_a, float)
    assert isinstance(rate_b, float)
    assert found["delta"] == near(rate_b - rate_a)
    assert rate_b < rate_a


@pytest.mark.gate
def test_one_pair_per_trace_has_mcnemar_as_well(sql: Sql) -> None:
    from statsmodels.stats.contingency_tables import mcnemar

    before, after = [S] * 7 + [R] * 5, [R] * 6 + [S] + [R] * 4 + [S]
    found = compared(sql, runs("before", before) + runs("after", after))[("recovery", "all")]
    exact = mcnemar([[4, 1], [6, 1]], exact=True).pvalue
    mid = exact - scipy.stats.binom.pmf(1, 7, 0.5)
    assert found["p_mcnemar"] == near(mid)


def test_repeats_within_a_trace_do_not_count_as_traces(sql: Sql) -> None:
    known = []
    for rep in range(4):
        cell = {"cell": f"get#1/digit/{rep}"}
        known += runs("before", [S, S, R, S, S], **cell) + runs("after", [R, S, R, R, R], **cell)
    found = compared(sql, known)[("recovery", "all")]
    theirs = scipy.stats.ttest_rel([1, 0, 1, 1, 1], [0, 0, 1, 0, 0])
    assert (found["pairs"], found["traces"]) == (20, 5)
    assert found["p"] == near(theirs.pvalue)
    assert found["p_mcnemar"] is None


@pytest.mark.gate
def test_families_are_adjusted_together(sql: Sql) -> None:
    from statsmodels.stats.multitest import multipletests

    known, ps = [], []
    sides = {"V": [R, R, R, R, R, S], "E": [R, R, S, S, R, S], "S": [R, S, S, S, S, S]}
    for family, after in sides.items():
        more = {"family": family, "cell": f"get#1/{family}"}
        known += runs("before", [S] * 6, **more) + runs("after", after, **more)
        ps.append(scipy.stats.ttest_1samp([float(each == R) for each in after], 0).pvalue)
    found = compared(sql, known)
    wanted = multipletests(ps, method="holm")[1]
    for family, p, adjusted in zip(sides, ps, wanted, strict=True):
        assert found[("recovery", family)]["p"] == near(p)
        assert found[("recovery", family)]["p_holm"] == near(adjusted)


def test_what_is_unknown_on_one_side_is_left_out_and_counted(sql: Sql) -> None:
    before, after = [R, None, R, S, S, R], [R, R, None, R, R, R]
    told = compared(sql, runs("before", before) + runs("after", after))
    for measure, delta in (("recovery", 0.5), ("silent", -0.5)):
        found = told[(measure, "all")]
        assert (found["pairs"], found["left_out"], found["traces"]) == (4, 2, 4)
        assert (found["delta"], found["lo"], found["reason"]) == (near(delta), None, "few_traces")


@pytest.mark.gate
def test_traces_that_all_differ_alike_have_the_sign_test(sql: Sql) -> None:
    found = compared(sql, runs("before", [S] * 8) + runs("after", [R] * 8))[("recovery", "all")]
    assert (found["delta"], found["hi"], found["reason"]) == (1, 1, "conservative")
    assert found["lo"] == near(1 - np.hypot(1 - 0.05 ** (1 / 8), 1 - 0.05 ** (1 / 8)))
    assert found["p"] == near(scipy.stats.binomtest(8, 8).pvalue)
    same = compared(sql, runs("before", [R] * 8) + runs("after", [R] * 8))[("recovery", "all")]
    assert (same["delta"], same["p"]) == (0, 1)


@pytest.mark.gate
def test_cells_without_a_mate_are_not_paired_and_a_cell_run_again_counts_once(sql: Sql) -> None:
    alone = runs("after", [R] * 5, cell="other")
    again = runs("after", [S] * 5)
    known = runs("before", [R] * 5) + alone + again + runs("after", [R] * 5)
    found = compared(sql, known)[("recovery", "all")]
    assert (found["pairs"], found["delta"]) == (5, 0)


MEASURES: dict[str, tuple[Told, Told]] = {
    "mixed_judges": ({"judge_version": 1}, {"judge_version": 2}),
    "mixed_verifiers": ({"verifier": "sums"}, {"verifier": "tests"}),
}


@pytest.mark.gate
@pytest.mark.parametrize("reason", MEASURES)
def test_what_was_measured_otherwise_is_not_compared(sql: Sql, reason: str) -> None:
    """Nothing changed but the judge or the verifier, which would be a difference of 1."""
    one, other = MEASURES[reason]
    known = runs("before", [R] * 6, **one) + runs("after", [S] * 6, **other)
    for found in compared(sql, known).values():
        figures = (found["rate_a"], found["rate_b"], found["delta"], found["lo"], found["p"])
        assert figures == (None,) * 5
        assert (found["pairs"], found["left_out"], found["reason"]) == (0, 6, reason)
    assert run_question(sql, "flips", a="before", b="after").fetchall() == []


@pytest.mark.gate
@pytest.mark.parametrize("reason", MEASURES)
def test_two_measures_of_both_sides_are_two_rows(sql: Sql, reason: str) -> None:
    one, other = MEASURES[reason]
    known = [
        run | {"cell": f"get#1/digit/{k}"}
        for k, (before, after, how) in enumerate([(R, S, one), (S, R, other)])
        for run in runs("before", [before] * 6, **how) + runs("after", [after] * 6, **how)
    ]
    rows = [row for row in all_compared(sql, known) if row["part"] == "all"]
    found = [row for row in rows if row["measure"] == "recovery"]
    assert [(row["pairs"], row["rate_a"], row["rate_b"]) for row in found] == [
        (6, 1, 0),
        (6, 0, 1),
    ]


@pytest.mark.gate
def test_models_are_paired_within_one_campaign(sql: Sql) -> None:
    known = [
        each
        for campaign, model, classes in (
            ("one", "x", [S] * 5), ("one", "y", [R] * 5), ("two", "x", [R] * 5)
        )
        for each in runs(campaign, classes, model=model)
    ]  # fmt: skip
    found = compared(sql, known, a="x", b="y", by="model")[("recovery", "all")]
    assert (found["pairs"], found["delta"]) == (5, 1)
    assert compared(sql, known, a="x", b="y", by="model", campaign="two") == {}


def test_two_agents_are_not_paired_with_each_other(sql: Sql) -> None:
    known = [
        each
        for side in ("before", "after")
        for agent, said in (("careful", R), ("careless", S))
        for each in runs(side, [said] * 5, agent=agent)
    ]
    found = compared(sql, known)[("recovery", "all")]
    assert (found["pairs"], found["delta"], found["gained"], found["lost"]) == (10, 0, 0, 0)


@pytest.mark.gate
def test_what_flipped_is_listed_with_both_injections(sql: Sql) -> None:
    known = runs("before", [R, S, None]) + runs("after", [R, R, S])
    compared(sql, known)
    run_question(sql, "flips", a="before", b="after")
    flips = [
        (each[0], each[3], each[4])
        for each in run_question(sql, "flips", a="before", b="after").fetchall()
    ]
    assert flips == [("t1", S, R), ("t2", None, S)]
    assert answers(sql, "SELECT count(*) AS n FROM campaign_injections") == [{"n": 6}]


def here(folder: Path, known: list[Told]) -> Shop:
    made = {
        name: make_relation_table(name, (make_relation_row(name, each) for each in rows))
        for name, rows in tables(known).items()
    }
    TraceStore(folder / ".stumble").write("made", made)
    return Shop(folder=folder, book=folder, log=folder, hosts=(), task="none")


def test_a_person_sees_the_difference_and_what_flipped(tmp_path: Path) -> None:
    shop = here(tmp_path, runs("before", [S, S, S, R, R, S]) + runs("after", [R] * 6))
    result = shop.stumble("compare", "before", "after")
    assert result.code == 0, result.err
    assert "+0.667" in result.out
    assert "t0 get#1/digit/0: silent_wrong -> recovered  (i6)" in result.out
    plain = shop.stumble("compare", "before", "after", "--json").json
    assert (plain["by"], len(plain["flips"])) == ("campaign", 4)


def test_too_few_traces_are_not_enough(tmp_path: Path) -> None:
    shop = here(tmp_path, runs("before", [S, S]) + runs("after", [R] * 2))
    result = shop.stumble("compare", "before", "after")
    assert result.code == 5
    assert "few_traces" in result.out


def test_all_models_of_a_campaign_are_compared_with_each_other(tmp_path: Path) -> None:
    def of(model: str, classes: list[str | None]) -> list[Told]:
        return [each | {"model": model} for each in runs("nightly", classes)]

    shop = here(tmp_path, of("x", [S] * 6) + of("y", [R] * 6) + of("z", [R, S] * 3))
    result = shop.stumble("compare", "--models", "--campaign", "nightly", "--json")
    assert result.code == 0, result.err
    assert [(each["a"], each["b"]) for each in result.json] == [("x", "y"), ("x", "z"), ("y", "z")]
    assert [len(each["flips"]) for each in result.json] == [6, 3, 3]
    one = shop.stumble("compare", "--models", "y", "x")
    assert (one.code, "-1.000" in one.out) == (0, True)
    assert shop.stumble("compare", "--models", "--campaign", "gone").code == 2
    assert shop.stumble("compare", "--models", "y").code == 2
    assert "no model 'xx'" in shop.stumble("compare", "--models", "y", "xx").err


def test_a_name_that_is_none_is_answered_by_the_nearest(tmp_path: Path) -> None:
    shop = here(tmp_path, runs("before", [S]) + runs("after", [R]))
    result = shop.stumble("compare", "before", "aftr")
    assert result.code == 2
    assert "after" in result.err
    other = shop.stumble("compare", "before", "m")
    assert other.code == 2
    assert "--by" in other.err
