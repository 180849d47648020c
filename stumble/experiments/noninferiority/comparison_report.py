"""Output of a comparison: lines, plain data, JUnit XML and Markdown.

Rates and differences are printed as counted, so for `silent` less is better.
"""

from collections.abc import Iterator, Sequence

from stumble.experiments.noninferiority.comparison import ArmComparison, combine_answers
from stumble.experiments.noninferiority.decision import ComparisonAnswer
from stumble.experiments.noninferiority.sample_counts import describe_movement
from stumble.experiments.seals.seal_file import SHOWN_DIGEST_LENGTH
from stumble.gate.check_case import CheckCase
from stumble.gate.limits import GateVerdict
from stumble.gate.report import escape_table_cell

ANSWER_LABELS: dict[ComparisonAnswer, str] = {
    "pass": "PASS",
    "fail": "FAIL",
    "inconclusive": "INCONCLUSIVE",
    "error": "ERROR",
}
_GATE_VERDICTS: dict[ComparisonAnswer, GateVerdict] = {"pass": "pass", "fail": "fail"}
NOT_SEALED = "not sealed: nothing shows that plan, margin and looks were fixed before the runs"


def format_comparisons(found: Sequence[ArmComparison]) -> Iterator[str]:
    """Format each comparison as a few lines."""
    for each in found:
        yield f"{ANSWER_LABELS[each.answer]:<12}  {format_comparison_headline(each)}"
        yield from (f"  {line}" for line in _list_comparison_details(each))


def format_comparison_headline(found: ArmComparison) -> str:
    """Format the compared arms and their difference."""
    return f"{_format_comparison_title(found)}: {_format_comparison_evidence(found)}"


def _format_comparison_title(found: ArmComparison) -> str:
    return (
        f"{found.measure} of {found.candidate.name} against {found.baseline.name}, "
        f"margin {found.terms.margin:g}"
    )


def _format_comparison_evidence(found: ArmComparison) -> str:
    sample, difference = found.sample, _to_measure_difference(found, found.bounds.difference)
    if difference is None:
        return "no difference was looked at"
    rates = (
        f"{_format_measure_rate(found, sample.candidate)} "
        f"and {_format_measure_rate(found, sample.baseline)}"
    )
    return (
        f"{rates}, difference {difference:+.3f}{_format_comparison_bounds(found)}, "
        f"{_format_sample_counts(found)}"
    )


def _format_comparison_bounds(found: ArmComparison) -> str:
    """Format both bounds: of the wanted rate, the lower decides a pass, the upper a failure."""
    lower, upper = (
        _to_measure_difference(found, found.bounds.lower),
        _to_measure_difference(found, found.bounds.upper),
    )
    if lower is None or upper is None:
        return ""
    low, high = sorted((lower, upper))
    level = found.look.level if found.look else found.terms.alpha
    return f" [{low:+.3f}, {high:+.3f}], each bound at {1 - level:.2%}"


def _format_sample_counts(found: ArmComparison) -> str:
    sample = found.sample
    by = {"root": "the same recordings", "task": "the same tasks", None: "recordings of their own"}
    what = "pairs" if sample.paired_by else "faults"
    return f"{sample.known} {what} of {sample.roots} roots ({by[sample.paired_by]})"


def _to_measure_difference(found: ArmComparison, value: float | None) -> float | None:
    """Convert a difference of the wanted rate to the measure: `silent` changes its sign."""
    return None if value is None else -value if found.measure == "silent" else value


def _format_measure_rate(found: ArmComparison, value: float | None) -> str:
    if value is None:
        return "unknown"
    return f"{1 - value if found.measure == 'silent' else value:.3f}"


def _list_comparison_details(found: ArmComparison) -> Iterator[str]:
    yield f"sealed {found.seal[:SHOWN_DIGEST_LENGTH]}" if found.seal else NOT_SEALED
    if found.look and found.look.of > 1:
        look = found.look
        yield (
            f"look {look.number} of {look.of}: {look.roots} of {look.planned} roots, "
            f"{look.spent:.4f} of alpha {found.terms.alpha:g} spent ({found.terms.spending})"
        )
    unknown = found.sample.cells + found.sample.left_out - found.sample.known
    if found.bounds.difference is not None and unknown and found.answer != "error":
        yield f"unknown or without a counterpart: {unknown}; {describe_movement(found.sample)}"
    yield from found.reasons or _explain_undecided(found)
    if now := found.by_today:
        if found.judge != now.judge:
            yield f"by the verdicts of judge {found.judge}, kept when it was sealed"
        yield f"by judge {now.judge} of today: {ANSWER_LABELS[now.answer]}, " + (
            _format_comparison_evidence(now)
        )


def _explain_undecided(found: ArmComparison) -> Iterator[str]:
    if found.answer != "inconclusive":
        return
    last = found.look is None or found.look.number == found.look.of
    yield "the margin lies between the bounds: " + (
        "more root recordings would decide, or more repetitions of each"
        if last
        else f"the next look decides; go on with stumble campaign {found.candidate.campaign}"
    )


def comparison_to_dict(found: ArmComparison) -> dict[str, object]:
    """Return the comparison as plain data; differences and bounds are of the counted rate."""
    lower, upper = (
        _to_measure_difference(found, found.bounds.lower),
        _to_measure_difference(found, found.bounds.upper),
    )
    if found.measure == "silent":
        lower, upper = upper, lower
    sample, look = found.sample, found.look
    return {
        "answer": found.answer,
        "measure": found.measure,
        "margin": found.terms.margin,
        "alpha": found.terms.alpha,
        "candidate": _arm_to_dict(found, "candidate"),
        "baseline": _arm_to_dict(found, "baseline"),
        "difference": _to_measure_difference(found, found.bounds.difference),
        "lo": lower,
        "hi": upper,
        "paired_by": sample.paired_by,
        "roots": sample.roots,
        "cells": sample.cells,
        "known": sample.known,
        "left_out": sample.left_out,
        "unknown_share": sample.unknown,
        "difference_if_unknown_fail": _to_measure_difference(found, sample.least),
        "difference_if_unknown_succeed": _to_measure_difference(found, sample.most),
        "seal": found.seal,
        "look": look
        and {
            "number": look.number,
            "of": look.of,
            "roots": look.roots,
            "planned": look.planned,
            "level": look.level,
            "spent": look.spent,
            "spending": found.terms.spending,
        },
        "reasons": list(found.reasons or _explain_undecided(found)),
        "judge": found.judge,
        "by_today": found.by_today and comparison_to_dict(found.by_today),
    }


def _arm_to_dict(found: ArmComparison, role: str) -> dict[str, object]:
    arm = found.candidate if role == "candidate" else found.baseline
    rate = found.sample.candidate if role == "candidate" else found.sample.baseline
    return {
        "campaign": arm.campaign,
        "agent": arm.agent,
        "model": arm.model,
        "world": arm.world,
        "seal": arm.seal,
        "rate": None if rate is None else 1 - rate if found.measure == "silent" else rate,
    }


def list_comparison_cases(found: Sequence[ArmComparison]) -> list[CheckCase]:
    """Return a case per comparison for the files of CI services; only PASS passes."""
    return [
        CheckCase(
            name=_format_comparison_title(each),
            verdict=_GATE_VERDICTS.get(each.answer, "unknown"),
            message="; ".join(
                (
                    ANSWER_LABELS[each.answer],
                    _format_comparison_evidence(each),
                    *_list_comparison_details(each),
                )
            ),
        )
        for each in found
    ]


def comparisons_to_markdown(found: Sequence[ArmComparison], error: str | None = None) -> str:
    """Render a table for the summary of a CI run."""
    answer = "error" if error else combine_answers(found)
    head = [f"### stumble gate: {ANSWER_LABELS[answer]}", ""]
    if error:
        return "\n".join([*head, escape_table_cell(error), "", ""])
    table = ["| answer | compared | evidence | |", "|---|---|---|---|"]
    for each in found:
        cells = (
            ANSWER_LABELS[each.answer],
            _format_comparison_title(each),
            _format_comparison_evidence(each),
            "; ".join(_list_comparison_details(each)),
        )
        table.append("| " + " | ".join(map(escape_table_cell, cells)) + " |")
    return "\n".join([*head, *table, "", ""])
