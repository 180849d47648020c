"""Specific tokens, and the identifiers in a call's arguments."""

import re
from functools import lru_cache

from faults.judging.value_tokens import MAX_CACHED_CHARS, extract_tokens

_PATH = re.compile(r"[\w.~-]*/[\w./~-]+|\b[\w-]+\.[A-Za-z]{1,5}\b")


def is_specific_token(atom: str) -> bool:
    """Return whether a token is unlikely to match by chance.

    Dates, ids, texts of four characters and numbers of three significant digits are specific.
    """
    return atom[0] != "n" or count_token_digits(atom) >= 3


def count_token_digits(atom: str) -> int:
    """Count the significant digits of a number token, including an integer's trailing zeros."""
    return len(atom[2:].lstrip("-").replace(".", "").lstrip("0"))


def find_identifiers(arguments: str) -> frozenset[str]:
    """Return the subject of a call, by its arguments: ids, dates, texts, numbers and paths."""
    return (
        _cached_identifiers(arguments)
        if len(arguments) <= MAX_CACHED_CHARS
        else _extract_identifiers(arguments)
    )


def _extract_identifiers(arguments: str) -> frozenset[str]:
    paths = (f"p:{path.casefold()}" for path in _PATH.findall(arguments))
    return frozenset(filter(is_specific_token, extract_tokens(arguments))).union(paths)


_cached_identifiers = lru_cache(maxsize=1 << 12)(_extract_identifiers)
