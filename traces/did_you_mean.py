"""Did-you-mean suggestions for unknown names."""

from collections.abc import Iterable


def suggest_nearest_name(name: str, names: Iterable[str]) -> str:
    """Return `; did you mean X?`, or a list of all names if none is close."""
    from difflib import get_close_matches  # only a mistake needs it

    names = tuple(names)
    if close := get_close_matches(name, names, n=1, cutoff=0.4):
        return f"; did you mean {close[0]}?"
    return f"; there is {', '.join(sorted(names)) or 'none'}"
