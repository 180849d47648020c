"""What a fork prints of one run is what the rates count of it, and the reason is the true one."""

from collections.abc import Iterator
from copy import replace
from typing import get_args

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scenarios.world import VERIFIER_FAILED
from stumble.runs.fork_report import join_verdicts
from stumble.verdicts.exclusions import (
    Exclusion,
    explain_exclusion,
    find_exclusion,
    suggest_remedy,
)
from tests.support.stores.in_memory_relations import (
    Sql,
    answers,
    empty,
    fill,
)
from traces.model import Outcome

GOOD = Outcome(
    injection_id="r/1", judge_version=10, twins=("a", "b", "c"), outcome="silent_wrong",
    consumed=True, noticed=False, passed=False, claims_success=True, baseline_valid=True,
)  # fmt: skip
TRIPLE = st.sampled_from([True, True, False, None])
CLASSES = st.sampled_from(
    ["recovered", "masked", "honest_fail", "noticed_wrong", "silent_wrong", "crashed", None]
)
REACHED = st.builds(
    lambda **facts: replace(GOOD, **facts),
    outcome=CLASSES,
    noticed=TRIPLE,
    baseline_valid=TRIPLE,
    twins=st.sampled_from([("a", "b", "c"), ("a",), ()]),
    steps_after=st.sampled_from([None, 3]),
)
MISSED = st.builds(
    lambda why, **facts: replace(
        GOOD, outcome="unreached", consumed=False, unreached_reason=why, **facts
    ),
    why=st.sampled_from(["absorbed", "ended_before"]),
    baseline_valid=TRIPLE,
)
UNDECIDED = st.builds(
    lambda **facts: replace(
        GOOD, outcome=None, consumed=None, unreached_reason="undecidable", **facts
    ),
    baseline_valid=TRIPLE,
)
VERDICT = REACHED | MISSED | UNDECIDED
ENDED = st.sampled_from(["final", "final", "crash", "budget", "diverged", "harness"])


@pytest.fixture(scope="module")
def sql() -> Iterator[Sql]:
    with empty() as connection:
        yield connection


@pytest.mark.gate
@settings(max_examples=8, deadline=None)
@given(runs=st.lists(st.tuples(VERDICT, ENDED), min_size=1, max_size=30))
def test_a_run_and_the_store_give_the_same_reason(
    sql: Sql, runs: list[tuple[Outcome, str]]
) -> None:
    store(sql, runs)
    rows = answers(sql, "SELECT excluded FROM judged_injections ORDER BY trajectory_id")
    assert [row["excluded"] for row in rows] == [
        find_exclusion(verdict, ended)  # type: ignore[arg-type]
        for verdict, ended in runs
    ]


def store(sql: Sql, runs: list[tuple[Outcome, str]]) -> None:
    ids = [f"t{n:02}" for n in range(len(runs))]
    run: dict[str, object] = {"parent_id": "p", "source": "fork", "condition": "fault"}
    fill(
        sql,
        "trajectories",
        [
            run | {"trajectory_id": id, "ended": ended}
            for id, (_, ended) in zip(ids, runs, strict=True)
        ],
    )
    pairs = [(id, verdict) for id, (verdict, _) in zip(ids, runs, strict=True)]
    fill(
        sql,
        "injections",
        [
            {"injection_id": id, "trajectory_id": id, "op": "digit", "sham": False}
            | {"consumed": one.consumed, "unreached_reason": one.unreached_reason}
            for id, one in pairs
        ],
    )
    names = ("noticed", "passed", "claims_success", "baseline_valid", "steps_after")
    fill(
        sql,
        "outcomes",
        [
            {
                "injection_id": id,
                "judge_version": 10,
                "class": one.outcome,
                "twins": list(one.twins),
            }
            | {name: getattr(one, name) for name in names}
            for id, one in pairs
        ],
    )


def test_few_twins_are_not_called_a_missing_verifier() -> None:
    few = replace(GOOD, twins=("a", "b"), noticed=None, outcome=None)
    assert find_exclusion(few, "final") == "few_twins"
    assert explain_exclusion("few_twins", few) == "2 of 3 clean twins came to an end"


def test_no_verdict_names_the_fact_that_is_missing() -> None:
    verdict = replace(GOOD, outcome=None, passed=None, reasons={"passed": "exit 3: no book"})
    assert find_exclusion(verdict, "final") == "no_verdict"
    assert explain_exclusion("no_verdict", verdict) == "exit 3: no book"


def test_several_faults_have_the_verdict_of_those_that_reached_the_agent() -> None:
    absorbed = replace(GOOD, outcome="unreached", consumed=False, noticed=None, evidence=("late",))
    both = join_verdicts([absorbed, replace(GOOD, evidence=("1 -> 2",))])
    assert both is not None
    assert (both.outcome, both.consumed, both.noticed) == ("silent_wrong", True, False)
    assert both.evidence == ("late", "1 -> 2")
    seen = join_verdicts([GOOD, replace(GOOD, outcome="noticed_wrong", noticed=True)])
    assert seen is not None
    assert (seen.outcome, seen.noticed) == ("noticed_wrong", True)
    unknown = join_verdicts([GOOD, replace(GOOD, outcome=None)])
    assert unknown is not None
    assert unknown.outcome is None
    assert join_verdicts([absorbed]) == absorbed
    assert join_verdicts([]) is None


@pytest.mark.parametrize("exclusion", ["baseline_unknown", "no_verdict"])
def test_a_verifier_that_failed_is_mended_and_not_given(exclusion: Exclusion) -> None:
    reasons = {"passed": f"{VERIFIER_FAILED}: exit 2"}
    verdict = replace(GOOD, outcome=None, passed=None, baseline_valid=None, reasons=reasons)
    assert "mend the verifier" in suggest_remedy(exclusion, verdict)


@pytest.mark.parametrize("twins", [3, 5, 10])
@pytest.mark.parametrize("exclusion", get_args(Exclusion.__value__))
def test_no_remedy_is_what_was_done_already(exclusion: Exclusion, twins: int) -> None:
    """A run with three or more twins is not sent away to make three."""
    base = Outcome(
        injection_id="i", judge_version=1, twins=tuple(map(str, range(twins))), consumed=True
    )
    for facts in (
        {"passed": None},
        {"passed": False, "claims_success": None},
        {"passed": False, "claims_success": True, "noticed": None},
        {"passed": True, "claims_success": False, "noticed": False},
    ):
        text = suggest_remedy(exclusion, replace(base, **facts))
        assert "--twins 3" not in text
        assert text
        if facts["passed"] is None and exclusion == "no_verdict":
            assert "--verify" in text
