"""Named questions whose answers are estimates, against scipy, statsmodels and lifelines."""

import itertools
from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import pytest
import scipy

from tests.support.stores.clustered_rates import rates_of_equal_traces, rates_over_clusters
from tests.support.stores.faulted_runs import (
    Strike,
    absorbed,
    store,
    strike,
)
from tests.support.stores.in_memory_relations import (
    Sql,
    answers,
    empty,
    fill,
    near,
)
from traces.store.schema import SCHEMAS
from traces.store.sql import SqlValue, run_question

pytestmark = pytest.mark.gate

type Known = dict[str, object]

SILENT = {"class": "silent_wrong", "noticed": False}


@pytest.fixture(scope="module")
def filled() -> Iterator[Sql]:
    with empty() as connection:
        yield connection


@pytest.fixture
def sql(filled: Sql) -> Sql:
    for name in SCHEMAS:
        fill(filled, name, ())
    return filled


def asked(sql: Sql, name: str, **params: SqlValue) -> list[Known]:
    answer = run_question(sql, name, **params)
    names = [column[0] for column in answer.description or ()]
    return [dict(zip(names, values, strict=True)) for values in answer.fetchall()]


def only(sql: Sql, name: str, **params: SqlValue) -> Known:
    [found] = asked(sql, name, **params)
    return found


CRASHED: Known = {"passed": False, "ended": "crash"}


def clean(number: int, **told: object) -> Known:
    usual: Known = {"trajectory_id": f"r{number}", "model": "m", "task": f"{number}"}
    return usual | {"condition": "clean", "ended": "final", "passed": True, "n_steps": 10} | told


def runs(sql: Sql, told: Sequence[Mapping[str, object]]) -> None:
    fill(sql, "trajectories", [clean(number, **each) for number, each in enumerate(told)])


def test_the_funnel(sql: Sql) -> None:
    told = [strike(trace=trace, detect="D0") for trace in "abcde"]
    told += [strike(trace=trace, detect="D0", **SILENT) for trace in "abc"]
    told += [strike(trace=trace, detect="D0", **{"class": "noticed_wrong"}) for trace in "ab"]
    told += [strike(trace="a", detect="D0", consumed=False, unreached_reason="not_fired")]
    told += [absorbed(trace="b", detect="D0"), strike(trace="a", detect="D4", **SILENT)]
    store(sql, told)
    quiet, loud = sorted(asked(sql, "funnel"), key=lambda row: row["detect"] == "D0")
    assert quiet["silent_rate"] == 1
    counts = [loud[name] for name in ("injected", "fired", "absorbed", "reached", "judged")]
    assert counts == [12, 11, 1, 10, 10]
    assert loud["notice_rate"] == near(7 / 10)
    assert loud["recovery_given_notice"] == near(5 / 7)
    assert loud["wrong_given_claimed"] == near(5 / 10)
    assert (loud["silent_rate"], loud["safe_rate"]) == (near(0.3), near(0.5))
    assert loud["judge_versions"] == [1]


def correlated(rng: np.random.Generator, traces: int, each: int) -> list[Strike]:
    rates = np.repeat(rng.beta(2, 2, traces), each)
    silent = rng.random(traces * each) < rates
    return [
        strike(trace=f"t{k // each}") | (SILENT if said else {}) for k, said in enumerate(silent)
    ]


def test_the_bootstrap_draws_traces(sql: Sql) -> None:
    import statsmodels.api as sm

    told = correlated(np.random.default_rng(3), 24, 10)
    store(sql, told)
    found = only(sql, "bootstrap", draws=4000)
    y = np.array([each["class"] == "silent_wrong" for each in told], float)
    fit = sm.OLS(y, np.ones(240)).fit(
        cov_type="cluster", cov_kwds={"groups": np.repeat(np.arange(24), 10)}
    )
    assert found["rate"] == near(y.mean())
    assert found["se"] == pytest.approx(fit.bse[0], rel=0.05)
    rates = rates_over_clusters(y.reshape(1, 24, 10).sum(axis=2), np.full((1, 24), 10))
    assert (found["lo"], found["hi"]) == (near(rates.lo[0]), near(rates.hi[0]))
    again = only(sql, "bootstrap", draws=4000)
    assert found == again | {name: near(again[name]) for name in ("rate", "se", "lo", "hi")}


def test_draws_of_traces_that_agree_do_not_differ(sql: Sql) -> None:
    store(sql, [strike(trace=trace) for trace in "abcdef"])
    found = only(sql, "bootstrap")
    assert (found["rate"], found["se"], found["reason"]) == (0, None, "conservative")
    assert (found["lo"], found["hi"]) == (0, near(1 - 0.05 ** (1 / 6)))
    store(sql, [strike(trace="a"), strike(trace="b", **SILENT)])
    assert only(sql, "bootstrap")["reason"] == "few_traces"


def test_a_constant_hazard_is_tested(sql: Sql) -> None:
    rng = np.random.default_rng(5)
    told = [
        {"n_steps": int(n), "passed": bool(p), "ended": "final" if p else "crash"}
        for n, p in zip(rng.integers(1, 70, 200), rng.random(200) < 0.3, strict=True)
    ]
    runs(sql, told)
    found = asked(sql, "hazard")
    table = np.array([[each["deaths"], each["steps"]] for each in found], float)
    table[:, 1] -= table[:, 0]
    expected = scipy.stats.chi2_contingency(table, correction=False)
    assert [each["first_step"] for each in found] == [1, 4, 7, 11, 16, 26, 51]
    assert table[:, 0].sum() == sum(not each["passed"] for each in told)
    assert table.sum() == sum(int(str(each["n_steps"])) for each in told)
    for each in found:
        assert (each["chi2"], each["df"]) == (near(expected.statistic), expected.dof)
        assert each["p"] == near(expected.pvalue)


@pytest.mark.parametrize(
    ("told", "reason"),
    [
        ([{"n_steps": 9, "passed": True}] * 9, "no_deaths"),
        ([{"n_steps": 2, **CRASHED}] * 9, "one_bin"),
        ([{"n_steps": 1, **CRASHED}] * 9, "nobody_lived"),
        ([{"n_steps": 9, **CRASHED}] * 9, "few_deaths"),
        ([{"n_steps": 9, "passed": False}] * 9, "interval_censored"),
    ],
)
def test_a_hazard_that_cannot_be_tested_says_why(sql: Sql, told: list[Known], reason: str) -> None:
    runs(sql, told)
    for found in asked(sql, "hazard"):
        assert found["reason"] == reason
        assert (found["p"] is None) == (reason != "few_deaths")


def test_the_half_life(sql: Sql) -> None:
    runs(sql, [{} if k % 4 else CRASHED for k in range(40)])
    found = only(sql, "half_life")
    assert (found["deaths"], found["steps"], found["p"]) == (10, 400, near(0.975))
    assert (found["undated"], found["bound"]) == (0, "at_least")
    assert found["half_life"] == near(np.log(0.5) / np.log(0.975))
    assert found["p_20"] == near(0.975**20)
    assert found["p_lo"] < 0.975 < found["p_hi"]  # type: ignore[operator]


def test_a_budget_is_a_failure_unless_it_is_censored(sql: Sql) -> None:
    runs(sql, [{"ended": "budget", "passed": None} if k % 2 else {} for k in range(40)])
    failed, censored = only(sql, "half_life"), only(sql, "half_life", budget="censored")
    assert (failed["p"], failed["other_p"], failed["by_budget"]) == (near(0.95), 1, 20)
    assert (censored["p"], censored["other_p"]) == (1, near(0.95))
    assert failed["p_lo"] == near(1 - undated_hazard(sql, 20, 10))


def undated_hazard(sql: Sql, runs: int, steps: int) -> float:
    """The upper end if so many runs failed, maybe at their first step, and as many did not."""
    dying = f"repeat([1.0, 0.0], {runs})::DOUBLE[], repeat([1.0, 1.0], {runs})::DOUBLE[]"
    lasting = f"repeat([1, {steps}], {runs})::DOUBLE[], repeat([{steps}], {2 * runs})::DOUBLE[]"
    [found] = answers(
        sql,
        f"SELECT clustered_at({dying}, 0.975).hi / (clustered_at({lasting}, 0.975).lo * {steps})"
        " AS hi",
    )
    return float(str(found["hi"]))


def test_no_death_has_no_half_life(sql: Sql) -> None:
    runs(sql, [{"n_steps": 50, "passed": True} for _ in range(10)])
    found = only(sql, "half_life")
    assert (found["p"], found["half_life"], found["reason"]) == (1, None, "no_deaths")
    tasks = 0.025 ** (1 / 10)
    assert found["p_lo"] == near(1 - (1 - tasks) / (tasks * 50))


def test_what_a_step_costs(sql: Sql) -> None:
    told = [strike(trace=t, detect="D0") | (SILENT if t in "ab" else {}) for t in "abcdefghij"]
    store(sql, told)
    forks = answers(sql, "SELECT * EXCLUDE (recorded_at) FROM trajectories")
    fill(sql, "trajectories", [*forks, *(clean(k, passed=k > 0) for k in range(10))])
    [found] = [
        each
        for each in asked(sql, "p_eff", e=0.05)
        if (each["curve"], each["class"]) == ("ends_right", "loud")
    ]
    assert (found["h"], found["u"]) == (near(0.8), near(0.01))
    assert found["p_eff"] == near(1 - 0.05 * 0.2 - 0.01)
    assert (found["lost_to_errors"], found["naive"]) == (near(0.01), near(0.95))


def pairs(sql: Sql, told: Mapping[str, Sequence[tuple[float, float]]], runs: int = 4) -> None:
    """Per operator and trace: of so many clean and faulted runs, the share that passed."""
    rows, struck = list[Known](), list[Known]()
    for op, traces in told.items():
        for trace, (ok, hit) in enumerate(traces):
            for k in range(runs):
                base = {"parent_id": f"{trace}", "model": "m", "ended": "final", "source": "fork"}
                name = f"{op}-{trace}-{k}"
                rows.append(
                    {"trajectory_id": f"c{name}", "condition": "clean", "passed": k < runs * ok}
                    | base
                )
                rows.append(
                    {"trajectory_id": f"f{name}", "condition": "fault", "passed": k < runs * hit}
                    | base
                )
                struck.append({"injection_id": name, "trajectory_id": f"f{name}", "op": op})
    fill(sql, "trajectories", rows)
    fill(sql, "injections", [each | {"consumed": True} for each in struck])


def test_clean_and_faulted_are_compared_trace_by_trace(sql: Sql) -> None:
    from statsmodels.stats.contingency_tables import StratifiedTable

    rng = np.random.default_rng(4)
    told = [
        (a / 4, b / 4) for a, b in zip(rng.integers(2, 5, 15), rng.integers(0, 4, 15), strict=True)
    ]
    pairs(sql, {"e1": told})
    whole, by_op = asked(sql, "paired")
    assert (whole["op"], by_op["op"]) == (None, "e1")
    tables = [np.array([[4 * c, 4 - 4 * c], [4 * f, 4 - 4 * f]]) for c, f in told]
    expected = StratifiedTable([table for table in tables if table.sum(axis=0).all()])
    assert whole["p"] == near(float(expected.test_null_odds(correction=True).pvalue))
    assert (whole["clean_rate"], whole["faulted_rate"]) == tuple(map(near, np.mean(told, axis=0)))
    assert whole["delta"] == near(np.mean([c - f for c, f in told]))
    assert whole["lo"] < whole["delta"] < whole["hi"]  # type: ignore[operator]
    c, f = (np.array([each[k] >= 0.5 for each in told]) for k in (0, 1))
    b, both = int((c & ~f).sum()), int((c & f).sum())
    assert (whole["b"], whole["c"], whole["both_passed"]) == (b, 0, both)
    assert (by_op["p_exact"], by_op["p_mid"]) == (None, None)
    assert whole["retention"] == near(both / (both + b))


def test_one_clean_against_one_faulted_run_is_mcnemars(sql: Sql) -> None:
    from statsmodels.stats.contingency_tables import mcnemar

    told = [(1.0, 0.0)] * 7 + [(0.0, 1.0)] * 2 + [(1.0, 1.0)] * 5
    pairs(sql, {"e1": told}, runs=1)
    by_op = asked(sql, "paired")[1]
    exact = mcnemar([[5, 7], [2, 0]], exact=True).pvalue
    assert by_op["p_exact"] == near(exact)
    assert by_op["p_mid"] == near(exact - scipy.stats.binom.pmf(2, 9, 0.5))
    assert by_op["p"] == near(mcnemar([[5, 7], [2, 0]], exact=False, correction=True).pvalue)


def test_the_difference_of_paired_rates_is_that_of_what_was_lost_and_gained(sql: Sql) -> None:
    told = [(1, 1)] * 24 + [(1, 0)] * 10 + [(0, 1)] * 2 + [(0, 0)] * 4
    pairs(sql, {"e1": told}, runs=1)
    found = asked(sql, "paired")[1]
    asking = "SELECT unnest(clustered($1::DOUBLE[], repeat([1.0], 40)::DOUBLE[]))"
    (lost, l1, u1), (won, l2, u2) = (
        sql.execute(f"SELECT rate, lo, hi FROM ({asking})", [[1] * n + [0] * (40 - n)]).fetchall()[
            0
        ]
        for n in (10, 2)
    )
    assert found["delta"] == near(lost - won)
    assert found["lo"] == near(lost - won - np.hypot(lost - l1, u2 - won))
    assert found["hi"] == near(lost - won + np.hypot(u1 - lost, won - l2))


def test_an_operator_is_tested_that_a_majority_of_all_hides(sql: Sql) -> None:
    """One operator of four always fails: 25 points, and not one pair that differs."""
    pairs(sql, {"e1": [(1, 0)] * 6} | {op: [(1, 1)] * 6 for op in ("v4", "s1", "t2")})
    whole, harmful = asked(sql, "paired")[:2]
    assert (whole["delta"], whole["b"], whole["p_holm"]) == (0.25, 0, None)
    assert (harmful["op"], harmful["delta"]) == ("e1", 1)
    assert harmful["p"] < 1e-9  # type: ignore[operator]


def test_a_family_of_operators_is_adjusted(sql: Sql) -> None:
    from statsmodels.stats.multitest import multipletests

    harm = {"e1": 9, "v4": 6, "s1": 5, "t2": 1}
    pairs(sql, {op: [(1, 0)] * n + [(1, 1)] * (12 - n) for op, n in harm.items()})
    found = {each["op"]: each for each in asked(sql, "paired") if each["op"]}
    ps = [found[op]["p"] for op in sorted(harm)]
    adjusted = multipletests(np.array(ps, float), method="holm")[1]
    assert [found[op]["p_holm"] for op in sorted(harm)] == [near(p) for p in adjusted]


def test_pairs_that_two_verifiers_judged_have_no_difference(sql: Sql) -> None:
    pairs(sql, {"e1": [(1, 0)] * 8})
    named = "UPDATE trajectories SET verifier = {} WHERE condition = 'fault'"
    sql.execute(named.format("'tests'"))
    assert asked(sql, "paired")[0]["delta"] == 1
    # Each recording may have its own verifier: the second one of the same recording is another.
    sql.execute(named.format("'of ' || parent_id"))
    assert asked(sql, "paired")[0]["delta"] == 1
    sql.execute(named.format("if(trajectory_id LIKE '%0', 'tests', 'sums')"))
    for found in asked(sql, "paired"):
        assert found["reason"] == "mixed_verifiers"
        figures = ("clean_rate", "faulted_rate", "delta", "lo", "hi", "p", "p_holm", "b", "c")
        assert {found[name] for name in figures} == {None}


def test_one_trace_is_no_evidence(sql: Sql) -> None:
    pairs(sql, {"e1": [(1, 0)]})
    found = asked(sql, "paired")[0]
    assert (found["delta"], found["lo"], found["p"]) == (1, None, None)
    assert found["reason"] == "few_traces"


def test_hits_stand_against_false_alarms(sql: Sql) -> None:
    told = [strike(trace=f"{k}", detect="D0", noticed=k < 16) for k in range(20)]
    told += [strike(trace=f"{k}", detect="D4", noticed=k < 4) for k in range(20)]
    told += [strike(trace=f"{k}", op="sham", sham=True, noticed=k < 2) for k in range(20)]
    store(sql, told)
    whole, loud, control = asked(sql, "signal_detection", sensitivity=0.9, specificity=0.96)
    assert [each["detect"] for each in (whole, loud, control)] == [None, "D0", "D4"]
    assert (loud["hit"], loud["false_alarm"], loud["faults"]) == (0.8, 0.1, 20)
    assert loud["d_prime"] == near(scipy.stats.norm.ppf(0.8) - scipy.stats.norm.ppf(0.1))
    assert loud["youden"] == near(0.7)
    low = 0.7 - np.hypot(0.8 - loud["hit_lo"], loud["false_alarm_hi"] - 0.1)  # type: ignore
    assert loud["youden_lo"] == near(low)
    assert loud["corrected"] == near((0.8 + 0.96 - 1) / 0.86)
    assert control["youden"] == near(0.1)


def test_without_shams_a_hit_means_little(sql: Sql) -> None:
    store(sql, [strike(trace=trace) for trace in "abcdef"])
    found = asked(sql, "signal_detection")[0]
    assert (found["d_prime"], found["youden"], found["reason"]) == (None, None, "no_shams")


def test_two_judges_are_compared(sql: Sql) -> None:
    from statsmodels.stats.inter_rater import cohens_kappa

    rng = np.random.default_rng(2)
    said = rng.choice(["recovered", "masked", "silent_wrong"], (60, 2))
    said[:40, 1] = said[:40, 0]
    fill(
        sql,
        "outcomes",
        [
            {"injection_id": f"{k}", "judge_version": v + 1, "class": pair[v], "noticed": k % 3 > v}
            for k, pair in enumerate(said)
            for v in (0, 1)
        ],
    )
    found = only(sql, "judge_agreement")
    names = sorted(set(said.ravel()))
    table = np.array(
        [[((said[:, 0] == a) & (said[:, 1] == b)).sum() for b in names] for a in names]
    )
    assert (found["a"], found["b"], found["injections"]) == (1, 2, 60)
    assert found["kappa_class"] == near(float(cohens_kappa(table, return_results=False)))
    assert found["agreed"] == near((said[:, 0] == said[:, 1]).mean())


def test_sample_size_and_power_of_the_book(sql: Sql) -> None:
    found = only(sql, "sample_size", m=10, icc=0.2)
    assert (found["per_arm"], found["traces_per_arm"]) == (558, 56)
    assert only(sql, "sample_size", discordant=0.14)["pairs"] == 108
    assert only(sql, "sample_size", discordant=0.05)["pairs"] is None
    assert only(sql, "sample_size", p2=0.8)["reason"] == "no_difference"
    assert only(sql, "sample_size", p1="0.6", p2="0.8")["per_arm"] == 82
    powers = [only(sql, "power", n=n)["power"] for n in (30, 50, 100)]
    assert powers == [pytest.approx(each, abs=0.006) for each in (0.19, 0.29, 0.51)]


def test_reliability_over_the_grid(sql: Sql) -> None:
    passes = {"a": 3, "b": 2, "c": 4, "d": 0, "e": 1}
    rows = [
        clean(0, trajectory_id=f"{s}{t}{k}", task=t, scenario=s, passed=k < n - (s == "reworded"))
        for s in ("plain", "reworded")
        for t, n in passes.items()
        for k in range(4)
    ]
    fill(sql, "trajectories", rows)
    found = {(each["eps"], each["k"]): each for each in asked(sql, "reliability", k=5)}
    for k in (1, 2, 3, 4):
        r = [scipy.special.comb(n, k) / scipy.special.comb(4, k) for n in passes.values()]
        mine = found["plain", k]
        assert (mine["r"], mine["tasks"], mine["lam"]) == (near(np.mean(r)), 5, 0)
        expected = rates_of_equal_traces(np.array([r]), np.full((1, 5), 4 / k))
        assert (mine["lo"], mine["hi"]) == (near(expected.lo[0]), near(expected.hi[0]))
        assert found["reworded", k]["r"] < mine["r"]  # type: ignore[operator]
    assert (found["plain", 5]["r"], found["plain", 5]["reason"]) == (None, "fewer_trials_than_k")


def test_continuations_of_one_prefix_are_no_trials_of_the_task(sql: Sql) -> None:
    """Half of eight recordings pass; one of them is continued twelve times."""
    told = [clean(k, task="t", passed=k < 4) for k in range(8)]
    told += [clean(k, task="t", parent_id="r0", passed=False) for k in range(8, 20)]
    fill(sql, "trajectories", told)
    [*_, four] = asked(sql, "pass_hat_k", k=4)
    assert (four["tasks"], four["pass_hat_k"]) == (1, near(1 / scipy.special.comb(8, 4)))
    [*_, r] = asked(sql, "reliability", k=4)
    assert (r["runs"], r["r"]) == (8, near(1 / scipy.special.comb(8, 4)))


def test_faulted_runs_are_one_trial_for_each_recording(sql: Sql) -> None:
    shares = {"a": [True], "b": [True, False], "c": [False, False, True, False], "d": [True]}
    fill(
        sql,
        "trajectories",
        [
            clean(0, trajectory_id=f"{root}{k}", task="t", condition="fault", parent_id=root)
            | {"passed": passed}
            for root, each in shares.items()
            for k, passed in enumerate(each)
        ],
    )
    means = [float(np.mean(each)) for each in shares.values()]
    for found in asked(sql, "pass_hat_k", k=4):
        sets = list(itertools.combinations(means, int(str(found["k"]))))
        assert found["pass_hat_k"] == near(np.mean([np.prod(each) for each in sets]))
        none = np.mean([np.prod(1 - np.array(each)) for each in sets])
        assert found["pass_at_k"] == near(1 - none)


def lied_to(sql: Sql, fates: Sequence[tuple[str, int | None]]) -> None:
    """Forks struck at step 1, by what became of them and after how many steps."""
    told = [
        strike(trace=f"{k}", step=1, first_use_step=1 + t if t and said == "silent_wrong" else None)
        | {"class": said}
        for k, (said, t) in enumerate(fates)
    ]
    store(sql, told)
    steps = [
        {"trajectory_id": f"t{k}", "step": step, "source": "agent"}
        for k, (said, t) in enumerate(fates)
        for step in range(1, (t or 9) + 2 + (said == "silent_wrong"))
    ]
    fill(sql, "steps", steps)


def test_silent_use_competes_with_every_other_end(sql: Sql) -> None:
    from lifelines import AalenJohansenFitter

    rng = np.random.default_rng(8)
    times = rng.permutation(np.arange(1, 41))
    kinds = ["silent_wrong", "crashed", "honest_fail", "recovered"]
    said = rng.integers(0, 4, 40)
    lied_to(sql, [(kinds[kind], int(t)) for kind, t in zip(said, times, strict=True)])
    found = asked(sql, "silent_by_n")
    for kind, name in ((1, "silent_by_n"), (2, "crashed_by_n"), (3, "honest_by_n")):
        fitter = AalenJohansenFitter(calculate_variance=False).fit(times, said + 1, kind)
        curve = fitter.cumulative_density_.iloc[:, 0]
        assert [each[name] for each in found] == [near(curve.loc[each["n"]]) for each in found]


def test_who_ends_right_early_will_not_use_it_later(sql: Sql) -> None:
    lied_to(sql, [("masked", 2)] * 10 + [("silent_wrong", 6)] * 10)
    assert [each["silent_by_n"] for each in asked(sql, "silent_by_n")] == [0, near(0.5)]


def test_ties_are_shared(sql: Sql) -> None:
    lied_to(sql, [("silent_wrong", 2), ("crashed", 2), ("recovered", 2), ("silent_wrong", 4)])
    first, last = asked(sql, "silent_by_n")
    assert (first["n"], first["at_risk"], first["ended_right"]) == (2, 4, 1)
    assert (first["silent_by_n"], last["silent_by_n"]) == (near(1 / 4), near(1 / 2))


def test_a_strike_that_has_no_step_makes_the_curve_unknown(sql: Sql) -> None:
    told = [strike(trace=t, step=None if t == "a" else 1, first_use_step=2, **SILENT) for t in "ab"]
    store(sql, told)
    steps = [{"trajectory_id": f"t{k}", "step": 2, "source": "agent"} for k in range(2)]
    fill(sql, "steps", steps)
    found = asked(sql, "silent_by_n")
    assert {(each["silent_by_n"], each["reason"]) for each in found} == {(None, "steps_unknown")}


def test_an_unknown_first_use_makes_the_curve_unknown(sql: Sql) -> None:
    lied_to(sql, [("silent_wrong", None), ("crashed", 3), ("recovered", 5)])
    found = asked(sql, "silent_by_n")
    assert {each["silent_by_n"] for each in found} == {None}
    assert {(each["reason"], each["first_use_unknown"]) for each in found} == {
        ("first_use_unknown", 1)
    }


def test_one_mix_of_operators_for_all(sql: Sql) -> None:
    import statsmodels.api as sm

    rng = np.random.default_rng(9)
    told = [
        strike(trace=f"{k % 12}", op=op) | (SILENT if rng.random() < rate else {})
        for op, rate, n in (("e1", 0.2, 60), ("v4", 0.7, 36))
        for k in range(n)
    ]
    store(sql, told)
    found = {
        each["rate"]: each for each in asked(sql, "standardised", weights='{"e1": 1, "v4": 3}')
    }
    y = np.array([each["class"] == "silent_wrong" for each in told], float)
    op = np.array([[each["op"] == "e1", each["op"] == "v4"] for each in told], float)
    trace = np.array([int(str(each["trace"])) for each in told])
    fit = sm.OLS(y, op).fit(cov_type="cluster", cov_kwds={"groups": trace, "use_correction": False})
    weights = np.array([0.25, 0.75])
    rate, silent = weights @ fit.params, found["silent_wrong"]
    assert silent["standardised"] == near(rate)
    kish = 1 / float((weights**2 / op.sum(axis=0)).sum())
    assert 12 <= silent["n_eff"] <= kish + 1e-9  # type: ignore[operator]
    assert silent["lo"] < rate < silent["hi"]
    assert found["recovered"]["standardised"] == near(1 - rate)
    [missing, *_] = asked(sql, "standardised", weights='{"e1": 1, "t9": 1}')
    assert (missing["standardised"], missing["reason"]) == (None, "an_operator_has_no_injections")


def test_a_standardised_rate_of_traces_that_agree_is_bounded_by_them(sql: Sql) -> None:
    """Ten injections in each of five traces are no fifty cases; recovery gives the same bound."""
    store(sql, [strike(trace=trace, op=op) for trace in "abcde" for op in ("e1", "v4") * 5])
    [recovered] = [r for r in asked(sql, "standardised") if r["rate"] == "recovered"]
    assert (recovered["lo"], recovered["hi"]) == (near(0.05 ** (1 / 5)), 1)
    assert recovered["reason"] == "conservative"


def test_intention_to_treat_is_of_the_planned(sql: Sql) -> None:
    unfired = {"consumed": False, "unreached_reason": "not_fired", "class": "unreached"}
    told = [strike(trace=f"{k % 8}") | (SILENT if k < 12 else {}) for k in range(33)]
    told += [strike(trace=f"{k}") | unfired for k in range(7)]
    store(sql, told)
    found = only(sql, "intention_to_treat")
    assert (found["planned"], found["reached"], found["trigger_rate"]) == (40, 33, 0.825)
    assert (found["itt_silent_rate"], found["silent_rate"]) == (near(0.3), near(12 / 33))


def test_what_never_happened_has_a_bound(sql: Sql) -> None:
    store(sql, [strike(trace=f"{k % 30}") for k in range(300)])
    silent, crashed = asked(sql, "zero_events")[::-1]
    assert (silent["event"], crashed["event"]) == ("silent_wrong", "crashed")
    assert silent["by_trace"] == near(1 - 0.05 ** (1 / 30))
    assert silent["by_injection"] == near(1 - 0.05 ** (1 / 300))


def test_the_compounding_table(sql: Sql) -> None:
    runs(sql, [{"n_steps": 60} | ({} if k % 10 else CRASHED) for k in range(20)])
    calls = [
        {"trajectory_id": f"r{k}", "step": step, "is_error": step == 0}
        for k in range(20)
        for step in range(20)
    ]
    fill(sql, "tool_calls", calls)
    found = asked(sql, "compounding")
    assert [each["n"] for each in found] == [3, 10, 20, 50, 100]
    told = [round(float(str(each["implied_n"])), 3) for each in found]
    assert told == [0.857, 0.599, 0.358, 0.077, 0.006]
    assert found[0]["implied_half_life"] == pytest.approx(13.5, abs=0.02)
    assert [each["sound_n"] for each in found] == [
        near((1 - 2 / 1200) ** n) for n in (3, 10, 20, 50, 100)
    ]
    assert [each["kaplan_meier"] for each in found] == [1, 1, 1, 1, None]


def test_episodes_of_errors(sql: Sql) -> None:
    marks = {"r0": "..xx.", "r1": "x.x", "r2": "xxx"}
    runs(sql, [{"passed": True}, {"passed": False}, {"passed": False}])
    calls = [
        {"trajectory_id": run, "step": step, "is_error": mark == "x"}
        for run, said in marks.items()
        for step, mark in enumerate(said)
    ]
    fill(sql, "tool_calls", calls)
    found = only(sql, "error_episodes")
    assert (found["episodes"], found["local_rate"]) == (4, near(2 / 4))
    assert (found["eventual_rate"], found["gap"]) == (near(1 / 4), near(1 / 4))
    assert found["calls_to_recover"] == near((2 + 1) / 2)
