"""Findings of a check: counted, the worst first, and what is unknown is never a pass."""

from hypothesis import example, given
from hypothesis import strategies as st

from stumble.check.behaviour import WEAKNESSES, Behaviour, FaultedRun
from stumble.check.fault_choice import ChosenFault, afford_faults
from stumble.check.findings import BEHAVIOUR_WORDS, build_cells, list_findings
from stumble.check.page import check_to_dict, format_check_lines, list_check_cases
from stumble.check.result import CheckResult
from stumble.check.touch import AgentTouch
from stumble.errors import ExitCode

BEHAVIOURS: tuple[Behaviour, ...] = tuple(BEHAVIOUR_WORDS)
RUNS = st.lists(
    st.builds(
        FaultedRun,
        injection=st.text("ab0", min_size=1),
        run=st.just("r"),
        tool=st.sampled_from(("book", "read")),
        fault=st.sampled_from(("lost_ack", "digit")),
        behaviour=st.sampled_from(BEHAVIOURS),
        reason=st.just("why"),
    ),
    max_size=12,
)


def make_result(runs: list[FaultedRun], **facts: object) -> CheckResult:
    given: dict[str, object] = {
        "name": "c", "touch": AgentTouch(), "clean": 3, "clean_failed": 0, "left_out": (),
        "notes": (), "seconds": 1.0, "runs": len(runs), "cost": 0.0,
    }  # fmt: skip
    return CheckResult(cells=build_cells(runs), **(given | facts))  # type: ignore[arg-type]


@given(RUNS)
def test_every_weakness_is_a_finding_with_its_counts_and_nothing_else_is(
    runs: list[FaultedRun],
) -> None:
    found = list_findings(build_cells(runs))
    assert sum(each.times for each in found) == sum(run.behaviour in WEAKNESSES for run in runs)
    assert [WEAKNESSES.index(each.behaviour) for each in found] == sorted(
        WEAKNESSES.index(each.behaviour) for each in found
    )
    for each in found:
        assert each.sentence.count(f": {each.times} of {each.judged}") == 1


@given(RUNS)
def test_bounds_hold_the_share_of_good_runs_whatever_the_unknown_ones_are(
    runs: list[FaultedRun],
) -> None:
    for cell in build_cells(runs):
        minimum, most = cell.bounds
        assert 0 <= minimum <= most <= 1
        assert (minimum == most) == (cell.counts["unknown"] == 0)
        assert cell.judged + cell.counts["unknown"] == len(cell.runs)


def make_run(tool: str, behaviour: Behaviour) -> FaultedRun:
    return FaultedRun(injection="i", run="r", tool=tool, fault="digit", behaviour=behaviour)


@given(RUNS)
@example([*[make_run("book", "handles")] * 3, make_run("read", "unknown")])
@example([make_run("book", "handles")] * 3)
def test_nothing_found_needs_a_judged_run_of_each_fault(runs: list[FaultedRun]) -> None:
    result = make_result(runs)
    if result.code == ExitCode.OK:
        assert all(cell.judged for cell in result.cells)
        assert not result.findings
    assert (result.code == ExitCode.FINDING) == bool(result.findings)
    assert make_result(runs, stopped_by="Ctrl-C").code != ExitCode.OK
    assert make_result(runs, notes=("broken",)).code != ExitCode.OK
    is_judged = any(cell.judged for cell in result.cells)
    unsteady = make_result(runs, clean_failed=1)
    assert unsteady.code == (ExitCode.FINDING if is_judged else ExitCode.NOT_ENOUGH)
    assert ("cannot be told" in "\n".join(format_check_lines(unsteady))) != is_judged


@given(RUNS)
def test_page_data_and_cases_agree(runs: list[FaultedRun]) -> None:
    result = make_result(runs)
    lines, data, cases = "\n".join(format_check_lines(result)), check_to_dict(result), None
    for each in result.findings:
        assert each.sentence in lines
    assert data["exit"] == result.code
    cases = list_check_cases(result)
    assert len(cases) == len(result.cells)
    for case, cell in zip(cases, result.cells, strict=True):
        is_bad = any(cell.counts[name] for name in WEAKNESSES)
        assert case.verdict == ("fail" if is_bad else "pass" if cell.judged else "unknown")


FAULTS = st.lists(
    st.builds(
        ChosenFault,
        key=st.tuples(
            st.sampled_from(("book", "read", "list")),
            st.sampled_from(("lost_ack", "digit", "truncate")),
        ),
        table=st.just({}),
    ),
    max_size=9,
    unique_by=lambda fault: fault.key,
)


@given(FAULTS, st.integers(0, 40), st.integers(1, 3))
def test_faults_that_are_paid_for_are_the_first_and_cost_no_more(
    faults: list[ChosenFault], runs: int, repeats: int
) -> None:
    paid = afford_faults(faults, runs, {}, repeats=repeats, controls=3)
    assert list(paid) == faults[: len(paid)]
    tools = {each.key[0] for each in paid}
    if len(paid) > 1:
        assert len(paid) * repeats + len(tools) * 3 <= runs
    made = {each.key: repeats for each in faults}
    assert list(afford_faults(faults, 0, made, repeats=repeats, controls=3)) == faults
