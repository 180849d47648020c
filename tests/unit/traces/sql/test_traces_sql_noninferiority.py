"""A candidate beside a baseline in SQL: bounds against scipy, and which runs are held together."""

import math
import random
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest
import scipy

from tests.support.stores.in_memory_relations import (
    Sql,
    empty,
    fill,
    near,
)
from traces.store.sql import run_question

type Lists = list[list[float]]
type Rows = list[tuple[Any, Any, Any]]


@pytest.fixture(scope="module")
def sql() -> Iterator[Sql]:
    with empty() as connection:
        yield connection


def bounds(sql: Sql, name: str, level: float, *lists: Lists) -> Rows:
    """The bounds of many samples by one query, since it takes longer to plan than to run."""
    columns = [f"c{number}" for number in range(len(lists))]
    sql.register("samples", pa.table(dict(zip(columns, lists, strict=True))))
    each = f"{name}({', '.join(columns)}, {level})"
    rows = sql.execute(
        f"SELECT b.difference, b.lower, b.upper FROM (SELECT {each} AS b FROM samples)"
    ).fetchall()
    sql.unregister("samples")
    return rows


def samples(seed: int, count: int = 60) -> Lists:
    """Rates of 5 to 30 roots, many of them equal."""
    rng = random.Random(seed)
    shares = (0.0, 0.0, 0.1, 0.25, 0.5, 0.75, 1.0, 1.0, 1.0)
    return [[rng.choice(shares) for _ in range(rng.randint(5, 30))] for _ in range(count)]


def most(lost: float, roots: int, alpha: float) -> float:
    """The share of roots that may be lost beyond those that were, by Clopper and Pearson."""
    if lost >= roots:
        return 0.0
    return float(scipy.stats.beta.ppf(1 - alpha, lost + 1, roots - lost)) - lost / roots


def by_scipy(found: list[float], alpha: float) -> tuple[float, float, float]:
    roots, mean = len(found), sum(found) / len(found)
    more = [*found, 1.0, -1.0]
    spread = sum((d - sum(more) / len(more)) ** 2 for d in more) / (roots + 1)
    half = float(scipy.stats.t.ppf(1 - alpha, roots - 1)) * math.sqrt(spread / (roots + 2))
    down = most(-sum(d for d in found if d <= -0.5), roots, alpha) * (1 + max(0, mean))
    up = most(sum(d for d in found if d >= 0.5), roots, alpha) * (1 + max(0, -mean))
    return mean, max(-1, mean - max(half, down)), min(1, mean + max(half, up))


@pytest.mark.gate
@pytest.mark.parametrize("alpha", [0.2, 0.05, 0.001])
def test_paired_bounds_are_those_of_scipy(sql: Sql, alpha: float) -> None:
    pairs = zip(samples(1), samples(2), strict=True)
    found = [[a - b for a, b in zip(one, other, strict=False)] for one, other in pairs]
    for row, differences in zip(bounds(sql, "paired_bounds", alpha, found), found, strict=True):
        assert row == pytest.approx(by_scipy(differences, alpha), abs=1e-9)


@pytest.mark.gate
def test_unpaired_bounds_mirror_one_another(sql: Sql) -> None:
    """Arms that change places, and failures for successes, turn the interval round."""
    one, other = samples(3), samples(4)
    failed = [[[1 - x for x in each] for each in arm] for arm in (one, other)]
    rows = bounds(sql, "unpaired_bounds", 0.05, one, other)
    mirrored = [(near(-d), near(-hi), near(-lo)) for d, lo, hi in rows]
    assert bounds(sql, "unpaired_bounds", 0.05, other, one) == mirrored
    assert bounds(sql, "unpaired_bounds", 0.05, *failed) == mirrored
    assert all(-1 <= lo < d < hi <= 1 for d, lo, hi in rows)


def test_two_arms_of_ones_and_zeros_have_the_error_of_agresti_and_caffo(sql: Sql) -> None:
    a, b = [1.0] * 24 + [0.0] * 16, [1.0] * 20 + [0.0] * 15
    [(_, _, upper)] = bounds(sql, "unpaired_bounds", 0.05, [a], [b])
    rates = [(sum(x) + 1) / (len(x) + 2) for x in (a, b)]
    error2 = [p * (1 - p) / (len(x) + 1) for p, x in zip(rates, (a, b), strict=True)]
    half = float(scipy.stats.t.ppf(0.95, 34)) * math.sqrt(sum(error2))
    assert upper == pytest.approx(24 / 40 - 20 / 35 + half, abs=1e-9)


def test_no_difference_passes_a_margin_from_59_roots_on(sql: Sql) -> None:
    rows = bounds(sql, "paired_bounds", 0.05, [[0.0] * 58, [0.0] * 59])
    assert [lower > -0.05 for _, lower, _ in rows] == [False, True]


def test_a_level_of_nothing_decides_nothing_and_few_roots_have_no_bounds(sql: Sql) -> None:
    few: Lists = [[], [0.5] * 4]
    assert bounds(sql, "paired_bounds", 0, [[1.0] * 9]) == [(1, -1, 1)]
    assert [row[1:] for row in bounds(sql, "paired_bounds", 0.05, few)] == [(None, None)] * 2
    rows = bounds(sql, "unpaired_bounds", 0.05, [[0.5] * 9] * 2, few)
    assert [row[1:] for row in rows] == [(None, None)] * 2


type Run = dict[str, object]


def run(campaign: str, trace: str, cell: str, outcome: str | None, **more: object) -> Run:
    return {"campaign": campaign, "parent_id": trace, "cell": cell, "class": outcome} | more


def store(sql: Sql, runs: list[Run], recordings: list[Run] = []) -> None:  # noqa: B006
    known = [
        each | {"trajectory_id": f"t{n}", "injection_id": f"i{n}"} for n, each in enumerate(runs)
    ]
    keys = ("trajectory_id", "campaign", "parent_id", "cell", "task", "model", "ended", "seal")
    rows = [{"world": "fresh", "agent": "a", "source": "fork"} | pick(each, keys) for each in known]
    fill(sql, "trajectories", [*rows, *recordings])
    ending = ("trajectory_id", "injection_id", "consumed", "unreached_reason")
    struck = {"op": "digit", "sham": False, "consumed": True}
    fill(sql, "injections", [struck | pick(each, ending) for each in known])
    verdict = ("injection_id", "judge_version", "class")
    judged = {"judge_version": 1, "noticed": False, "baseline_valid": True, "steps_after": 3}
    fill(sql, "outcomes", [judged | pick(each, verdict) for each in known])


def pick(row: Run, keys: tuple[str, ...]) -> Run:
    return {key: row[key] for key in keys if key in row}


def roots(sql: Sql, measure: str = "ends-right") -> dict[object, dict[str, object]]:
    answer = run_question(
        sql, "noninferiority", campaign="new", baseline_campaign="old", measure=measure
    )
    names = [column[0] for column in answer.description or ()]
    rows = [dict(zip(names, row, strict=True)) for row in answer.fetchall()]
    return {row["unit"]: row for row in rows}


def test_cells_of_the_same_recording_are_pairs(sql: Sql) -> None:
    store(sql, [
        run("old", "r1", "a", "masked"), run("old", "r1", "b", "masked"),
        run("new", "r1", "a", "masked"), run("new", "r1", "b", "silent_wrong"),
        run("new", "r1", "c", "masked"), run("old", "r2", "a", "crashed"),
        run("new", "r2", "a", "honest_fail"),
    ])  # fmt: skip
    found = roots(sql)
    assert {row["paired_by"] for row in found.values()} == {"root"}
    assert (found["r1"]["difference"], found["r1"]["cells"], found["r1"]["left_out"]) == (
        -0.5,
        2,
        1,
    )
    assert found["r2"]["difference"] == 0
    handled, silent = roots(sql, "handled"), roots(sql, "silent")
    assert (handled["r2"]["difference"], handled["r1"]["difference"]) == (1, -0.5)
    assert (silent["r2"]["difference"], silent["r1"]["difference"]) == (0, -0.5)


def test_a_root_is_what_all_forks_come_from(sql: Sql) -> None:
    chain: list[Run] = [
        {"trajectory_id": "f1", "parent_id": "f0", "source": "fork"},
        {"trajectory_id": "f0", "parent_id": "r1", "source": "fork"},
        {"trajectory_id": "r1", "source": "record"},
    ]
    store(sql, [run("old", "f1", "a", "masked"), run("new", "r1", "a", "crashed")], chain)
    assert roots(sql)["r1"]["difference"] == -1


def test_recordings_of_one_task_are_paired_by_what_was_planned(sql: Sql) -> None:
    """Each arm recorded the task itself, so that a fault met another call in each."""
    store(sql, [
        run("old", "r1", "get#1@http/digit,once/seed 1/rep 0", "masked", task="t"),
        run("new", "r2", "list#2@model-boundary/digit,once/seed 1/rep 0", "crashed", task="t"),
        run("new", "r2", "list#2@http/digit,once/seed 2/rep 0", "masked", task="t"),
    ])  # fmt: skip
    [row] = roots(sql).values()
    assert (row["unit"], row["paired_by"], row["difference"], row["left_out"]) == (
        "t",
        "task",
        -1,
        1,
    )


def test_arms_that_share_nothing_have_rows_of_their_own(sql: Sql) -> None:
    store(sql, [run("old", "r1", "a", "masked"), run("new", "r2", "a", "crashed")])
    found = roots(sql)
    assert (found["r1"]["candidate"], found["r1"]["baseline"]) == (None, 1)
    assert (found["r2"]["candidate"], found["r2"]["baseline"]) == (0, None)
    assert {row["difference"] for row in found.values()} == {None}


def test_the_unknown_is_neither_and_moves_the_difference_both_ways(sql: Sql) -> None:
    store(sql, [
        run("old", "r1", "a", "masked"), run("old", "r1", "b", "masked"),
        run("new", "r1", "a", "masked"), run("new", "r1", "b", "masked", ended="diverged"),
        run("old", "r2", "a", None), run("new", "r2", "a", "masked"),
        run("old", "r3", "a", "masked", consumed=False, unreached_reason="absorbed"),
        run("new", "r3", "a", "masked"),
        run("old", "r4", "a", "masked", consumed=False, unreached_reason="not_fired"),
        run("new", "r4", "a", "masked"),
    ])  # fmt: skip
    found = roots(sql)
    assert (found["r1"]["cells"], found["r1"]["known"], found["r1"]["difference"]) == (2, 1, 0)
    assert (found["r1"]["candidate_least"], found["r1"]["candidate_most"]) == (0.5, 1)
    assert (found["r2"]["known"], found["r2"]["difference"]) == (0, None)
    assert (found["r2"]["baseline_least"], found["r2"]["baseline_most"]) == (0, 1)
    assert found["r3"]["difference"] == 0
    assert (found["r4"]["cells"], found["r4"]["left_out"]) == (0, 1)
    assert roots(sql, "silent")["r3"]["left_out"] == 1


def test_arms_say_who_sealed_and_judged_them(sql: Sql) -> None:
    store(sql, [
        run("old", "r1", "a", "masked", seal="s"),
        run("old", "r1", "a", "masked", judge_version=2),
        run("new", "r2", "a", "masked", seal="s"), run("new", "r3", "a", "masked", seal="s"),
    ])  # fmt: skip
    answer = run_question(sql, "arms")
    names = [column[0] for column in answer.description or ()]
    new, old = (dict(zip(names, row, strict=True)) for row in answer.fetchall())
    assert (new["campaign"], new["roots"], new["seals"], new["again"]) == ("new", 2, ["s"], 0)
    assert (old["seals"], old["judge_versions"], old["again"]) == (["", "s"], [1, 2], 2)
