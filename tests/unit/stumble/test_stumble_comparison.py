"""A candidate against a baseline: who is held against whom, when there is an answer, and which."""

import json
from collections.abc import Iterator, Sequence
from copy import replace
from xml.etree import ElementTree

import pytest

from stumble.errors import UsageError
from stumble.experiments.noninferiority.arm_evidence import BASELINE_PREFIX, ExperimentArm
from stumble.experiments.noninferiority.arm_pairs import ArmFilter, pair_arms
from stumble.experiments.noninferiority.comparison import (
    ArmComparison,
    combine_answers,
    compare_measure,
    plan_looks,
)
from stumble.experiments.noninferiority.comparison_report import (
    comparison_to_dict,
    comparisons_to_markdown,
    format_comparisons,
    list_comparison_cases,
)
from stumble.experiments.noninferiority.decision import (
    ComparisonAnswer,
    DifferenceBounds,
    decide_answer,
    find_worst_answer,
)
from stumble.experiments.noninferiority.sample_counts import ComparisonSample
from stumble.experiments.seal_checks import find_mixed_verifiers
from stumble.experiments.seals.analysis_terms import AnalysisTerms, Measure
from stumble.experiments.seals.plan_progress import (
    PlanUnit,
    compute_look_sizes,
    count_leading_complete,
    describe_missing_runs,
    order_plan_roots,
)
from stumble.gate.junit import render_junit_suite
from tests.support.stores.in_memory_relations import (
    Sql,
    empty,
    fill,
)

ARM = ExperimentArm(
    campaign="new", agent="a", model="m", world="fresh", roots=9, fired=9, settled=9, again=0,
    seals=("",), judge_versions=(1,), verifiers=("v",),
)  # fmt: skip
OLD = replace(ARM, campaign="old")


@pytest.mark.parametrize(
    ("lower", "upper", "gaps", "answer"),
    [
        (-0.09, 0.1, (), "pass"),
        (-0.1, 0.1, (), "inconclusive"),  # the margin itself is not kept
        (-0.3, -0.1, (), "inconclusive"),
        (-0.3, -0.11, (), "fail"),
        (-0.3, 0.3, (), "inconclusive"),
        (None, None, (), "inconclusive"),
        (0.2, 0.3, ("too few",), "inconclusive"),
        (-0.9, -0.8, ("too few",), "inconclusive"),
    ],
)
def test_the_bound_decides_and_a_gap_leaves_it_open(
    lower: float | None, upper: float | None, gaps: tuple[str, ...], answer: ComparisonAnswer
) -> None:
    bounds = DifferenceBounds(difference=0.0, lower=lower, upper=upper)
    assert decide_answer(bounds, 0.1, gaps) == answer


def test_the_worst_answer_counts_and_none_is_no_pass() -> None:
    assert find_worst_answer(["pass", "pass"]) == "pass"
    assert find_worst_answer(["pass", "inconclusive"]) == "inconclusive"
    assert find_worst_answer(["pass", "inconclusive", "fail"]) == "fail"
    assert find_worst_answer(["fail", "error"]) == "error"
    assert find_worst_answer([]) == "inconclusive"


def test_a_baseline_is_found_by_any_of_its_names() -> None:
    sealed = replace(OLD, seals=("0123456789abcdef",))
    for name in ("old", "0123456789"):
        assert pair_arms([ARM, sealed], name, ArmFilter()) == ((ARM, sealed),)
    naive = replace(ARM, model="naive")
    assert pair_arms([ARM, naive, OLD], "naive", ArmFilter(campaign="new")) == ((ARM, naive),)
    theirs = replace(ARM, campaign=f"{BASELINE_PREFIX}new")
    assert pair_arms([ARM, theirs], "anywhere", ArmFilter()) == ((ARM, theirs),)


def test_each_model_has_the_baseline_that_is_like_it() -> None:
    others = replace(ARM, model="n"), replace(OLD, model="n")
    found = pair_arms([ARM, OLD, *others], "old", ArmFilter())
    assert [(c.model, b.model) for c, b in found] == [("m", "m"), ("n", "n")]


@pytest.mark.parametrize(
    ("arms", "against", "said"),
    [
        ([ARM, OLD], "odl", "no campaign, seal, agent or model is called 'odl'.*old"),
        ([OLD], "old", "nothing to hold against old"),
        ([ARM, OLD, replace(ARM, campaign="newer")], "old", "Say --campaign: new, newer"),
        ([ARM, replace(OLD, world="recorded")], "old", "in no world of the kind"),
        (
            [ARM, replace(OLD, model="x"), replace(OLD, model="y")],
            "old",
            "the name of 2 arms",
        ),
    ],
)
def test_a_name_of_nothing_or_of_several_is_refused(
    arms: Sequence[ExperimentArm], against: str, said: str
) -> None:
    with pytest.raises(UsageError, match=said):
        pair_arms(arms, against, ArmFilter())


def test_ends_that_two_verifiers_judged_are_not_compared() -> None:
    assert list(find_mixed_verifiers(ARM, OLD)) == []
    [other] = find_mixed_verifiers(ARM, replace(OLD, verifiers=("w",)))
    assert "judged by different verifiers" in other
    several = replace(ARM, verifiers=("v", "w")), replace(OLD, verifiers=("v", "w"))
    assert list(find_mixed_verifiers(*several)) == []
    [second] = find_mixed_verifiers(ARM, replace(OLD, has_second_verifier=True))
    assert "the baseline on the same recordings" in second


def unit(task: str, done: int = 3, **more: object) -> PlanUnit:
    given: dict[str, object] = {"root": f"r-{task}", "model": None, "wanted": 3, **more}
    return PlanUnit(task=task, done=done, **given)  # type: ignore[arg-type]


def test_a_look_sees_the_first_roots_of_the_plan_that_are_complete() -> None:
    units = (unit("a"), unit("b"), unit("c", 2), unit("d"))
    order = order_plan_roots(units, by_task=False)
    assert order == (("r-a", True), ("r-b", True), ("r-c", False), ("r-d", True))
    assert count_leading_complete(order) == 2
    both = (unit("a"), unit("b"), unit("a", 1, root="r2"), unit("b", root="r3"))
    assert order_plan_roots(both, by_task=True) == (("a", False), ("b", True))
    assert count_leading_complete(order_plan_roots(both, by_task=True)) == 0
    assert order_plan_roots((unit("a", root=None, wanted=None),), by_task=False) == (("?0", False),)


def test_what_is_missing_of_a_plan_is_counted() -> None:
    assert describe_missing_runs([unit("a")]) is None
    assert describe_missing_runs([unit("a"), unit("b", 1)]) == "4 of 6 runs are done"
    new = unit("c", 0, root=None, wanted=None)
    assert describe_missing_runs([unit("a"), new]) == (
        "3 of 3 runs are done, and 1 traces are not recorded yet"
    )


def test_looks_are_whole_roots_and_the_last_has_all_that_is_left() -> None:
    assert compute_look_sizes((0.25, 0.5, 0.75, 1.0), 6) == (2, 3, 5, 6)
    assert compute_look_sizes((0.1, 0.2, 1.0), 3) == (1, 3)
    assert compute_look_sizes((1.0,), 0) == ()
    assert compute_look_sizes((0.1 + 0.2, 1.0), 10) == (3, 10)
    looks = plan_looks(AnalysisTerms(margin=0.1, looks=(0.5, 1.0)), 8)
    assert [(look.number, look.roots, look.of) for look in looks] == [(1, 4, 2), (2, 8, 2)]
    assert looks[-1].spent == 0.05


@pytest.fixture(scope="module")
def sql() -> Iterator[Sql]:
    with empty() as connection:
        yield connection


def store(sql: Sql, outcomes: Sequence[tuple[str, str | None]]) -> None:
    """For each root what the baseline and the candidate came to; None is not known."""
    known = [
        (f"{campaign}{n}", campaign, f"r{n:03}", outcome)
        for n, pair in enumerate(outcomes)
        for campaign, outcome in zip(("old", "new"), pair, strict=True)
    ]
    run = {"agent": "a", "model": "m", "world": "fresh", "source": "fork", "ended": "final"}
    fill(sql, "trajectories", [
        run | {"trajectory_id": id, "campaign": campaign, "parent_id": root, "cell": "x"}
        for id, campaign, root, _ in known
    ])  # fmt: skip
    fill(sql, "injections", [
        {"injection_id": id, "trajectory_id": id, "op": "digit", "consumed": True, "sham": False}
        for id, *_ in known
    ])  # fmt: skip
    fill(sql, "outcomes", [
        {"injection_id": id, "class": outcome, "judge_version": 1, "noticed": False,
         "baseline_valid": True}
        for id, _, _, outcome in known
    ])  # fmt: skip


SAME, LOST = ("masked", "masked"), ("masked", "silent_wrong")
TERMS = AnalysisTerms(margin=0.2)


def held(
    sql: Sql,
    terms: AnalysisTerms = TERMS,
    measure: Measure = "ends-right",
    complete: int | None = None,
) -> ArmComparison:
    """The comparison of what is stored; with `complete` as a sealed plan of 40 roots."""
    order = None
    if complete is not None:
        plan = tuple((f"r{n:03}", n < complete) for n in range(40))
        order = {True: plan, False: plan}
    return compare_measure(
        sql, ARM, OLD, measure, terms, order=order, seal="5ea1" if order else None
    )


@pytest.mark.gate
def test_as_good_passes_and_much_worse_fails(sql: Sql) -> None:
    store(sql, [SAME] * 20)
    assert (held(sql).answer, held(sql, AnalysisTerms(margin=0.1)).answer) == (
        "pass",
        "inconclusive",
    )
    store(sql, [LOST] * 15 + [SAME] * 5)
    for measure in ("ends-right", "silent", "handled"):
        found = held(sql, measure=measure)
        assert found.answer == "fail"
    silent = comparison_to_dict(held(sql, measure="silent"))
    assert silent["difference"] == 0.75
    assert isinstance(silent["lo"], float)
    assert isinstance(silent["hi"], float)
    assert 0.2 < silent["lo"] < 0.75 < silent["hi"]
    assert silent["candidate"]["rate"] == 0.75  # type: ignore[index]


@pytest.mark.gate
def test_few_roots_and_unknown_outcomes_leave_it_open_and_say_why(sql: Sql) -> None:
    store(sql, [SAME] * 4)
    assert "below 5" in held(sql).reasons[0]
    store(sql, [])
    assert held(sql).reasons == ("nothing is known of both arms",)
    store(sql, [SAME] * 34 + [("masked", None)] * 6)
    found = held(sql)
    assert found.answer == "inconclusive"
    [why] = found.reasons
    assert "15% of the outcomes are unknown" in why
    assert "the difference would be -0.150, were all in its favour +0.000" in why
    assert held(sql, AnalysisTerms(margin=0.2, max_unknown=0.2)).answer == "pass"


@pytest.mark.gate
def test_a_sealed_plan_is_looked_at_as_it_was_said(sql: Sql) -> None:
    """Nothing before its first look, and of what came after a look nothing changes its answer."""
    terms = AnalysisTerms(margin=0.3, looks=(0.25, 0.5, 1.0), spending="pocock")
    store(sql, [SAME] * 40)
    early = held(sql, terms, complete=9)
    assert (early.answer, early.look, early.bounds.difference) == ("inconclusive", None, None)
    assert early.reasons == (
        "look 1 of 3 is after the first 10 roots of the plan, of which 9 are complete",
    )
    store(sql, [SAME] * 20 + [LOST] * 20)
    for complete in (20, 25, 40):
        found = held(sql, terms, complete=complete)
        assert found.look is not None
        assert (found.answer, found.look.number, found.sample.roots) == ("pass", 2, 20)
    store(sql, [LOST] * 10 + [SAME] * 30)
    failed = held(sql, terms, complete=40)
    assert failed.look is not None
    assert (failed.answer, failed.look.number) == ("fail", 1)


@pytest.mark.gate
def test_each_of_several_measures_has_to_pass(sql: Sql) -> None:
    store(sql, [("masked", "honest_fail")] * 30)
    terms = AnalysisTerms(margin=0.2, measures=("handled", "ends-right"))
    found = [held(sql, terms, measure) for measure in terms.measures]
    assert [each.answer for each in found] == ["pass", "fail"]
    assert combine_answers(found) == "fail"


@pytest.mark.gate
def test_what_reads_test_results_sees_only_a_pass_as_one(sql: Sql) -> None:
    store(sql, [SAME] * 20)
    passed, wrong = held(sql), replace(held(sql), answer="error", reasons=("a | <b>",))
    found = [passed, held(sql, AnalysisTerms(margin=0.1)), replace(passed, answer="fail"), wrong]
    suite = ElementTree.fromstring(render_junit_suite(list_comparison_cases(found), ""))[0]
    assert {key: suite.get(key) for key in ("tests", "failures", "errors")} == {
        "tests": "4",
        "failures": "1",
        "errors": "2",
    }
    assert "not sealed" in suite[1][0].get("message", "")
    text = comparisons_to_markdown(found)
    assert text.startswith("### stumble gate: ERROR")
    assert "a \\| &lt;b>" in text
    said = "\n".join(format_comparisons(found))
    assert [word for word in ("PASS", "FAIL", "INCONCLUSIVE", "ERROR") if word in said] == [
        "PASS",
        "FAIL",
        "INCONCLUSIVE",
        "ERROR",
    ]
    assert (
        json.loads(json.dumps([comparison_to_dict(each) for each in found]))[0]["answer"] == "pass"
    )
    [case] = ElementTree.fromstring(render_junit_suite([], "no such campaign"))[0]
    assert case[0].get("message") == "no such campaign"


def test_the_share_of_the_unknown_counts_what_one_arm_lacks() -> None:
    assert ComparisonSample(cells=8, known=6, left_out=2).unknown == 0.4
    assert ComparisonSample().unknown == 0
