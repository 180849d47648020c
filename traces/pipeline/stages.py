"""Pipeline stages, derived from the run events that report them.

pipeline      {workload, language, mode, arm, sandbox, stages}: the pipeline began
stage         {stage, given, attempted, limits, scope}: it began, and its agent if attempted;
              with `before`, the calls, tokens, cost_usd and seconds that an interrupted run, which
              this one continues, had spent at this stage
agent         {stage, exit, budget, seconds}: its agent ended
attempt       {stage, attempt, of, score, result, exit}: what it left did not pass, and it is
              started again; the attempt number and score are those of the one before
budget        {stage, kind, limit}: a budget is used up
graded        {stage, score, passed, ramp, chain, result, given, cases: {name: [result, score,
              reached]}, why: {name: reason}}, the reason of each case that is not right;
              files: {path: [size, {digest: size}]}, the text of its program, if known;
              with `before`, of an earlier run that this one continues, and then with its cost:
              calls, tokens, cost_usd, seconds, and the content of its other events
sandbox       {stage, isolation, weaker, refused, seen}: missing isolation of the agent, the
              connections it was refused, and what a program in it could read of the run; None if
              that is unknown
resurrection  {stage, reason, score}: the golden artifact replaced the agent's own
"""

import json
from collections.abc import Iterable, Iterator, Mapping

from msgspec import Struct

from traces.model import RunEvent

PIPELINE_FIELDS = ("mode", "arm", "sandbox", "workload")
UNCOMPARED_FIELDS = ("seconds", "walls", "stage", "why", "files")
"""Fields excluded from a comparison: times, properties of the machine, and texts of programs."""


class StageCase(Struct, frozen=True, kw_only=True):
    """The grade of one case; `why` is None if it is right, or on a tape from before it was kept."""

    stage: str
    case: str
    result: str
    score: float | None
    reached: bool
    why: str | None


class ModelCharge(Struct, frozen=True, kw_only=True):
    """The cost of one model response, and the time of its request."""

    at: float
    tokens: int | None = None
    dollars: float | None = None


def derive_stage_rows(
    marks: Iterable[RunEvent], bills: Iterable[ModelCharge]
) -> Iterator[dict[str, object]]:
    """Yield a row per graded stage, by column name, without the trajectory."""
    marks, bills = tuple(marks), tuple(bills)
    pipeline = next((mark.data for mark in marks if mark.name == "pipeline"), {})
    about = {name: pipeline.get(name) for name in PIPELINE_FIELDS}
    for graded in (mark for mark in marks if mark.name == "graded"):
        stage = graded.data.get("stage")
        own = [mark for mark in marks if mark.data.get("stage") == stage]
        attempts = [mark.data for mark in own if mark.name == "attempt"]
        row = _build_stage_row(graded.data, own, bills) | about
        row |= _describe_attempts(graded.data, attempts, pipeline.get("attempts"))
        yield row


def derive_stage_cases(marks: Iterable[RunEvent]) -> Iterator[StageCase]:
    """Yield the grade of each case of each stage."""
    for graded in (mark.data for mark in marks if mark.name == "graded"):
        cases, why = graded.get("cases"), graded.get("why")
        reasons: Mapping[object, str] = why if isinstance(why, Mapping) else {}
        for name, (result, score, reached) in (cases if isinstance(cases, Mapping) else {}).items():
            yield StageCase(
                stage=str(graded.get("stage")),
                case=name,
                result=result,
                score=score,
                reached=reached,
                why=reasons.get(name),
            )


def _build_stage_row(
    graded: Mapping[str, object], marks: list[RunEvent], bills: tuple[ModelCharge, ...]
) -> dict[str, object]:
    own = {mark.name: mark for mark in marks}
    stage_begin, agent_end = own.get("stage"), own.get("agent")
    agent_data: Mapping[str, object] = agent_end.data if agent_end else graded
    row: dict[str, object] = {
        "stage": graded.get("stage"),
        "score": graded.get("score"),
        "passed": graded.get("passed"),
        "ramp_score": graded.get("ramp"),
        "chain_score": graded.get("chain"),
        "provenance": graded.get("given"),
        "resurrected": "resurrection" in own,
        "outcome": _derive_stage_outcome(graded, stage_begin.data if stage_begin else graded),
        "seconds": agent_data.get("seconds"),
        "agent_exit": agent_data.get("exit"),
        "budget": agent_data.get("budget"),
        "seen": _join_seen_paths(marks),
        **_count_stage_cases(graded.get("cases")),
    }
    if graded.get("before"):
        return row | {name: graded.get(name) for name in ("calls", "tokens", "cost_usd")}
    if stage_begin is None or agent_end is None:
        return row
    own_bills = [bill for bill in bills if stage_begin.at <= bill.at <= agent_end.at]
    cost = {**sum_stage_cost(own_bills), "seconds": _sum_agent_seconds(marks)}
    return row | add_earlier_cost(cost, stage_begin.data.get("before"))


def _join_seen_paths(marks: Iterable[RunEvent]) -> str | None:
    """Return what the sandboxes of all attempts showed of the run, as JSON; None if one is unknown
    or none was used.
    """
    shown = [mark.data.get("seen") for mark in marks if mark.name == "sandbox"]
    known = [each for each in shown if isinstance(each, list | tuple)]
    if not shown or len(known) < len(shown):
        return None
    return json.dumps(sorted({str(path) for paths in known for path in paths}))


def _sum_agent_seconds(marks: Iterable[RunEvent]) -> float | None:
    """Return the seconds of all attempts at a stage; None if those of one are unknown."""
    seconds = [mark.data.get("seconds") for mark in marks if mark.name == "agent"]
    known = [each for each in seconds if isinstance(each, int | float)]
    return sum(known) if len(known) == len(seconds) else None


def add_earlier_cost(cost: Mapping[str, object], before: object) -> dict[str, object]:
    """Return a stage's cost with what an interrupted run had spent at it, if that is a mapping;
    what is unknown of either is unknown of both.
    """
    if not isinstance(before, Mapping):
        return dict(cost)
    whole: dict[str, object] = {}
    for name, value in cost.items():
        earlier = before.get(name)
        if isinstance(value, int | float) and isinstance(earlier, int | float):
            whole[name] = value + earlier
        else:
            whole[name] = None
    return whole


def _describe_attempts(
    graded: Mapping[str, object], before: list[Mapping[str, object]], allowed: object
) -> dict[str, object]:
    """Return the attempts that were allowed and made, with the score of each; {} on a tape from
    before they were counted.
    """
    if not isinstance(allowed, int):
        return {}
    scores = [*(data.get("score") for data in before), graded.get("score")]
    return {
        "attempts": len(scores),
        "attempts_allowed": allowed,
        "attempt_scores": json.dumps(scores),
    }


def _derive_stage_outcome(graded: Mapping[str, object], began: Mapping[str, object]) -> object:
    result = graded.get("result")
    if result != "infrastructure_error" and began.get("attempted") is False:
        return "not_attempted"
    return result


def _count_stage_cases(cases: object) -> dict[str, int]:
    """Count the cases, the reachable ones and the solved ones."""
    if not isinstance(cases, Mapping):
        return {}
    grades = tuple(cases.values())
    return {
        "cases": len(grades),
        "reached": sum(bool(reached) for _, _, reached in grades),
        "solved": sum(score == 100 for _, score, _ in grades),
    }


def sum_stage_cost(bills: list[ModelCharge]) -> dict[str, object]:
    """Return the cost of a stage; dollars and tokens are unknown if those of any response are."""
    tokens = [bill.tokens for bill in bills if bill.tokens is not None]
    dollars = [bill.dollars for bill in bills if bill.tokens is not None]
    known = [cost for cost in dollars if cost is not None]
    return {
        "calls": len(bills),
        "tokens": sum(tokens) if tokens or not bills else None,
        "cost_usd": sum(known) if len(known) == len(dollars) and (known or not bills) else None,
    }


def describe_stage_differences(
    recorded: Iterable[RunEvent], now: Iterable[RunEvent]
) -> Iterator[str]:
    """Describe the differences between the stages of two runs, except for times."""
    before, after = _group_facts_by_stage(recorded), _group_facts_by_stage(now)
    for stage in dict.fromkeys((*before, *after)):
        previous, current = before.get(stage, []), after.get(stage, [])
        if previous != current:
            yield f"{stage or 'the pipeline'}: {_describe_first_difference(previous, current)}"


type _StageFacts = list[tuple[str, dict[str, object]]]


def _group_facts_by_stage(marks: Iterable[RunEvent]) -> dict[str, _StageFacts]:
    facts: dict[str, _StageFacts] = {}
    for mark in marks:
        if mark.name == "sandbox":  # isolation depends on the machine
            continue
        data = json.loads(json.dumps(dict(mark.data)))
        data = {name: value for name, value in data.items() if name not in UNCOMPARED_FIELDS}
        facts.setdefault(str(mark.data.get("stage", "")), []).append((mark.name, data))
    return facts


def _describe_first_difference(was: _StageFacts, told: _StageFacts) -> str:
    """Describe the first difference between two versions of a stage."""
    for (name, before), (other, after) in zip(was, told, strict=False):
        if name != other:
            return f"{other} was told, recorded was {name}"
        if before != after:
            keys = [key for key in before | after if before.get(key) != after.get(key)]
            if "cases" in keys:
                return f"{name}: {_describe_case_difference(before['cases'], after['cases'])}"
            differences = ", ".join(
                f"{k} {after.get(k)}, recorded {before.get(k)}" for k in keys[:3]
            )
            return f"{name}: {differences}"
    return f"{len(told)} facts were told, recorded were {len(was)}"


def _describe_case_difference(before: object, after: object) -> str:
    if not isinstance(before, dict) or not isinstance(after, dict):
        return f"cases {after}, recorded {before}"
    differing = [case for case in before | after if before.get(case) != after.get(case)]
    examples = ", ".join(f"{c} {after.get(c)}, recorded {before.get(c)}" for c in differing[:2])
    return f"{len(differing)} of {len(before)} cases differ: {examples}"
