"""What an agent is told of its budget, at the end of a stage's task.

Only what is the same in a replay: the limits, and what is left of calls, tokens and dollars.
"""

from collections.abc import Mapping, Sequence, Set

_SPENT_AS = {"calls": "calls", "tokens": "tokens", "dollars": "cost_usd"}
_NAMES = {"calls": "model calls", "tokens": "tokens", "dollars": "dollars", "seconds": "seconds"}


def describe_budget(
    limits: Mapping[str, float],
    here: Sequence[Mapping[str, object]],
    before: Sequence[Mapping[str, object]],
    *,
    of_run: Set[str],
) -> str:
    """Describe the limits of a stage, and those `of_run`, with what is left of them after `here`,
    the attempts before at this stage, and for the run after the stages `before` as well.

    Empty without limits. Costs have the keys of a stage's costs; an unknown one leaves the rest of
    its limit unknown.
    """
    parts = {"this stage": list[str](), "all stages together": list[str]()}
    for name, limit in limits.items():
        if name in of_run:
            parts["all stages together"].append(_describe_limit(name, limit, [*before, *here]))
        else:
            parts["this stage"].append(_describe_limit(name, limit, here))
    budgets = [f"for {scope}: {', '.join(each)}" for scope, each in parts.items() if each]
    if not budgets:
        return ""
    return (
        f"\n\nYour budget {'; '.join(budgets)}. What is in the folder when it is used up is graded."
    )


def describe_attempts(allowed: int, scores: Sequence[float | None], passing: float) -> str:
    """Describe which attempt at a stage this is, what the last one scored, and how many are left.

    Empty if a single attempt is allowed.
    """
    if allowed == 1:
        return ""
    number = len(scores) + 1
    before = f" The one before scored {scores[-1]:.1f} of 100." if scores and scores[-1] else ""
    before = before or (" The one before scored nothing." if scores else "")
    left = allowed - number
    after = (
        f"{left} more {'is' if left == 1 else 'are'} left: while the score is below {passing:g}, "
        "you are asked again, and the last attempt counts."
        if left
        else "It is the last one, and counts."
    )
    return f"\n\nThis is attempt {number} of {allowed} at this stage.{before} {after}"


def _describe_limit(name: str, limit: float, costs: Sequence[Mapping[str, object]]) -> str:
    text = f"{_format_amount(limit)} {_NAMES[name]}"
    if name not in _SPENT_AS or not costs:
        return text
    known = [cost.get(_SPENT_AS[name]) for cost in costs]
    used = sum(each for each in known if isinstance(each, int | float))
    if None in known:
        return f"{text} (how much of it is left is unknown)"
    return f"{text} ({_format_amount(max(0, limit - used))} left)"


def _format_amount(amount: float) -> str:
    return f"{amount:,.0f}" if amount == int(amount) else f"{amount:,.2f}"
