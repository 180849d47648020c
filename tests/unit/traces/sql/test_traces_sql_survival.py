"""`unforced_runs`, `km` and `survival`: what is observed, and what is only implied."""

import math
from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from lifelines import KaplanMeierFitter

from tests.stored import Sql, answers, empty, fill, near, one
from tests.support.examples import examples
from traces.sql import ask

type Known = dict[str, object]

UNKNOWN = ("survival", "lo", "hi")


@pytest.fixture
def sql(filled: Sql) -> Sql:
    fill(filled, "injections", ())
    fill(filled, "outcomes", ())
    fill(filled, "tool_calls", ())
    fill(filled, "stages", ())
    return filled


@pytest.fixture(scope="module")
def filled() -> Iterator[Sql]:
    with empty() as connection:
        yield connection


def run(number: int, **told: object) -> Known:
    usual: Known = {"trajectory_id": f"r{number}", "agent": "a", "model": "m", "task": f"{number}"}
    usual |= {"condition": "clean", "ended": "final", "passed": True, "n_steps": 10}
    return usual | told


def runs(sql: Sql, told: list[Known]) -> None:
    fill(sql, "trajectories", [run(number, **each) for number, each in enumerate(told)])


RUN = st.fixed_dictionaries(
    {"n_steps": st.integers(1, 30), "passed": st.booleans(), "ended": st.just("final")}
)


@settings(max_examples=examples(40), deadline=None)
@given(told=st.lists(RUN, min_size=1, max_size=40))
def test_the_curve_is_kaplan_and_meiers(filled: Sql, told: list[Known]) -> None:
    runs(filled, told)
    rows = answers(filled, "FROM km ORDER BY step")
    fitter = KaplanMeierFitter().fit(
        np.array([each["n_steps"] for each in told]),
        np.array([not each["passed"] for each in told]),
    )
    interval = fitter.confidence_interval_
    for each in rows:
        step = each["step"]
        expected = float(fitter.survival_function_.loc[step].iloc[0])
        assert each["survival"] == near(expected)
        if 0 < expected < 1:
            low, high = interval.loc[step]
            assert (each["lo"], each["hi"]) == (near(low), near(high))
        else:
            assert (each["lo"], each["hi"]) == (None, None)
    assert max(each["n_steps"] for each in told) == rows[-1]["step"]  # type: ignore[type-var]


@pytest.mark.parametrize(
    ("told", "died"),
    [
        ({"passed": False}, True),
        ({"passed": True}, False),
        ({"passed": None}, False),
        ({"passed": False, "ended": "budget"}, False),
        ({"passed": False, "ended": "harness"}, False),
        ({"passed": False, "ended": "diverged"}, False),
        ({"passed": None, "ended": "crash"}, True),
        ({"passed": True, "ended": "crash"}, False),
        ({"passed": False, "ended": None}, True),
    ],
)
def test_who_died_and_who_was_only_stopped(sql: Sql, told: Known, died: bool) -> None:
    runs(sql, [told])
    assert one(sql, "SELECT died FROM unforced_runs") == {"died": died}


def test_forks_faults_and_pipelines_are_not_unforced(sql: Sql) -> None:
    runs(sql, [{}, {"parent_id": "r0"}, {"condition": "fault"}, {}, {}, {"n_steps": None}])
    fill(sql, "injections", [{"injection_id": "i", "trajectory_id": "r3"}])
    fill(sql, "stages", [{"trajectory_id": "r4", "stage": "T0"}])
    assert one(sql, "SELECT trajectory_id FROM unforced_runs") == {"trajectory_id": "r0"}


def test_errors_are_known_only_where_every_call_says(sql: Sql) -> None:
    runs(sql, [{}, {}, {}])
    calls = [("r0", 1, True), ("r0", 1, True), ("r0", 2, False), ("r1", 1, True), ("r1", 2, None)]
    names = ("trajectory_id", "step", "is_error")
    fill(sql, "tool_calls", [dict(zip(names, each, strict=True)) for each in calls])
    found = answers(sql, "SELECT error_steps FROM unforced_runs ORDER BY trajectory_id")
    assert [each["error_steps"] for each in found] == [1, None, 0]


def struck(sql: Sql, classes: dict[str, list[str]], traces: int = 6) -> None:
    """Faulted forks of the first runs: per op one strike of each class, in every trace."""
    faults = [
        (f"{op}{k}{trace}", op, trace, said)
        for op, saids in classes.items()
        for k, said in enumerate(saids)
        for trace in range(traces)
    ]
    had = sql.execute("SELECT * FROM trajectories").fetchall()
    names = [column[0] for column in sql.description or ()]
    clean: list[Known] = [dict(zip(names, each, strict=True)) for each in had]
    for each in clean:
        each["recorded_at"] = None
    forks = [
        run(0, trajectory_id=name, parent_id=f"r{trace}", condition="fault", world="fresh")
        for name, _, trace, _ in faults
    ]
    fill(sql, "trajectories", [*clean, *forks])
    fill(
        sql,
        "injections",
        [
            {"injection_id": name, "trajectory_id": name, "op": op, "consumed": True}
            for name, op, _, _ in faults
        ],
    )
    fill(
        sql,
        "outcomes",
        [
            {"injection_id": name, "class": said, "noticed": False, "baseline_valid": True}
            for name, _, _, said in faults
        ],
    )


def test_the_implied_chance_is_the_published_formula(sql: Sql) -> None:
    runs(sql, [{"passed": k % 4 > 0} for k in range(20)])
    struck(sql, {"e1": ["recovered", "crashed"], "v4": ["silent_wrong"] * 3 + ["masked"]})
    h, u, e = (0.5 + 0.25) / 2, 5 / 200, 0.05
    found = one(sql, "FROM survival WHERE basis = 'model' AND n = 20 AND e = 0.05")
    assert (found["h"], found["u"], found["ops"]) == (near(h), near(u), 2)
    assert found["survival"] == near((1 - e * (1 - h) - u) ** 20)
    assert found["naive"] == near(0.95**20)
    assert found["reason"] is None


def test_its_interval_takes_the_worst_and_the_best_of_all_three(sql: Sql) -> None:
    runs(sql, [{"passed": k % 4 > 0} for k in range(20)])
    struck(sql, {"e1": ["recovered", "crashed"]})
    low = one(sql, "SELECT handled_rate_lo AS lo, handled_rate_hi AS hi FROM recovery")
    death = one(
        sql,
        """SELECT unnest(clustered(list((died::INT)::DOUBLE), list(n_steps::DOUBLE)))
        FROM unforced_runs""",
    )
    found = one(sql, "FROM survival WHERE basis = 'model' AND n = 10 AND e = 0.02")
    assert found["lo"] == near(max(0, 1 - 0.02 * (1 - low["lo"]) - death["hi"]) ** 10)  # type: ignore
    assert found["hi"] == near((1 - 0.02 * (1 - low["hi"]) - death["lo"]) ** 10)  # type: ignore


def test_no_death_yet_is_bounded_by_the_steps_seen(sql: Sql) -> None:
    runs(sql, [{"n_steps": 50} for _ in range(10)])
    struck(sql, {"e1": ["recovered"]})
    found = one(sql, "FROM survival WHERE basis = 'model' AND n = 10 AND e = 0.01")
    assert (found["u"], found["survival"], found["hi"]) == (0, 1, 1)
    hazard = 1 - 0.05 ** (1 / 500)
    handled = 0.05 ** (1 / 6)
    assert found["lo"] == near((1 - 0.01 * (1 - handled) - hazard) ** 10)


def test_the_error_rate_in_the_store_is_used_beside_the_assumed(sql: Sql) -> None:
    runs(sql, [{} for _ in range(10)])
    struck(sql, {"e1": ["recovered"]})
    calls = [{"trajectory_id": f"r{k}", "step": 1, "is_error": k < 3} for k in range(10)]
    fill(sql, "tool_calls", calls)
    found = answers(sql, "FROM survival WHERE basis = 'model' AND n = 10 ORDER BY e")
    assert [each["e"] for each in found] == [0.01, 0.02, near(0.03), 0.05]
    assert found[2]["e_from"] == "store"


@pytest.mark.parametrize(
    ("faults", "clean", "reason"),
    [
        ({}, 10, "no_faults"),
        ({"e1": ["recovered"]}, 0, "no_clean_runs"),
        ({"e1": ["recovered"]}, 3, "few_traces"),
    ],
)
def test_what_is_missing_is_named(
    sql: Sql, faults: dict[str, list[str]], clean: int, reason: str
) -> None:
    runs(sql, [{} for _ in range(clean)])
    struck(sql, faults)
    for found in answers(sql, "FROM survival WHERE basis = 'model' AND e_from = 'assumed'"):
        assert found["reason"] == reason
        assert (found["lo"], found["hi"]) == (None, None)
        assert (found["survival"] is None) == (reason != "few_traces")


def test_nothing_is_observed_beyond_the_longest_run(sql: Sql) -> None:
    runs(sql, [{"n_steps": 8, "passed": False}, {"n_steps": 12}, {"n_steps": 22}])
    found = answers(sql, "FROM survival WHERE basis = 'km' ORDER BY n")
    assert [(each["n"], each["survival"]) for each in found] == [
        (10, near(2 / 3)),
        (20, near(2 / 3)),
    ]


def test_a_curve_that_has_not_begun_to_fall_is_at_one(sql: Sql) -> None:
    runs(sql, [{"n_steps": 12}])
    found = one(sql, "FROM survival WHERE basis = 'km'")
    assert (found["survival"], found["lo"], found["hi"]) == (1, None, None)


def test_a_curve_at_zero_takes_no_interval_from_before(sql: Sql) -> None:
    runs(sql, [{"n_steps": step, "passed": False} for step in (3, 5, 10)])
    found = one(sql, "FROM survival WHERE basis = 'km' AND n = 10")
    assert (found["survival"], found["lo"], found["hi"]) == (0, None, None)


@settings(max_examples=examples(20), deadline=None)
@given(told=st.lists(RUN, max_size=12), said=st.lists(st.sampled_from(["masked", "crashed"])))
def test_no_figure_is_not_a_number(filled: Sql, told: list[Known], said: list[str]) -> None:
    runs(filled, told)
    struck(filled, {"e1": said})
    for found in answers(filled, "FROM survival"):
        numbers = [each for each in found.values() if isinstance(each, float)]
        assert not any(math.isnan(each) or math.isinf(each) for each in numbers)
        if found["lo"] is not None and found["survival"] is not None:
            assert 0 <= found["lo"] <= found["survival"] + 1e-12  # type: ignore[operator]
            assert found["survival"] <= found["hi"] + 1e-12 <= 1 + 1e-9  # type: ignore[operator]


def test_an_error_rate_may_be_given(sql: Sql) -> None:
    runs(sql, [{"passed": k % 4 > 0} for k in range(20)])
    struck(sql, {"e1": ["recovered", "crashed"]})
    known = one(sql, "FROM survival WHERE e_from = 'assumed' AND e = 0.05 AND n = 20")
    given = [each for each in ask(sql, "survival_table", e=0.05).fetchall() if each[3] == 20]
    assert [each[4:11] for each in given] == [
        ("model", "given", 0.05, *(near(known[name]) for name in ("survival", "lo", "hi", "naive")))
    ]
