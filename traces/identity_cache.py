"""Cache of the last few values of a function, keyed on identity."""

from collections.abc import Callable


class IdentityCache[T, R]:
    """A function of an immutable value; a call with one of the last `kept` objects is not computed.

    The result is shared and must not be changed.
    """

    def __init__(self, function: Callable[[T], R], kept: int = 1) -> None:
        self._function, self._kept = function, kept
        self._entries: list[tuple[T, R]] = []

    def __call__(self, of: T) -> R:
        for entry in self._entries:
            if entry[0] is of:
                return entry[1]
        result = self._function(of)
        self._entries = [(of, result), *self._entries[: self._kept - 1]]
        return result


def cache_by_identity[T, R](kept: int) -> Callable[[Callable[[T], R]], IdentityCache[T, R]]:
    """Decorate a function of which several values are used in turn."""
    return lambda function: IdentityCache(function, kept)
