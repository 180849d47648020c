"""Output of a gate: lines, plain data, cases for CI services, and Markdown."""

from collections.abc import Sequence

from msgspec import to_builtins

from stumble.gate.check_case import CheckCase
from stumble.gate.effect_limits import EffectCheck
from stumble.gate.limits import (
    GateCheck,
    GateRate,
    join_gate_verdicts,
)
from stumble.verdicts.exclusions import MIXED_VERDICT_REMEDIES, describe_exclusion

_VERDICT_WORDS = {"pass": "pass", "fail": "FAIL", "unknown": "not enough evidence"}

NO_CHECK = "no fault was injected"

type LimitCheck = GateCheck | EffectCheck


def format_check_line(check: LimitCheck) -> str:
    """Format one check as a line, with the number of recordings that would decide it."""
    verdict = _VERDICT_WORDS[check.verdict]
    details = (
        f"{check.limit}: {check.found}  {check.subject}"
        if isinstance(check, EffectCheck)
        else f"{check}  "
        f"{check.rate.subject}{describe_budget_effect(check)}{describe_recordings_needed(check)}"
    )
    return f"{verdict:{len(_VERDICT_WORDS['unknown'])}}  {details}"


def describe_budget_effect(check: GateCheck) -> str:
    """Describe the rate with runs ended by their budget counted the other way, if any."""
    rate = check.rate
    if not rate.by_budget:
        return ""
    other = "unknown" if rate.other_rate is None else f"{rate.other_rate:.3f}"
    return f"; {rate.by_budget} ended by their budget, {other} if they are counted the other way"


def describe_recordings_needed(check: GateCheck) -> str:
    """Describe how many more recordings would decide."""
    if check.verdict != "unknown":
        return ""
    if check.needed is None:
        return f"; {_explain_undecidable(check.rate)}"
    recordings = "recording" if check.needed == 1 else "recordings"
    return f"; about {check.needed:,} more {recordings} would decide"


def _explain_undecidable(rate: GateRate) -> str:
    if rate.next_step:
        return rate.next_step
    if (reason := str(rate.reason)) in MIXED_VERDICT_REMEDIES:
        return MIXED_VERDICT_REMEDIES[reason]
    if rate.rate is None and rate.left_out_as:
        return f"{rate.left_out} are left out: {describe_exclusion(rate.left_out_as)}"
    if rate.rate is None:
        return "inject faults into this agent first"
    if rate.judge_error:
        return "more labelled runs decide, or more recordings"
    if rate.unknown:
        return (
            f"the {rate.unknown} unknown runs decide, more recordings do not while as many stay "
            "unknown: see `stumble sql exclusions`, and `stumble why`"
        )
    return "the rate is the limit itself: more recordings decide once it moves"


def gate_check_to_dict(check: LimitCheck) -> dict[str, object]:
    """Return the check as plain data."""
    if isinstance(check, EffectCheck):
        return check.to_dict()
    rate = check.rate
    return {
        "verdict": check.verdict,
        "measure": check.limit.measure,
        "at_least" if check.limit.least else "at_most": check.limit.value,
        "confidence": rate.confidence,
        "parts": rate.parts,
        "agent": rate.agent,
        "model": rate.model,
        "world": rate.world,
        "part": rate.part,
        "ops": list(rate.ops),
        "hits": rate.hits,
        "cases": rate.cases,
        "traces": rate.traces,
        "n_eff": rate.n_eff,
        "rate": rate.rate,
        "lo": rate.lo,
        "hi": rate.hi,
        "reason": rate.reason,
        "unknown": rate.unknown,
        "least": rate.least,
        "most": rate.most,
        "known_lo": rate.known_lo,
        "known_hi": rate.known_hi,
        "fired": rate.fired,
        "left_out": rate.left_out,
        "left_out_as": rate.left_out_as,
        "next_step": describe_recordings_needed(check).removeprefix("; ") or None,
        "by_budget": rate.by_budget,
        "other_rate": rate.other_rate,
        "needed": check.needed,
        "judge_error": to_builtins(rate.judge_error),
    }


def list_gate_cases(checks: Sequence[LimitCheck]) -> list[CheckCase]:
    """Return a case per check for the files of CI services."""
    return [
        CheckCase(
            classname=f"stumble.{_find_subject(check)}",
            name=str(check.limit),
            verdict=check.verdict,
            message=_describe_found(check),
        )
        for check in checks
    ]


def _find_subject(check: LimitCheck) -> str:
    return check.subject if isinstance(check, EffectCheck) else check.rate.subject


def _describe_found(check: LimitCheck) -> str:
    if isinstance(check, EffectCheck):
        return check.found
    found = str(check).removeprefix(f"{check.limit}: ")
    return f"{found}{describe_recordings_needed(check)}"


def render_gate_markdown(checks: Sequence[LimitCheck]) -> str:
    """Render a table for the summary of a CI run."""
    rows = [
        f"| {_VERDICT_WORDS[check.verdict]} | {check.limit} | "
        f"{_describe_found(check)} | {escape_table_cell(_find_subject(check))} |"
        for check in checks
    ]
    head = [
        f"### stumble gate: {_VERDICT_WORDS[join_gate_verdicts(checks)]}",
        "",
        "| verdict | limit | rate [interval] (cases) | of |",
        "|---|---|---|---|",
    ]
    return "\n".join([*head, *(rows or [f"| | | {NO_CHECK} | |"]), "", ""])


def escape_table_cell(text: str) -> str:
    """Escape a text for a cell of a Markdown table."""
    return text.replace("|", "\\|").replace("\n", " ").replace("<", "&lt;")
