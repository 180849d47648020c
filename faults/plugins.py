"""Operators of third parties: packages register theirs under the entry point `stumble.faults`.

    [project.entry-points."stumble.faults"]
    acme = "acme_faults"

names a module that decorates its operators with `faults.operator.operator`. It is imported when a
fault is asked for that is not ours, and when all are listed, so it costs other commands nothing.
"""

from functools import cache
from importlib.metadata import entry_points

from faults.operator import OPERATORS, Operator, named
from traces.nearest import nearest

GROUP = "stumble.faults"


@cache
def load() -> None:
    """Import what is registered; ValueError, naming the package, for what cannot be."""
    for entry in entry_points(group=GROUP):
        try:
            entry.load()
        except (ImportError, AttributeError, ValueError) as error:
            owner = entry.dist.name if entry.dist else entry.value
            raise ValueError(f"the faults of {owner} ({entry.value}): {error}") from error


def find(name: str) -> Operator:
    """The operator of a name or code; ValueError, with the nearest name, where there is none."""
    found = named(name)
    if found is None:
        load()
        found = named(name)
    if found is None:
        raise ValueError(f"no fault is called {name!r}{nearest(name, OPERATORS)}")
    return found


def every() -> tuple[Operator, ...]:
    """All operators by family and number: T, E, S, V, X, then the sham."""
    load()
    return tuple(sorted(OPERATORS.values(), key=_place))


def _place(operator: Operator) -> tuple[int, int, str]:
    number = operator.code[1:]
    return "TESVXs".index(operator.code[0]), int(number) if number.isdecimal() else 99, number
