"""The stages of a pipeline, as the marks of its run say them.

pipeline      {workload, language, mode, arm, sandbox, stages}: what is begun
stage         {stage, given, attempted, limits, scope}: it begins, and its agent if attempted
agent         {stage, exit, budget, seconds}: its agent has ended
budget        {stage, kind, limit}: a budget is used up
graded        {stage, score, passed, result, given, cases: {name: [result, score, reached]}};
              with `before`, of an earlier run that this one goes on from, and then with what
              it cost: calls, tokens, cost_usd, seconds, and what its other marks said
sandbox       {stage, isolation, weaker, refused}: what did not hold the agent, and what it was
              refused
resurrection  {stage, reason, score}: the golden artifact took the place of the agent's own
"""

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from traces.model import Mark

ABOUT = ("mode", "arm", "sandbox", "workload")
APART = ("seconds", "walls", "stage")
"""What of a fact is not compared: time, and what is of the machine."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bill:
    """What one answer of a model cost, and when it was asked for."""

    at: float
    tokens: int | None = None
    dollars: float | None = None


def stages(marks: Iterable[Mark], bills: Iterable[Bill]) -> Iterator[dict[str, object]]:
    """A row for each stage that was graded, but for the trajectory, by the names of its columns."""
    marks, bills = tuple(marks), tuple(bills)
    said = next((mark.data for mark in marks if mark.name == "pipeline"), {})
    about = {name: said.get(name) for name in ABOUT}
    for graded in (mark for mark in marks if mark.name == "graded"):
        stage = graded.data.get("stage")
        own = {mark.name: mark for mark in marks if mark.data.get("stage") == stage}
        yield _row(graded.data, own, bills) | about


def _row(
    graded: Mapping[str, object], own: Mapping[str, Mark], bills: tuple[Bill, ...]
) -> dict[str, object]:
    began, ended = own.get("stage"), own.get("agent")
    ran: Mapping[str, object] = ended.data if ended else graded
    found: dict[str, object] = {
        "stage": graded.get("stage"),
        "score": graded.get("score"),
        "passed": graded.get("passed"),
        "provenance": graded.get("given"),
        "resurrected": "resurrection" in own,
        "outcome": _outcome(graded, began.data if began else graded),
        "seconds": ran.get("seconds"),
        "agent_exit": ran.get("exit"),
        "budget": ran.get("budget"),
        **_counts(graded.get("cases")),
    }
    if graded.get("before"):
        return found | {name: graded.get(name) for name in ("calls", "tokens", "cost_usd")}
    if began is None or ended is None:
        return found
    return found | _cost([bill for bill in bills if began.at <= bill.at <= ended.at])


def _outcome(graded: Mapping[str, object], began: Mapping[str, object]) -> object:
    result = graded.get("result")
    if result != "infrastructure_error" and began.get("attempted") is False:
        return "not_attempted"
    return result


def _counts(cases: object) -> dict[str, int]:
    """How many cases there were, how many could be reached, and how many were solved."""
    if not isinstance(cases, Mapping):
        return {}
    grades = tuple(cases.values())
    return {
        "cases": len(grades),
        "reached": sum(bool(reached) for _, _, reached in grades),
        "solved": sum(score == 100 for _, score, _ in grades),
    }


def _cost(bills: list[Bill]) -> dict[str, object]:
    """What a stage cost; dollars and tokens are unknown where any answer's are."""
    tokens = [bill.tokens for bill in bills if bill.tokens is not None]
    dollars = [bill.dollars for bill in bills if bill.tokens is not None]
    known = [cost for cost in dollars if cost is not None]
    return {
        "calls": len(bills),
        "tokens": sum(tokens) if tokens or not bills else None,
        "cost_usd": sum(known) if len(known) == len(dollars) and (known or not bills) else None,
    }


def differences(recorded: Iterable[Mark], now: Iterable[Mark]) -> Iterator[str]:
    """What two runs tell otherwise of each stage, but for the time that it took; in words."""
    before, after = _by_stage(recorded), _by_stage(now)
    for stage in dict.fromkeys((*before, *after)):
        was, told = before.get(stage, []), after.get(stage, [])
        if was != told:
            yield f"{stage or 'the pipeline'}: {_differs(was, told)}"


type _Told = list[tuple[str, dict[str, object]]]


def _by_stage(marks: Iterable[Mark]) -> dict[str, _Told]:
    found: dict[str, _Told] = {}
    for mark in marks:
        if mark.name == "sandbox":  # what held an agent is of the machine
            continue
        said = json.loads(json.dumps(dict(mark.data)))
        said = {name: value for name, value in said.items() if name not in APART}
        found.setdefault(str(mark.data.get("stage", "")), []).append((mark.name, said))
    return found


def _differs(was: _Told, told: _Told) -> str:
    """The first thing of a stage that is not as it was."""
    for (name, before), (other, after) in zip(was, told, strict=False):
        if name != other:
            return f"{other} was told, recorded was {name}"
        if before != after:
            keys = [key for key in before | after if before.get(key) != after.get(key)]
            if "cases" in keys:
                return f"{name}: {_cases(before['cases'], after['cases'])}"
            said = ", ".join(f"{k} {after.get(k)}, recorded {before.get(k)}" for k in keys[:3])
            return f"{name}: {said}"
    return f"{len(told)} facts were told, recorded were {len(was)}"


def _cases(before: object, after: object) -> str:
    if not isinstance(before, dict) or not isinstance(after, dict):
        return f"cases {after}, recorded {before}"
    other = [case for case in before | after if before.get(case) != after.get(case)]
    shown = ", ".join(f"{c} {after.get(c)}, recorded {before.get(c)}" for c in other[:2])
    return f"{len(other)} of {len(before)} cases differ: {shown}"
