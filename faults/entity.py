"""Which atoms are worth following, and what a call is about."""

import re
from functools import lru_cache

from faults.atoms import SHORT, atoms

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
    return _kept(arguments) if len(arguments) <= SHORT else _entities(arguments)


def _entities(arguments: str) -> frozenset[str]:
    paths = (f"p:{found.casefold()}" for found in _PATH.findall(arguments))
    return frozenset(filter(specific, atoms(arguments))).union(paths)


_kept = lru_cache(maxsize=1 << 12)(_entities)
