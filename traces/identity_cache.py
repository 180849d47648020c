"""Cache of the last few values of a function, keyed on identity."""

from collections.abc import Callable


class IdentityCache[T, R]:
    """A function of an immutable value; a call with one of the last `kept` objects is not computed.

    The result is shared and must not be changed.
    """

    def __init__(self, function: Callable[[T], R], kept: int = 1) -> None:
        self._function, self._kept = function, kept
        self._last: tuple[T, R] | None = None
        self._earlier: list[tuple[T, R]] = []

    def __call__(self, of: T) -> R:
        last = self._last
        if last is not None and last[0] is of:
            return last[1]
        for entry in self._earlier:
            if entry[0] is of:
                return entry[1]
        if last is not None and self._kept > 1:
            self._earlier = [last, *self._earlier[: self._kept - 2]]
        self._last = found = of, self._function(of)
        return found[1]


def cache_by_identity[T, R](kept: int) -> Callable[[Callable[[T], R]], IdentityCache[T, R]]:
    """Decorate a function of which several values are used in turn."""
    return lambda function: IdentityCache(function, kept)
