"""What a function said of the value it was asked about last, for those who ask it once more."""

from collections.abc import Callable


class Latest[T, R]:
    """A function of a frozen value; asked about the very same object again, it says the same.

    What it says is shared, and not to be changed.
    """

    def __init__(self, function: Callable[[T], R]) -> None:
        self._function = function
        self._kept: tuple[T, R] | None = None

    def __call__(self, of: T) -> R:
        kept = self._kept
        if kept is None or kept[0] is not of:
            self._kept = kept = of, self._function(of)
        return kept[1]
