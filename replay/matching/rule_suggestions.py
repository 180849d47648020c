"""Suggest a corrected rule for one that matches no place in a recording."""

import re
from collections.abc import Iterable, Iterator, Sequence
from copy import replace

from replay.matching.rules import MatchRule, MatchRules
from traces.model import Exchange

_QUOTED_STEP = re.compile(r"\.?\[(?:'([^']*)'|\"([^\"]*)\")\]")
_EMPTY = re.compile(r"\.?\[\]")


def find_idle_rules(
    rules: Iterable[MatchRule], exchanges: Iterable[Exchange]
) -> tuple[MatchRule, ...]:
    """Return the rules that match no place in any of these requests and answers."""
    rules = tuple(rules)
    unused = MatchRules(rules).find_unused_rules(exchanges)
    return tuple(rule for rule in rules if str(rule) in unused)


def suggest_rule(rule: MatchRule, exchanges: Sequence[Exchange]) -> MatchRule | None:
    """Return a similar rule that matches a place in these exchanges; None if there is none."""
    forms = tuple(each for each in _iter_rule_forms(rule) if each != rule)
    idle = find_idle_rules(forms, exchanges)
    return next((each for each in forms if each not in idle), None)


def _iter_rule_forms(rule: MatchRule) -> Iterator[MatchRule]:
    """Yield the rule with other path syntaxes (JSONPath, JSON Pointer, jq) and other places."""
    if rule.kind == "exact" or rule.place == "path":
        return
    for where in (rule.where, _normalize_path_syntax(rule.where)):
        yield replace(rule, place="body", where=where)
        yield replace(rule, place="query", where=where)
        yield replace(rule, place="header", where=where.lower())


def _normalize_path_syntax(where: str) -> str:
    if where.startswith("/"):
        steps = (step.replace("~1", "/").replace("~0", "~") for step in where[1:].split("/"))
        where = ".".join("*" if step == "-" else step for step in steps)
    where = _QUOTED_STEP.sub(lambda found: f".{found[1] or found[2]}", where)
    return _EMPTY.sub("[*]", where).removeprefix("$").removeprefix(".")
