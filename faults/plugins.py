"""Third-party operators: packages register them under the entry point group `stumble.faults`.

    [project.entry-points."stumble.faults"]
    acme = "acme_faults"

The entry names a module that decorates its operators with `faults.operator.operator`. It is
imported only to look up a fault that is not built in or to list all faults, so it costs other
commands nothing.
"""

from functools import cache
from importlib.metadata import entry_points

from faults.operator import OPERATORS, Operator, find_loaded_operator
from traces.did_you_mean import suggest_nearest_name

GROUP = "stumble.faults"


@cache
def load_plugins() -> None:
    """Import all registered modules; raises ValueError with the package's name if one fails."""
    for entry in entry_points(group=GROUP):
        try:
            entry.load()
        except (ImportError, AttributeError, ValueError) as error:
            package = entry.dist.name if entry.dist else entry.value
            raise ValueError(f"the faults of {package} ({entry.value}): {error}") from error


def find_operator(name: str) -> Operator:
    """Return the operator with this name or code.

    Raises ValueError, with the nearest name, if there is none.
    """
    operator = find_loaded_operator(name)
    if operator is None:
        load_plugins()
        operator = find_loaded_operator(name)
    if operator is None:
        raise ValueError(f"no fault is called {name!r}{suggest_nearest_name(name, OPERATORS)}")
    return operator


def list_operators() -> tuple[Operator, ...]:
    """Return all operators by family and number: T, E, S, V, X, then the sham."""
    load_plugins()
    return tuple(sorted(OPERATORS.values(), key=_make_sort_key))


def _make_sort_key(operator: Operator) -> tuple[int, int, str]:
    number = operator.code[1:]
    return "TESVXs".index(operator.code[0]), int(number) if number.isdecimal() else 99, number
