"""`stumble gate`: the bound of an interval decides, and what is not known is no pass."""

import json
import math
from collections.abc import Callable, Iterable
from copy import replace
from pathlib import Path
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from statsmodels.stats.proportion import proportion_confint

from stumble.gate.junit import render_junit_suite
from stumble.gate.limits import (
    GateCheck,
    GateLimit,
    GateRate,
    check_gate_limits,
    join_gate_verdicts,
)
from stumble.gate.report import NO_CHECK, render_gate_markdown
from tests.support.practice_shop import (
    Said,
    Shop,
)
from traces.store.schema import make_relation_row, make_relation_table
from traces.store.trace_store import TraceStore

RATE = GateRate(
    agent="a", model="m", world="fresh", part="all", ops=("digit",), measure="recovery",
    hits=90, cases=100, traces=100, n_eff=100, t=1.98, rate=0.9, lo=0.82, hi=0.95, reason=None,
)  # fmt: skip
RECOVERS = GateLimit(measure="recovery", value=0.9, least=True, confidence=0.95)
SILENT = GateLimit(measure="silent", value=0.02, least=False, confidence=0.95)


@pytest.mark.parametrize(
    ("lo", "hi", "verdict"),
    [(0.9, 1.0, "pass"), (0.2, 0.899, "fail"), (0.89, 0.99, "unknown"), (None, None, "unknown")],
)
def test_the_whole_interval_must_be_on_one_side(
    lo: float | None, hi: float | None, verdict: str
) -> None:
    assert RECOVERS.verdict(replace(RATE, lo=lo, hi=hi)) == verdict


@pytest.mark.parametrize(
    ("lo", "hi", "verdict"), [(0, 0.02, "pass"), (0.021, 0.4, "fail"), (0.0, 0.03, "unknown")]
)
def test_at_most_looks_at_the_other_side(lo: float, hi: float, verdict: str) -> None:
    assert SILENT.verdict(replace(RATE, measure="silent", rate=0.02, lo=lo, hi=hi)) == verdict


def test_the_worst_check_is_the_verdict_and_none_is_not_a_pass() -> None:
    good, bad, open_ = (
        replace(RATE, lo=lo, hi=hi) for lo, hi in ((0.95, 1.0), (0.1, 0.2), (0.1, 1.0))
    )
    assert join_gate_verdicts(check_gate_limits([good], [RECOVERS])) == "pass"
    assert join_gate_verdicts(check_gate_limits([good, open_], [RECOVERS])) == "unknown"
    assert join_gate_verdicts(check_gate_limits([open_, bad], [RECOVERS])) == "fail"
    assert join_gate_verdicts(check_gate_limits([], [RECOVERS])) == "unknown"
    assert join_gate_verdicts(check_gate_limits([good], [SILENT])) == "unknown"


@given(
    rate=st.floats(0.02, 0.98), limit=st.floats(0.05, 0.95), n=st.integers(30, 300),
)  # fmt: skip
def test_after_what_is_needed_the_bound_is_at_the_limit(rate: float, limit: float, n: int) -> None:
    """By statsmodels' Wilson, with as many cases as were said to be needed, and with one less."""
    t = float(stats.norm.ppf(0.975))
    lo, hi = proportion_confint(rate * n, n, method="wilson")
    found = replace(RATE, rate=rate, traces=n, cases=n, n_eff=n, t=t, lo=lo, hi=hi)
    check = GateCheck(limit=replace(RECOVERS, value=limit), rate=found)
    more = check.needed
    if check.verdict != "unknown":
        assert more == 0
    elif more is not None and abs(rate - limit) > 1e-3:
        lo, hi = proportion_confint(rate * (n + more), n + more, method="wilson")
        assert lo >= limit - 1e-9 or hi <= limit + 1e-9
        lo, hi = proportion_confint(rate * (n + more - 1), n + more - 1, method="wilson")
        assert lo < limit < hi


@pytest.mark.parametrize(
    ("limit", "rate", "traces"),
    [(RECOVERS, 1.0, 29), (SILENT, 0.0, 149), (replace(RECOVERS, value=0.5), 1.0, 5)],
)
def test_unanimous_cases_need_as_many_traces_as_the_exact_bound(
    limit: GateLimit, rate: float, traces: int
) -> None:
    found = replace(RATE, rate=rate, hits=round(3 * rate), cases=3, traces=3, lo=None, hi=None)
    assert GateCheck(limit=limit, rate=found).needed == traces - 3
    assert 0.05 ** (1 / traces) >= (limit.value if rate else 1 - limit.value)


def test_a_rate_that_is_the_limit_is_never_decided() -> None:
    assert GateCheck(limit=RECOVERS, rate=RATE).needed is None
    certain = GateCheck(limit=replace(RECOVERS, value=1.0), rate=replace(RATE, rate=1.0, hi=1.0))
    assert certain.needed is None


def here(folder: Path, injections: Iterable[dict[str, object]]) -> Shop:
    """A folder with a store of one faulted run per strike."""
    known: list[dict[str, object]] = [
        {"trace": "a", "op": "digit", "model": "m", "class": "recovered"} | each
        for each in injections
    ]
    names: dict[str, Callable[[int, dict[str, object]], dict[str, object]]] = {
        "trajectories": lambda k, s: {
            "trajectory_id": f"t{k}", "parent_id": s["trace"], "model": s["model"],
            "agent": "practice", "world": "fresh", "ended": "final", "source": "fork",
            "campaign": s.get("campaign"),
        },
        "injections": lambda k, s: {
            "injection_id": f"i{k}", "trajectory_id": f"t{k}", "op": s["op"], "family": "V",
            "consumed": True, "sham": False,
        },
        "outcomes": lambda k, s: {
            "injection_id": f"i{k}", "judge_version": 1, "class": s["class"],
            "noticed": s["class"] == "recovered", "baseline_valid": True,
        },
    }  # fmt: skip
    tables = {
        name: make_relation_table(
            name, (make_relation_row(name, make(k, each)) for k, each in enumerate(known))
        )
        for name, make in names.items()
    }
    store = TraceStore(folder / ".stumble")
    if known:
        store.write("made", tables)
    return Shop(folder=folder, book=folder, log=folder, hosts=(), task="none")


def traces(count: int, **more: object) -> list[dict[str, object]]:
    return [{"trace": f"r{k}"} | more for k in range(count)]


def gate(shop: Shop, *options: str, **env: str) -> Said:
    return shop.stumble("gate", *options, env={"GITHUB_STEP_SUMMARY": ""} | env)


def test_thirty_recoveries_of_thirty_pass(tmp_path: Path) -> None:
    said = gate(here(tmp_path, traces(30)), "--min-recovery", "0.9", "--max-silent", "0.1")
    assert said.code == 0, said.err
    assert "pass" in said.out
    assert "recovery at least 0.9: 1.000 [0.905, 1.000] (30 of 30 in 30 traces)" in said.out
    assert "silent at most 0.1: 0.000 [0.000, 0.095] (0 of 30 in 30 traces)" in said.out


def test_a_broken_limit_is_a_finding(tmp_path: Path) -> None:
    lies = traces(30, **{"class": "silent_wrong"})
    said = gate(here(tmp_path, lies), "--max-silent", "0.02", "--min-recovery", "0", "--json")
    assert said.code == 1, said.err
    assert said.json["verdict"] == "fail"
    assert {c["measure"]: c["verdict"] for c in said.json["checks"]} == {
        "silent": "fail",
        "recovery": "pass",
    }


def test_too_little_evidence_says_how_much_is_missing(tmp_path: Path) -> None:
    said = gate(here(tmp_path, traces(10)), "--min-recovery", "0.9")
    assert said.code == 5
    assert "not enough evidence" in said.out
    assert "about 19 more recordings would decide" in said.out


@pytest.mark.parametrize("strikes", [[], traces(3)])
def test_nothing_or_too_few_traces_is_not_enough(
    tmp_path: Path, strikes: list[dict[str, object]]
) -> None:
    said = gate(here(tmp_path, strikes), "--min-recovery", "0.1")
    assert said.code == 5, said.out
    assert ("few_traces" if strikes else "no fault was injected") in said.out


def test_a_campaign_of_another_name_is_suggested(tmp_path: Path) -> None:
    shop = here(tmp_path, traces(5, campaign="nightly"))
    said = gate(shop, "--min-recovery", "0.1", "--campaign", "nigthly")
    assert said.code == 5
    assert "no campaign is called 'nigthly'; did you mean nightly?" in said.out


def test_the_bounds_are_those_of_a_wider_interval_where_more_confidence_is_asked(
    tmp_path: Path,
) -> None:
    mixed = traces(24) + traces(40, **{"class": "masked"})[24:]
    shop = here(tmp_path, mixed)
    for confidence in (0.8, 0.95, 0.99):
        said = gate(shop, "--min-recovery", "0.3", "--confidence", str(confidence), "--json")
        [check] = said.json["checks"]
        n, t = check["n_eff"], float(stats.t.ppf((1 + confidence) / 2, 2 * 39))
        hits = 0.6 * n - 0.5 / (0.6 * n)
        half = t * math.sqrt(hits * (n - hits) / n + t * t / 4) / (n + t * t)
        assert n == pytest.approx(40, abs=1)
        assert check["lo"] == pytest.approx((hits + t * t / 2) / (n + t * t) - half, abs=1e-9)


def test_models_are_judged_apart_and_one_that_fails_fails_all(tmp_path: Path) -> None:
    bad = traces(30, model="weak", **{"class": "crashed"})
    shop = here(tmp_path, traces(30, model="strong") + bad)
    said = gate(shop, "--min-recovery", "0.9")
    assert said.code == 1
    assert [line.split()[0] for line in said.out.splitlines()] == ["pass", "FAIL"]
    assert gate(shop, "--min-recovery", "0.9", "--model", "strong").code == 0


def test_operators_apart(tmp_path: Path) -> None:
    shop = here(tmp_path, traces(30, op="cut") + traces(30, **{"class": "crashed"}))
    said = gate(shop, "--min-recovery", "0.9", "--by", "op")
    assert said.code == 1
    assert ["cut" in line for line in said.out.splitlines()] == [True, False]
    assert gate(shop, "--min-recovery", "0.9", "--op", "cut").code == 0


def test_operators_are_held_against_a_limit_all_at_once(tmp_path: Path) -> None:
    injections = [each for op in ("cut", "digit") for each in traces(30, op=op)]
    said = gate(here(tmp_path, injections), "--min-recovery", "0.5", "--by", "op", "--json")
    for check in said.json["checks"]:
        assert (check["parts"], check["confidence"]) == (2, pytest.approx(0.975))
        assert check["lo"] == pytest.approx(0.0125 ** (1 / 30))


def test_what_ends_right_without_being_noticed_is_no_recovery(tmp_path: Path) -> None:
    shop = here(tmp_path, traces(30, **{"class": "masked"}))
    assert gate(shop, "--min-ends-right", "0.9").code == 0
    assert gate(shop, "--min-recovery", "0.9").code == 1


def test_test_results_and_a_step_summary(tmp_path: Path) -> None:
    shop = here(tmp_path, traces(10) + traces(30, model="<b|", **{"class": "silent_wrong"}))
    summary = tmp_path / "summary.md"
    said = gate(
        shop,
        *("--min-recovery", "0.9", "--junit", "gate.xml"),
        *("--sarif", "gate.sarif", "--source", "ci/faults.toml"),
        GITHUB_STEP_SUMMARY=str(summary),
    )
    assert said.code == 1
    [run] = json.loads((tmp_path / "gate.sarif").read_text())["runs"]
    assert [each["kind"] for each in run["results"]] == ["fail", "open"]
    assert "ci/faults.toml" in json.dumps(run["results"][0]["locations"])
    suite = ElementTree.parse(tmp_path / "gate.xml").getroot()[0]
    assert (suite.get("tests"), suite.get("failures"), suite.get("errors")) == ("2", "1", "1")
    text = summary.read_text()
    assert text.startswith("### stumble gate: FAIL")
    assert "&lt;b\\|" in text


def test_no_fault_at_all_is_an_error_in_test_results() -> None:
    [case] = ElementTree.fromstring(render_junit_suite([], NO_CHECK))[0]
    assert case[0].tag == "error"
    assert "not enough evidence" in render_gate_markdown([])


def write_labels(shop: Shop, silent_read_wrongly: int) -> str:
    """Label 100 runs; so many of the recovered ones went wrong in silence, by the person."""
    rows = [f"i{k},{k >= silent_read_wrongly},true\n" for k in range(100)]
    (shop.folder / "mine.csv").write_text("injection_id,noticed,claims_success\n" + "".join(rows))
    return "mine.csv"


def test_the_judges_own_error_is_in_the_bounds_if_runs_were_labelled(tmp_path: Path) -> None:
    shop = here(tmp_path, traces(100))
    limits = ("--min-recovery", "0.93", "--min-ends-right", "0.93", "--json")
    by_judge = gate(shop, *limits)
    assert by_judge.code == 0
    assert [check["judge_error"] for check in by_judge.json["checks"]] == [None, None]
    said = gate(shop, *limits, "--labels", write_labels(shop, silent_read_wrongly=20))
    assert said.code == 5, "ten of a hundred recoveries were none"
    checks = {check["measure"]: check for check in said.json["checks"]}
    assert checks["ends_right"]["verdict"] == "pass", "the verified end needs no judge"
    assert checks["recovery"]["verdict"] == "unknown"
    error = checks["recovery"]["judge_error"]
    assert (error["positives"], error["negatives"]) == (80, 20)
    assert (error["sensitivity"], error["specificity"]) == (1.0, 0.0)
    assert error["rate"] is None, "who reads all runs alike is no judge"
    assert error["lo"] < 0.2


def test_a_gate_prints_the_rate_behind_the_judge_beside_what_was_read(tmp_path: Path) -> None:
    lies = traces(100)[:50] + traces(100, **{"class": "silent_wrong"})[50:]
    shop = here(tmp_path, lies)
    said = gate(shop, "--min-recovery", "0.1", "--labels", write_labels(shop, 10))
    assert said.code == 0, said.err + said.out
    read, behind = said.out.split("; ")[:2]
    assert "0.500 [" in read
    assert "with the judge's error (sensitivity 1.00 of 40, specificity 0.83 of 60)" in behind
    assert behind.startswith("0.400 [0.2"), "the ten are taken off"
    report = shop.stumble("report", "--labels", "mine.csv")
    assert "With the judge's own error" in report.out
    assert "83 %" in report.out
    assert "With the judge's own error" not in shop.stumble("report").out


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("injection_id\ni1\n", "the column noticed is missing"),
        ("injection_id,noticed\ni1,perhaps\n", "line 2: noticed is 'perhaps'"),
        ("injection_id,noticed\ni1,yes\ni1,no\n", "line 3: i1 has two labels"),
        ("\udcff\udcfei1", "no text in UTF-8"),
        ("injection_id,noticed\ni1,yes\ni9,no\n", "'i9' is no injection of this store"),
    ],
)
def test_bad_labels_are_refused(tmp_path: Path, text: str, said: str) -> None:
    shop = here(tmp_path, traces(5))
    (tmp_path / "mine.csv").write_text(text, errors="surrogateescape")
    found = gate(shop, "--min-recovery", "0.1", "--labels", "mine.csv")
    assert found.code == 2
    assert said in found.err


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ((), "no limit"),
        (("--min-recovery", "90"), "0<=x<=1"),
        (("--max-silent", "0.1", "--confidence", "1"), "0.5<x<1"),
        (("--max-silent", "0.1", "--by", "tool"), "tool"),
    ],
)
def test_bad_limits_are_refused(tmp_path: Path, options: tuple[str, ...], said: str) -> None:
    found = gate(here(tmp_path, []), *options)
    assert found.code == 2
    assert said in found.err
