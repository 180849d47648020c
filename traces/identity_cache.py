"""One-entry cache keyed on identity."""

from collections.abc import Callable


class IdentityCache[T, R]:
    """A function of a frozen value; a second call with the same object returns the first result.

    The result is shared and must not be changed.
    """

    def __init__(self, function: Callable[[T], R]) -> None:
        self._function = function
        self._kept: tuple[T, R] | None = None

    def __call__(self, of: T) -> R:
        entry = self._kept
        if entry is None or entry[0] is not of:
            self._kept = entry = of, self._function(of)
        return entry[1]
