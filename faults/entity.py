"""Which atoms are worth following, and what a call is about."""

import re

from faults.atoms import atoms

_PATH = re.compile(r"[\w.~-]*/[\w./~-]+|\b[\w-]+\.[A-Za-z]{1,5}\b")


def specific(atom: str) -> bool:
    """Whether an atom says more than chance would: dates, ids, texts of four characters and
    numbers of three significant digits do."""
    return atom[0] != "n" or digits(atom) >= 3


def digits(atom: str) -> int:
    """The significant digits of a number's atom; zeros at the end of a whole number count."""
    return len(atom[2:].lstrip("-").replace(".", "").lstrip("0"))


def entities(arguments: str) -> frozenset[str]:
    """What a call is about, as far as its arguments say: ids, days, texts, numbers and paths."""
    paths = (f"p:{found.casefold()}" for found in _PATH.findall(arguments))
    return frozenset(filter(specific, atoms(arguments))).union(paths)
