"""`recovery` and `sham`: what faults did, counted twice and compared."""

import itertools
import math
from collections import Counter
from collections.abc import Iterator, Mapping

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

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
    one,
)
from tests.support.tiers import examples
from traces.store.sql import VIEWS, run_question

SIX = ("recovered", "masked", "honest_fail", "noticed_wrong", "silent_wrong", "crashed")
RATES = ("recovery_rate", "recovery_given_notice", "silent_rate", "handled_rate")


@pytest.fixture(scope="module")
def sql() -> Iterator[Sql]:
    with empty() as connection:
        yield connection


def test_ten_faults_in_five_traces(sql: Sql) -> None:
    silent = {"class": "silent_wrong", "noticed": False}
    store(
        sql,
        [strike(trace=trace) for trace in "abcde"]
        + [strike(trace=trace, **silent) for trace in "abc"]
        + [absorbed(trace=trace) for trace in "de"],
    )
    found = one(sql, "FROM recovery")
    assert [found[name] for name in ("fired", "absorbed", "consumed", "traces")] == [10, 2, 8, 5]
    assert found["recovery_rate"] == near(5 / 8)
    assert found["silent_rate"] == near(3 / 8)
    assert found["handled_rate"] == near(7 / 10)
    assert found["recovery_given_notice"] == 1
    assert (found["lo"], found["hi"]) == (found["recovery_rate_lo"], found["recovery_rate_hi"])
    assert found["reason"] == "conservative"


def test_a_plan_that_never_fires_has_no_rates(sql: Sql) -> None:
    store(sql, [strike(consumed=False, unreached_reason="not_fired") for _ in range(9)])
    found = one(sql, "FROM recovery")
    assert [found[name] for name in RATES] == [None] * 4
    assert (found["fired"], found["reason"]) == (0, "nothing_consumed")


@pytest.mark.parametrize("said", ["honest_fail", "crashed"])
def test_a_class_without_notice_stands_beside_the_bounds_of_those_that_are_unknown(
    sql: Sql, said: str
) -> None:
    unknown = [strike(trace=trace) | {"class": None, "noticed": None} for trace in "abcde"]
    store(sql, [*unknown, strike(noticed=None, steps_after=2) | {"class": said}])
    found = one(sql, "FROM recovery")
    assert (found["consumed"], found["judged"], found["excluded"]) == (6, 0, 6)
    assert (found["silent_rate"], found["silent_rate_of"], found["silent_rate_unknown"]) == (
        0,
        1,
        5,
    )
    assert (found["silent_rate_least"], found["silent_rate_most"]) == (0, near(5 / 6))


def test_four_traces_have_no_interval(sql: Sql) -> None:
    store(sql, [strike(trace=trace) for trace in "abcd" * 9])
    found = one(sql, "FROM recovery")
    assert (found["recovery_rate"], found["lo"], found["hi"]) == (1, None, None)
    assert found["reason"] == "few_traces"


def test_full_recovery_is_bounded_by_its_traces_not_by_its_repeats(sql: Sql) -> None:
    store(sql, [strike(trace=trace) for trace in "abcdefghij" * 20])
    found = one(sql, "FROM recovery")
    assert (found["consumed"], found["n_eff"]) == (200, 10)
    assert (found["lo"], found["hi"]) == (near(0.05 ** (1 / 10)), 1)


def test_a_failing_baseline_counts_for_nothing(sql: Sql) -> None:
    sound = [strike(trace=trace) for trace in "abcdef"]
    store(sql, sound + [strike(baseline_valid=False, **{"class": "crashed"}), strike()])
    found = one(sql, "FROM recovery")
    assert (found["consumed"], found["judged"], found["excluded"]) == (8, 7, 1)
    assert found["recovery_rate"] == 1


@pytest.mark.gate
@pytest.mark.parametrize(
    "unknown",
    [
        {"class": None, "noticed": None},
        {"baseline_valid": None},
        {"consumed": None, "unreached_reason": "undecidable", "class": None},
        {"ended": "harness"},
        {"ended": "diverged"},
    ],
)
def test_what_is_unknown_is_neither_a_pass_nor_a_failure(sql: Sql, unknown: Strike) -> None:
    store(sql, [strike(trace=trace) for trace in "abcdef"] + [strike() | unknown])
    found = one(sql, "FROM recovery")
    assert (found["fired"], found["judged"], found["settled"], found["excluded"]) == (7, 6, 6, 1)
    assert (found["recovery_rate"], found["handled_rate"]) == (1, 1)


def test_a_run_that_ended_before_it_could_see_the_fault_was_not_handled(sql: Sql) -> None:
    store(sql, [strike(), strike(consumed=False, unreached_reason="ended_before")])
    found = one(sql, "FROM recovery")
    assert (found["recovery_rate"], found["handled_rate"]) == (1, 0.5)


def test_models_and_worlds_are_never_pooled(sql: Sql) -> None:
    store(sql, [strike(), strike(model="n"), strike(world="recorded"), strike(model=None)])
    rows = answers(sql, "SELECT model, world, fired FROM recovery ORDER BY ALL")
    assert [tuple(each.values()) for each in rows] == [
        ("m", "fresh", 1),
        ("m", "recorded", 1),
        ("n", "fresh", 1),
        (None, "fresh", 1),
    ]


@pytest.mark.gate
def test_sites_are_pooled_by_name_and_kept_apart_next_door(sql: Sql) -> None:
    sites = [{"place": "http", "persist": "once"}, {"place": "mcp", "persist": "permanent"}]
    store(sql, [strike(**each, detect="D0") for each in sites for _ in range(2)])
    pooled = one(sql, "SELECT fired, places, persists, detects FROM recovery")
    assert list(pooled.values()) == [4, ["http", "mcp"], ["once", "permanent"], ["D0"]]
    apart = answers(sql, "SELECT place, persist, fired FROM recovery_by_site ORDER BY ALL")
    assert [tuple(each.values()) for each in apart] == [
        ("http", "once", 2),
        ("mcp", "permanent", 2),
    ]


def test_shams_have_a_view_of_their_own(sql: Sql) -> None:
    shams = [strike(trace=t, sham=True, op="sham", noticed=t == "a") for t in "abcdef"]
    store(sql, [strike(), *shams])
    assert one(sql, "SELECT op, fired FROM recovery") == {"op": "e1", "fired": 1}
    found = one(sql, "FROM sham")
    assert (found["consumed"], found["noticed"], found["traces"]) == (6, 1, 6)
    assert found["false_notice_rate"] == near(1 / 6)


def test_the_latest_judge_has_the_last_word(sql: Sql) -> None:
    store(sql, [strike()])
    verdicts = [
        {"injection_id": "i0", "judge_version": version, "class": said, "baseline_valid": True}
        for version, said in ((2, "silent_wrong"), (10, "masked"), (9, "crashed"))
    ]
    fill(sql, "outcomes", verdicts)
    assert one(sql, "SELECT masked, silent_wrong, crashed FROM recovery") == {
        "masked": 1,
        "silent_wrong": 0,
        "crashed": 0,
    }


@pytest.mark.parametrize("view", ["recovery", "recovery_by_site"])
def test_another_judge_or_verifier_of_one_recording_is_another_row(sql: Sql, view: str) -> None:
    store(sql, [strike(verifier=by) for by in ("tests", "sums", None)])
    verdicts = [
        {"injection_id": f"i{n}", "judge_version": version, "class": "masked"}
        for n, version in ((0, 1), (1, 1), (1, 2))
    ]
    fill(sql, "outcomes", verdicts)
    found = answers(sql, f"SELECT fired, judge_versions, verifiers FROM {view} ORDER BY ALL")
    assert found == [
        {"fired": 1, "judge_versions": [1], "verifiers": ["tests"]},
        {"fired": 2, "judge_versions": [2], "verifiers": ["sums"]},
    ]


TWO_MEASURES: dict[str, tuple[Strike, Strike]] = {
    "judge": ({"judge_version": 1}, {"judge_version": 2}),
    "verifier": ({"verifier": "sums"}, {"verifier": "tests"}),
}
"""What two measures of the same recordings differ in; all goes well by the first of each."""
ONE_SURVIVAL = {"class": "loud", "curve": "ends_right", "e_from": "assumed", "e": 0.02}


@pytest.fixture(params=TWO_MEASURES)
def twice(sql: Sql, request: pytest.FixtureRequest) -> Sql:
    """A store whose faults and shams were measured twice, with opposite results."""
    well, badly = TWO_MEASURES[request.param]
    said = (well, badly | {"class": "silent_wrong", "noticed": False})
    faults = [strike(trace=trace, detect="D0", **each) for trace in "abcdef" for each in said]
    store(sql, [*faults, *(each | {"sham": True, "detect": None} for each in faults)])
    return sql


def rows_of(sql: Sql, relation: str) -> list[dict[str, object]]:
    """All rows of a view or of a question as it is asked without parameters."""
    if relation in VIEWS:
        return answers(sql, f"FROM {relation} ORDER BY measured_by")
    answer = run_question(sql, relation)
    names = [column[0] for column in answer.description or ()]
    return [dict(zip(names, values, strict=True)) for values in answer.fetchall()]


@pytest.mark.gate
@pytest.mark.parametrize(
    ("relation", "figure", "where"),
    [
        ("recovery", "recovery_rate", {}),
        ("recovery_by_site", "recovery_rate", {}),
        ("survival", "h", ONE_SURVIVAL | {"n": 20}),
        ("p_eff", "h", ONE_SURVIVAL),
        ("sham", "false_notice_rate", {}),
        ("standardised", "standardised", {"rate": "recovered"}),
        ("funnel", "notice_rate", {}),
        ("signal_detection", "hit", {"detect": None}),
        ("signal_detection", "false_alarm", {"detect": "D0"}),
    ],
)
def test_what_was_measured_twice_is_never_pooled(
    twice: Sql, relation: str, figure: str, where: Mapping[str, object]
) -> None:
    found = [row for row in rows_of(twice, relation) if where.items() <= row.items()]
    assert [row[figure] for row in found] == [1, 0]
    assert found[0]["measured_by"] != found[1]["measured_by"]


@pytest.mark.gate
@pytest.mark.parametrize(
    ("question", "figure", "figures"),
    [
        ("recovery_by_op", "recovery_rate", {0, 1}),
        ("intention_to_treat", "silent_rate", {0, 1}),
        ("bootstrap", "rate", {0, 1}),
        ("outcome_matrix", "silent_wrong", {0, 6}),
        ("silent_by_n", "injections", {6}),
        ("zero_events", "judged", {6}),
        ("time_to_recovery", "recovered", {6}),
    ],
)
def test_a_question_keeps_apart_what_was_measured_twice(
    twice: Sql, question: str, figure: str, figures: set[int]
) -> None:
    found = rows_of(twice, question)
    assert {row[figure] for row in found} == figures
    by_measure = {str(row["measured_by"]): row[figure] for row in found}
    # Only what went well by the first measure was recovered from.
    assert len(by_measure) == (1 if question == "time_to_recovery" else 2)


@pytest.mark.parametrize(
    ("measure", "reason"), [("judge", "mixed_judges"), ("verifier", "mixed_verifiers")]
)
def test_a_bench_of_two_measures_has_no_rate(sql: Sql, measure: str, reason: str) -> None:
    injected = [
        strike(trace=trace, persist="once", **each)
        for trace in "abcdef"
        for each in TWO_MEASURES[measure]
    ]
    store(sql, injected)
    answer = run_question(sql, "bench", weights='{"e1 once": 1}')
    names = [column[0] for column in answer.description or ()]
    [row] = [dict(zip(names, values, strict=True)) for values in answer.fetchall()]
    assert (row["judged"], row["faults"], row["reason"]) == (12, 1, reason)
    assert {row[name] for name in ("recovery_rate", "silent_rate", "handled_rate")} == {None}


def test_recovery_of_two_measures_is_timed_by_each(sql: Sql) -> None:
    verdicts = [strike(trace=trace, judge_version=by) for trace in "abcdef" for by in (1, 2)]
    store(sql, verdicts)
    assert [row["recovered"] for row in rows_of(sql, "time_to_recovery")] == [6, 6]


@pytest.mark.gate
def test_resilience_that_was_measured_twice_is_two_rows_and_no_standing(twice: Sql) -> None:
    found = answers(twice, "SELECT recovery_rate AS rate, silent_rate AS silent, judged, settled,"
                    " measured_in FROM resilience ORDER BY measured_by")  # fmt: skip
    told = {"judged": 6, "settled": 6, "measured_in": "fresh"}
    assert found == [{"rate": 1, "silent": 0} | told, {"rate": 0, "silent": 1} | told]
    row = one(twice, "FROM leaderboard")
    for figure in ("recovery_rate", "silent_rate", "survival_20", "survival_50"):
        assert (row[figure], row[f"{figure}_reason"]) == (None, "several_judges")
    assert (row["judged"], row["measured_in"]) == (12, ["fresh"])


@pytest.mark.gate
@pytest.mark.parametrize("more", [{"consumed": None}, {"ended": "harness"}])
def test_a_measure_that_decided_nothing_is_no_second_one(sql: Sql, more: Strike) -> None:
    """What another judge saw and could not judge is in no rate, and takes no rate away."""
    undecided = strike(trace="f", judge_version=2, **more)
    store(sql, [*(strike(trace=trace) for trace in "abcdef"), undecided])
    assert len(answers(sql, "FROM resilience")) == 2
    assert one(sql, "SELECT recovery_rate FROM leaderboard") == {"recovery_rate": 1}


def test_what_nobody_could_notice_is_not_missed_recovery(sql: Sql) -> None:
    """What the judge holds for not noticeable counts if it was noticed all the same."""
    store(sql, [strike(trace=trace) for trace in "abcd"])
    told = {"i0": (True, False), "i1": (False, False), "i2": (False, None), "i3": (False, True)}
    verdicts = [
        {
            "injection_id": id, "judge_version": 1, "baseline_valid": True, "noticed": noticed,
            "class": "recovered" if noticed else "masked", "noticeable": noticeable,
        }
        for id, (noticed, noticeable) in told.items()
    ]  # fmt: skip
    fill(sql, "outcomes", verdicts)
    found = one(sql, "SELECT judged, noticeable, recovery_rate FROM recovery")
    assert found == {"judged": 4, "noticeable": 3, "recovery_rate": near(1 / 3)}


def test_forks_of_forks_of_one_recording_are_one_trace(sql: Sql) -> None:
    """Five prefixes of one recording are no five samples of what an agent does."""
    store(sql, [strike(trace=trace) for trace in "abcdef"])
    assert one(sql, "SELECT traces, reason FROM recovery") == {
        "traces": 6,
        "reason": "conservative",
    }
    had = answers(sql, "SELECT * EXCLUDE (recorded_at) FROM trajectories")
    forks = [{"trajectory_id": b, "parent_id": a} for a, b in itertools.pairwise("abcdef")]
    fill(sql, "trajectories", [*had, *forks])
    found = one(sql, "FROM recovery")
    assert (found["traces"], found["lo"], found["reason"]) == (1, None, "few_traces")
    assert one(sql, "SELECT DISTINCT trace FROM judged_injections") == {"trace": "a"}


def test_who_is_its_own_ancestor_does_not_hang_a_store(sql: Sql) -> None:
    store(sql, [strike(trace="a")])
    had = answers(sql, "SELECT * EXCLUDE (recorded_at) FROM trajectories")
    ring = [{"trajectory_id": "a", "parent_id": "b"}, {"trajectory_id": "b", "parent_id": "a"}]
    fill(sql, "trajectories", [*had, *ring])
    assert one(sql, "SELECT trace FROM judged_injections") == {"trace": "a"}


CLASS = st.sampled_from([*SIX, "unreached", None])
STRIKE = st.builds(
    lambda fate, said, **told: (
        strike(**told)
        | fate
        | {"class": None if said == "unreached" and fate["consumed"] else said}
    ),
    fate=st.sampled_from(
        [
            {"consumed": True},
            {"consumed": False, "unreached_reason": "absorbed"},
            {"consumed": False, "unreached_reason": "ended_before"},
            {"consumed": False, "unreached_reason": "not_fired"},
            {"consumed": None, "unreached_reason": "no_site"},
            {"consumed": None, "unreached_reason": "undecidable"},
            {"consumed": None},
        ]
    ),
    said=CLASS,
    op=st.sampled_from(["e1", "v4"]),
    trace=st.sampled_from([*"abcdefgh"]),
    model=st.sampled_from(["m", None]),
    noticed=st.sampled_from([True, False, None]),
    baseline_valid=st.sampled_from([True, True, True, False, None]),
    ended=st.sampled_from(["final", "final", "crash", "harness", None]),
    sham=st.sampled_from([False, False, None, True]),
)


@pytest.mark.gate
@settings(max_examples=examples(60), deadline=None)
@given(strikes=st.lists(STRIKE, max_size=60))
def test_any_store_is_counted_right(sql: Sql, strikes: list[Strike]) -> None:
    store(sql, strikes)
    rows = {(each["op"], each["model"]): each for each in answers(sql, "FROM recovery")}
    faults = [each for each in strikes if not each["sham"]]
    assert rows.keys() == {(each["op"], each["model"]) for each in faults}
    for key, found in rows.items():
        mine = [each for each in faults if (each["op"], each["model"]) == key]
        expected = counted(mine)
        assert {name: found[name] for name in expected} == expected
        assert sum(found[name] for name in SIX) == found["judged"]  # type: ignore[misc]
        sound(found)


def counted(injections: list[Strike]) -> dict[str, object]:
    """The same rules in another language."""
    states = Counter(state(each) for each in injections)
    known = [each for each in injections if each["ended"] != "harness"]
    verdicts = [
        each
        for each in known
        if state(each) == "consumed"
        and each["baseline_valid"]
        and (each["noticed"] is not None or each["class"] != "honest_fail")
        and each["class"] in SIX
    ]
    lost = [
        each
        for each in known
        if state(each) in ("absorbed", "ended_before") and each["baseline_valid"] is not False
    ]
    decided = [
        each
        for each in known
        if state(each) == "consumed" and each["baseline_valid"] and each["class"] in SIX
    ]
    settled = len(decided) + len(lost)
    classes = Counter(each["class"] for each in decided)
    handled = sum(classes[name] for name in ("recovered", "masked", "honest_fail"))
    handled += sum(state(each) == "absorbed" for each in lost)
    return {
        "fired": states.total() - states["unfired"],
        "absorbed": states["absorbed"],
        "consumed": states["consumed"],
        "judged": len(verdicts),
        "settled": settled,
        "recovery_rate": share(classes["recovered"], len(decided)),
        "silent_rate": share(classes["silent_wrong"], len(decided)),
        "handled_rate": share(handled, settled),
        "traces": len({each["trace"] for each in decided}),
    }


def state(injection: Mapping[str, object]) -> str:
    reason = injection.get("unreached_reason")
    if reason in ("not_fired", "no_site"):
        return "unfired"
    if injection["consumed"]:
        return "consumed"
    return str(reason) if reason in ("absorbed", "ended_before") else "undecided"


def share(part: int, whole: int) -> object:
    return near(part / whole) if whole else None


def sound(found: Mapping[str, object]) -> None:
    """No NaN, and every interval holds its rate."""
    numbers = {name: each for name, each in found.items() if isinstance(each, float)}
    assert not [name for name, each in numbers.items() if math.isnan(each) or math.isinf(each)]
    for name in RATES:
        if f"{name}_lo" in numbers:
            low, high = numbers[f"{name}_lo"], numbers[f"{name}_hi"]
            assert 0 <= low <= numbers[name] + 1e-12
            assert numbers[name] - 1e-12 <= high <= 1
