"""Comparison of a candidate with a baseline: the evidence, the bounds and the answer.

A sealed candidate is analysed by the terms of its seal: at its looks, in the order of its plan,
with its margin, measures and alpha. One that is not sealed has one look, at all roots.
"""

from collections.abc import Iterator, Mapping, Sequence
from copy import replace
from typing import TYPE_CHECKING

from msgspec import Struct

from stumble.experiments.noninferiority.arm_evidence import (
    ExperimentArm,
    RootEvidence,
    query_difference_bounds,
    query_roots,
)
from stumble.experiments.noninferiority.decision import (
    ComparisonAnswer,
    DifferenceBounds,
    decide_answer,
    find_worst_answer,
)
from stumble.experiments.noninferiority.sample_counts import (
    ComparisonSample,
    describe_movement,
    summarize_roots,
)
from stumble.experiments.seals.alpha_spending import compute_look_levels, compute_spent_alpha
from stumble.experiments.seals.analysis_terms import AnalysisTerms, Measure
from stumble.experiments.seals.plan_progress import compute_look_sizes, count_leading_complete

if TYPE_CHECKING:
    import duckdb

type PlanOrder = Sequence[tuple[str | None, bool]]
"""Roots or tasks in the order of the plan, each with whether it is complete."""


class InterimLook(Struct, frozen=True, kw_only=True):
    """One analysis of several."""

    number: int
    of: int
    roots: int
    """Roots of the plan after which it takes place."""
    planned: int
    level: float
    """Its nominal one-sided level."""
    spent: float
    """Alpha spent, including all looks before it."""


class ArmComparison(Struct, frozen=True, kw_only=True):
    """One measure of one candidate against its baseline."""

    measure: Measure
    candidate: ExperimentArm
    baseline: ExperimentArm
    terms: AnalysisTerms
    seal: str | None
    """The digest of the candidate's seal; None if it is not sealed."""
    answer: ComparisonAnswer
    bounds: DifferenceBounds
    sample: ComparisonSample
    look: InterimLook | None = None
    """The look that decided, or the last one reached."""
    reasons: tuple[str, ...] = ()
    """Why there is no answer, or the errors."""
    judge: int | None = None
    """The version of the judge whose verdicts are compared."""
    by_today: "ArmComparison | None" = None
    """The same by the judge of this version, if another was sealed."""


def compare_measure(
    connection: "duckdb.DuckDBPyConnection",
    candidate: ExperimentArm,
    baseline: ExperimentArm,
    measure: Measure,
    terms: AnalysisTerms,
    *,
    seal: str | None = None,
    order: Mapping[bool, PlanOrder] | None = None,
    gaps: Sequence[str] = (),
) -> ArmComparison:
    """Compare one measure.

    `order` has the roots of a sealed plan by whether tasks are paired (True) or roots (False);
    without it all roots are one look. `gaps` are reasons known beforehand.
    """
    roots = query_roots(connection, candidate, baseline, measure)
    comparison = ArmComparison(
        measure=measure,
        candidate=candidate,
        baseline=baseline,
        terms=terms,
        seal=seal,
        answer="inconclusive",
        bounds=DifferenceBounds(difference=None, lower=None, upper=None),
        sample=summarize_roots(roots),
        reasons=tuple(gaps),
    )
    if order is None:
        return _compare_roots(connection, comparison, roots, terms.alpha)
    by_task = bool(roots) and roots[0].paired_by == "task"
    return _compare_at_looks(
        connection, comparison, {root.unit: root for root in roots}, order[by_task]
    )


def _compare_at_looks(
    connection: "duckdb.DuckDBPyConnection",
    found: ArmComparison,
    roots: Mapping[str, RootEvidence],
    order: PlanOrder,
) -> ArmComparison:
    """Return the comparison at the first look that decides, else at the last one reached."""
    complete, gaps = count_leading_complete(order), found.reasons
    for look in plan_looks(found.terms, len(order)):
        if look.roots > complete:
            return replace(found, reasons=(*gaps, _describe_waiting_look(look, complete)))
        planned = _select_planned_roots(roots, order[: look.roots])
        found = replace(found, look=look, sample=summarize_roots(planned), reasons=gaps)
        found = _compare_roots(connection, found, planned, look.level)
        if found.answer in ("pass", "fail"):
            return found
    return found


def _select_planned_roots(
    roots: Mapping[str, RootEvidence], order: PlanOrder
) -> list[RootEvidence]:
    """Select the evidence of planned roots, and of all unpaired roots of the baseline."""
    planned = {name for name, _ in order}
    return [
        root
        for name, root in roots.items()
        if name in planned or (root.paired_by is None and not root.candidate_runs)
    ]


def plan_looks(terms: AnalysisTerms, planned: int) -> tuple[InterimLook, ...]:
    """Return the looks of a plan with this number of roots."""
    sizes = compute_look_sizes(terms.looks, planned)
    fractions = tuple(size / planned for size in sizes)
    at = compute_look_levels(fractions, terms.alpha, terms.spending) if fractions else ()
    return tuple(
        InterimLook(
            number=number,
            of=len(sizes),
            roots=size,
            planned=planned,
            level=level,
            spent=compute_spent_alpha(size / planned, terms.alpha, terms.spending),
        )
        for number, (size, level) in enumerate(zip(sizes, at, strict=True), start=1)
    )


def _describe_waiting_look(look: InterimLook, complete: int) -> str:
    return (
        f"look {look.number} of {look.of} is after the first {look.roots} roots of the plan, of "
        f"which {complete} are complete"
    )


def _compare_roots(
    connection: "duckdb.DuckDBPyConnection",
    found: ArmComparison,
    roots: Sequence[RootEvidence],
    level: float,
) -> ArmComparison:
    """Add bounds and answer over these roots; a failure of one of m measures uses level / m."""
    bounds = query_difference_bounds(connection, roots, level)
    if len(found.terms.measures) > 1:
        stricter = query_difference_bounds(connection, roots, level / len(found.terms.measures))
        bounds = replace(bounds, upper=stricter.upper)
    reasons = (*found.reasons, *_list_sample_gaps(bounds, found.sample, found.terms))
    answer = decide_answer(bounds, found.terms.margin, reasons)
    return replace(found, bounds=bounds, answer=answer, reasons=reasons)


def _list_sample_gaps(
    bounds: DifferenceBounds, sample: ComparisonSample, terms: AnalysisTerms
) -> Iterator[str]:
    """Yield reasons why this evidence allows no answer, whatever its bounds."""
    if not sample.known:
        yield "nothing is known of both arms"
    elif bounds.reason == "few_roots":
        yield f"{sample.roots} roots, and below 5 there is no interval"
    if sample.known and sample.unknown > terms.max_unknown:
        yield (
            f"{sample.unknown:.0%} of the outcomes are unknown or have no counterpart, and at most "
            f"{terms.max_unknown:.0%} may be: " + describe_movement(sample)
        )


def combine_answers(found: Sequence[ArmComparison]) -> ComparisonAnswer:
    """Return the worst answer: all comparisons have to pass."""
    return find_worst_answer([each.answer for each in found])
