"""`unforced_runs`, `km` and `survival`: what is observed, and what is only implied."""

import itertools
import math
from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.stores.in_memory_relations import (
    Sql,
    answers,
    empty,
    fill,
    near,
    one,
)
from tests.support.tiers import examples
from traces.store.sql import run_question

type Known = dict[str, object]


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


CRASHED: Known = {"passed": False, "ended": "crash"}
RUN = st.builds(
    lambda steps, died: {"n_steps": steps} | (CRASHED if died else {}),
    st.integers(1, 30),
    st.booleans(),
)
RIGHT = "FROM kaplan_meier WHERE curve = 'ends_right' ORDER BY step"


@pytest.mark.gate
@settings(max_examples=examples(40), deadline=None)
@given(told=st.lists(RUN, min_size=1, max_size=40))
def test_the_curve_is_kaplan_and_meiers(filled: Sql, told: list[Known]) -> None:
    from lifelines import KaplanMeierFitter

    runs(filled, told)
    rows = answers(filled, RIGHT)
    fitter = KaplanMeierFitter().fit(
        np.array([each["n_steps"] for each in told]),
        np.array([not each.get("passed", True) for each in told]),
    )
    for each in rows:
        assert each["survival"] == near(float(fitter.predict(each["step"])))
        assert each["survival"] == near(each["at_least"]) == near(each["at_most"])
        assert len(told) >= 5 or each["lo"] is None
        if each["lo"] is not None:
            assert each["lo"] <= each["survival"] + 1e-9  # type: ignore[operator]
            assert each["survival"] <= each["hi"] + 1e-9  # type: ignore[operator]
    assert max(each["n_steps"] for each in told) == rows[-1]["step"]  # type: ignore[type-var]


def curve(died_at: dict[int, int], alive_until: list[int], step: int) -> float:
    """Kaplan and Meier's product by hand: steps of deaths by run, last steps of all others."""
    ends = [*died_at.values(), *alive_until]
    share = 1.0
    for each in sorted({end for end in died_at.values() if end <= step}):
        share *= 1 - list(died_at.values()).count(each) / sum(end >= each for end in ends)
    return share


@settings(max_examples=examples(30), deadline=None)
@given(
    failed=st.lists(st.integers(1, 5), min_size=1, max_size=4),
    passed=st.lists(st.integers(1, 5), min_size=1, max_size=4),
)
def test_the_bounds_are_those_of_every_step_at_which_a_run_may_have_failed(
    filled: Sql, failed: list[int], passed: list[int]
) -> None:
    told: list[Known] = [{"n_steps": n, "passed": False} for n in failed]
    runs(filled, told + [{"n_steps": n} for n in passed])
    for each in answers(filled, RIGHT):
        step = int(str(each["step"]))
        shares = [
            curve(dict(enumerate(dates)), passed, step)
            for dates in itertools.product(*(range(1, n + 1) for n in failed))
        ]
        assert each["at_least"] == near(min(shares))
        assert each["at_most"] == near(max(shares))


def test_runs_that_all_fail_at_an_unknown_step_are_not_known_to_live(sql: Sql) -> None:
    runs(sql, [{"n_steps": 12, "passed": False} for _ in range(8)])
    at = {each["step"]: each for each in answers(sql, RIGHT)}
    assert (at[10]["survival"], at[10]["at_least"], at[10]["at_most"]) == (None, 0, 1)
    assert (at[10]["lo"], at[10]["hi"], at[10]["reason"]) == (0, 1, "interval_censored")
    assert (at[12]["survival"], at[12]["lo"]) == (0, 0)


@pytest.mark.parametrize("told", [{"passed": None}, {"passed": False, "ended": "diverged"}])
def test_what_nobody_graded_is_no_evidence_of_survival(sql: Sql, told: Known) -> None:
    runs(sql, [told for _ in range(45)])
    assert answers(sql, "FROM kaplan_meier") == []
    [found] = answers(sql, "SELECT count(*) AS n, count(died) AS k FROM clean_runs")
    assert found == {"n": 45, "k": 0}
    names = [each[0] for each in run_question(sql, "half_life").description or ()]
    found = dict(zip(names, run_question(sql, "half_life").fetchall()[0], strict=True))
    assert (found["p"], found["p_lo"], found["p_20"]) == (None, None, None)
    assert (found["ungraded"], found["reason"]) == (45, "ungraded")


def test_runs_of_one_task_are_no_further_evidence(sql: Sql) -> None:
    """Half of the tasks always fail: twenty runs of each say no more than one."""
    ends = [
        (CRASHED if task % 2 else {}) | {"task": f"{task}", "n_steps": 9}
        for task in range(8)
        for _ in range(20)
    ]
    runs(sql, ends[::20])
    [*_, one_each] = answers(sql, RIGHT)
    runs(sql, ends)
    [*_, found] = answers(sql, RIGHT)
    assert (found["tasks"], found["survival"], found["at_risk"]) == (8, near(0.5), 160)
    width = [float(str(each["hi"])) - float(str(each["lo"])) for each in (one_each, found)]
    assert width[1] > 0.7 * width[0]


def test_who_says_that_it_failed_is_not_silently_wrong(sql: Sql) -> None:
    runs(sql, [{"passed": False, "ended": "abstain"}, {"passed": False}, {}, {}])
    found = answers(sql, "FROM kaplan_meier WHERE step = 10 ORDER BY curve")
    assert [(each["curve"], each["survival"]) for each in found] == [
        ("ends_right", near(0.5)),
        ("not_silently_wrong", near(0.75)),
    ]


@pytest.mark.parametrize(
    ("told", "died"),
    [
        ({"passed": False}, True),
        ({"passed": True}, False),
        ({"passed": None}, None),
        ({"passed": False, "ended": "budget"}, True),
        ({"passed": None, "ended": "budget"}, True),
        ({"passed": False, "ended": "harness"}, None),
        ({"passed": False, "ended": "diverged"}, None),
        ({"passed": False, "ended": "abstain"}, True),
        ({"passed": None, "ended": "crash"}, True),
        ({"passed": True, "ended": "crash"}, False),
        ({"passed": False, "ended": None}, True),
    ],
)
def test_who_died_and_who_was_only_stopped(sql: Sql, told: Known, died: bool | None) -> None:
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
    """Faulted forks of the first runs: per op one strike of each class, in every trace.

    The first letter of an operator is its family.
    """
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
            {
                "injection_id": name,
                "trajectory_id": name,
                "op": op,
                "family": op[0].upper(),
                "consumed": True,
            }
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


def survival(sql: Sql) -> list[Known]:
    """All rows of `survival`; to bind that view takes longer than to ask it."""
    return answers(sql, "FROM survival")


def model(rows: list[Known], **told: object) -> Known:
    """The row of `survival` that is implied, of the errors and the curve that are asked for."""
    usual: Known = {"curve": "ends_right", "class": "loud", "e_from": "assumed", "basis": "model"}
    wanted = usual | told
    [only] = [each for each in rows if {name: each[name] for name in wanted} == wanted]
    return only


def test_the_implied_chance_is_the_published_formula(sql: Sql) -> None:
    runs(sql, [CRASHED if k % 4 == 0 else {} for k in range(20)])
    struck(sql, {"e1": ["recovered", "crashed"], "e2": ["silent_wrong"] * 3 + ["masked"]})
    h, u, e = (0.5 + 0.25) / 2, 5 / 200, 0.05
    rows = survival(sql)
    found = model(rows, n=20, e=e)
    assert (found["h"], found["u"], found["ops"]) == (near(h), near(u), 2)
    assert found["survival"] == near((1 - e * (1 - h) - u) ** 20)
    assert found["naive"] == near(0.95**20)
    assert found["reason"] == "extrapolated"
    assert model(rows, n=10, e=e)["reason"] == "conservative"


def test_an_honest_failure_ends_wrong_but_not_silently(sql: Sql) -> None:
    runs(sql, [{} for _ in range(10)])
    struck(sql, {"e1": ["honest_fail"]})
    rows = survival(sql)
    found = {
        curve: model(rows, curve=curve, n=20, e=0.05)["survival"]
        for curve in ("ends_right", "not_silently_wrong")
    }
    assert found == {"ends_right": near(0.95**20), "not_silently_wrong": 1}


@pytest.mark.gate
def test_errors_are_charged_with_faults_of_their_own_class(sql: Sql) -> None:
    """Up from every error, taken in by every lie."""
    runs(sql, [{} for _ in range(10)])
    struck(sql, {"e1": ["recovered"], **{op: ["silent_wrong"] for op in ("v1", "v2", "v3")}})
    rows = survival(sql)
    assert model(rows, n=20, e=0.05)["survival"] == 1
    assert model(rows, **{"class": "quiet"}, n=20, e=0.05)["survival"] == near(0.95**20)
    assert {each["e_from"] for each in rows if each["class"] == "quiet"} == {"assumed"}
    both = [
        each for each in run_question(sql, "survival_table", e=0.05, e_quiet=0.01).fetchall()
        if each[5] == "loud and quiet" and each[4] == "ends_right" and each[6] == 20
    ]  # fmt: skip
    assert [each[11] for each in both] == [near(0.99**20)]


def test_a_label_goes_before_the_family(sql: Sql) -> None:
    runs(sql, [{} for _ in range(10)])
    struck(sql, {"e1": ["silent_wrong"], "t1": ["masked"]})
    sql.execute("UPDATE injections SET detect = 'D1' WHERE op = 'e1'")
    sql.execute("UPDATE injections SET op = 'delay' WHERE op = 't1'")
    found = answers(
        sql, "SELECT DISTINCT class, h FROM survival WHERE h IS NOT NULL ORDER BY class, h"
    )
    assert found == [{"class": "other", "h": 1}, {"class": "quiet", "h": 0}]


@pytest.mark.gate
def test_its_interval_takes_the_worst_and_the_best_of_all_three(sql: Sql) -> None:
    runs(sql, [CRASHED if k % 4 == 0 else {} for k in range(20)])
    struck(sql, {"e1": ["recovered", "crashed"]})
    low = one(sql, "SELECT ends_right_rate_lo AS lo, ends_right_rate_hi AS hi FROM recovery")
    death = one(
        sql,
        """SELECT unnest(hazard_over(
            list((died::INT)::DOUBLE), list(n_steps::DOUBLE), list(1::DOUBLE), max(n_steps)
        )) FROM unforced_runs""",
    )
    seen = one(sql, "FROM kaplan_meier WHERE curve = 'ends_right' AND step = 10")
    found = model(survival(sql), n=10, e=0.02)
    worst, best = (1 - 0.02 * (1 - low[side]) for side in ("lo", "hi"))  # type: ignore[operator]
    implied = (worst - death["hi"]) ** 10, (best - death["lo"]) ** 10
    assert found["lo"] == near(min(implied[0], seen["lo"] * worst**10))
    assert found["hi"] == near(max(implied[1], seen["hi"] * best**10))


def test_no_death_yet_is_bounded_by_the_tasks_seen(sql: Sql) -> None:
    runs(sql, [{"n_steps": 50} for _ in range(10)])
    struck(sql, {"e1": ["recovered"]})
    found = model(survival(sql), n=10, e=0.01)
    assert (found["u"], found["survival"], found["hi"]) == (0, 1, 1)
    tasks, handled = 0.025 ** (1 / 10), 0.05 ** (1 / 6)
    assert found["u_hi"] == near((1 - tasks) / (tasks * 50))
    assert found["lo"] == near(0.05 ** (1 / 10) * (1 - 0.01 * (1 - handled)) ** 10)


def test_the_hazard_of_undated_failures_is_bounded_by_the_first_step(sql: Sql) -> None:
    runs(sql, [{"passed": k % 2 > 0} for k in range(40)])
    struck(sql, {"e1": ["recovered"]})
    found = model(survival(sql), n=10, e=0.01)
    assert (found["u"], found["undated"], found["bound"]) == (near(20 / 400), 20, "at_most")
    assert found["u_hi"] > 20 / (200 + 20)  # type: ignore[operator]


def test_beyond_the_mean_length_the_figure_is_another_bound(sql: Sql) -> None:
    steps = [10, 10, 10, 20]
    runs(sql, [{"n_steps": n} | (CRASHED if k == 0 else {}) for k, n in enumerate(steps * 3)])
    struck(sql, {"e1": ["recovered"]})
    rows = survival(sql)
    assert [model(rows, n=n, e=0.01)["bound"] for n in (10, 20, 50)] == [
        "at_most",
        "at_least",
        "at_least",
    ]


def test_the_error_rate_in_the_store_is_used_beside_the_assumed(sql: Sql) -> None:
    runs(sql, [{} for _ in range(10)])
    struck(sql, {"e1": ["recovered"]})
    calls = [{"trajectory_id": f"r{k}", "step": 1, "is_error": k < 3} for k in range(10)]
    fill(sql, "tool_calls", calls)
    found = answers(
        sql,
        "FROM survival WHERE curve = 'ends_right' AND class = 'loud' AND n = 10 ORDER BY e",
    )
    assert [each["e"] for each in found] == [0.01, 0.02, near(0.03), 0.05]
    assert found[2]["e_from"] == "store"


@pytest.mark.gate
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
    for found in answers(sql, "FROM survival WHERE class = 'loud' AND e_from = 'assumed'"):
        assert found["reason"] == reason
        assert (found["lo"], found["hi"]) == (None, None)
        assert (found["survival"] is None) == (reason != "few_traces")


def test_nothing_is_observed_beyond_the_longest_run(sql: Sql) -> None:
    runs(sql, [{"n_steps": 8} | CRASHED, {"n_steps": 12}, {"n_steps": 22}])
    found = answers(
        sql, "FROM survival WHERE basis = 'kaplan_meier' AND curve = 'ends_right' ORDER BY n"
    )
    assert [(each["n"], each["survival"]) for each in found] == [
        (10, near(2 / 3)),
        (20, near(2 / 3)),
    ]


@pytest.mark.parametrize(("told", "survival"), [({}, 1), (CRASHED, 0)])
def test_a_curve_at_an_end_is_bounded_by_the_tasks_seen(
    sql: Sql, told: Known, survival: int
) -> None:
    runs(sql, [told for _ in range(6)])
    found = one(sql, "FROM survival WHERE basis = 'kaplan_meier' AND curve = 'ends_right'")
    bound = 0.05 ** (1 / 6)
    expected = (bound, 1) if survival else (0, 1 - bound)
    assert (found["survival"], found["lo"], found["hi"]) == (survival, *map(near, expected))


@pytest.mark.gate
@settings(max_examples=examples(10), deadline=None)
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


@pytest.mark.gate
def test_an_error_rate_may_be_given(sql: Sql) -> None:
    runs(sql, [CRASHED if k % 4 == 0 else {} for k in range(20)])
    struck(sql, {"e1": ["recovered", "crashed"]})
    known = model(survival(sql), n=10, e=0.05)
    answer = run_question(sql, "survival_table", e=0.05)
    names = [column[0] for column in answer.description or ()]
    rows = [dict(zip(names, each, strict=True)) for each in answer.fetchall()]
    asked = {"curve": "ends_right", "class": "loud", "n": 10, "basis": "model"}
    [given] = [each for each in rows if {name: each[name] for name in asked} == asked]
    assert (given["e_from"], given["e"]) == ("given", 0.05)
    for name in ("survival", "lo", "hi", "naive"):
        assert given[name] == near(known[name])
    assert given["bound"] == known["bound"] == "at_most"


def weighted(sql: Sql, **params: object) -> Known:
    """The row of `survival_weighted` for 10 steps and runs that end right."""
    answer = run_question(sql, "survival_weighted", **params)  # type: ignore[arg-type]
    names = [column[0] for column in answer.description or ()]
    rows = [dict(zip(names, each, strict=True)) for each in answer.fetchall()]
    [found] = [each for each in rows if (each["curve"], each["n"]) == ("ends_right", 10)]
    return found


@pytest.mark.gate
def test_equal_weights_of_all_loud_classes_are_the_view(sql: Sql) -> None:
    runs(sql, [CRASHED if k % 4 == 0 else {} for k in range(20)])
    struck(sql, {"e1": ["recovered", "crashed"], "e2": ["silent_wrong"] * 3 + ["masked"]})
    found = weighted(sql, weights='{"e1": 7, "e2": 7}', e=0.05)
    known = model(survival(sql), n=10, e=0.05)
    assert (found["covered"], found["classes"]) == (near(1), ["e1", "e2"])
    for name in ("h", "survival", "lo", "hi", "naive"):
        assert found[name] == near(known[name]), name
    assert found["at_least"] == near(found["at_most"]) == near(found["survival"])


@pytest.mark.gate
def test_each_class_counts_by_its_weight(sql: Sql) -> None:
    runs(sql, [{} for _ in range(10)])
    struck(sql, {"e1": ["recovered", "crashed"], "e2": ["silent_wrong"] * 3 + ["masked"]})
    found = weighted(sql, weights='{"e1": 30, "e2": 10}', e=0.1)
    assert found["h"] == near(0.75 * 0.5 + 0.25 * 0.25)
    assert found["survival"] == near((1 - 0.1 * (1 - 0.4375)) ** 10)


@pytest.mark.gate
def test_a_class_without_faults_is_unknown_between_fatal_and_harmless(sql: Sql) -> None:
    runs(sql, [{} for _ in range(10)])
    struck(sql, {"e1": ["recovered", "crashed"]})
    found = weighted(sql, weights='{"e1": 3, "hang": 1}', e=0.1)
    assert (found["survival"], found["covered"]) == (None, near(0.75))
    assert found["reason"] == "an_operator_has_no_injections"
    assert found["at_least"] == near((1 - 0.1 * (1 - 0.75 * 0.5)) ** 10)
    assert found["at_most"] == near((1 - 0.1 * 0.75 * 0.5) ** 10)
    assert found["lo"] < found["at_least"] < found["at_most"] < found["hi"]  # type: ignore[operator]
    none = weighted(sql, weights='{"hang": 1}', e=0.1)
    assert (none["at_least"], none["at_most"], none["reason"]) == (near(0.9**10), 1, "no_faults")


@pytest.mark.gate
def test_the_interval_of_the_error_rate_widens_the_answer(sql: Sql) -> None:
    runs(sql, [{} for _ in range(10)])
    struck(sql, {"e1": ["recovered", "crashed"]})
    exact = weighted(sql, weights='{"e1": 1}', e=0.1)
    wide = weighted(sql, weights='{"e1": 1}', e=0.1, e_lo=0.05, e_hi=0.2)
    assert exact["survival"] == wide["survival"]
    assert wide["lo"] < exact["lo"]  # type: ignore[operator]
    assert exact["hi"] < wide["hi"]  # type: ignore[operator]
    assert weighted(sql, weights='{"e1": 1}')["reason"] == "no_error_rate"
