"""What somebody may have meant who wrote a name that there is not."""

from collections.abc import Iterable
from difflib import get_close_matches


def nearest(name: str, names: Iterable[str]) -> str:
    """`; did you mean X?` or the list of what there is."""
    names = tuple(names)
    close = get_close_matches(name, names, n=1, cutoff=0.4)
    return f"; did you mean {close[0]}?" if close else f"; there is {', '.join(sorted(names))}"
