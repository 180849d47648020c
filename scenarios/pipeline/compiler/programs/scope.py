"""What a place in a program may use: names, what can be written, which functions may be called."""

from random import Random

from msgspec import Struct

from scenarios.pipeline.compiler.programs.nodes import Function, Place

_CONSONANTS, _VOWELS = "bdfghjklmnprstvwz", "aeiou"
_SHORT = "abcdefghijklmnopqrstuvwxyz"
_RESERVED = frozenset(("rename", "remove", "count", "rounds", "round", "i", "j", "k"))
"""Names of C's library, and those that every `main` has."""


class Array(Struct, frozen=True):
    name: str
    sizes: tuple[int, ...]
    constant: bool = False


class Scope(Struct):
    """`bounds` are counters, which are at least 0 and less than that, and are not written to."""

    scalars: list[str]
    constants: list[str]
    bounds: dict[str, int]
    arrays: list[Array]
    globals: frozenset[str]
    """The names of `scalars` and `arrays` that others see."""
    recent: list[Place]
    """Elements that are used here, and are often used again."""

    def open(self) -> "Scope":
        """Return a scope inside of this one."""
        return Scope(
            scalars=[*self.scalars],
            constants=[*self.constants],
            bounds={**self.bounds},
            arrays=[*self.arrays],
            globals=self.globals,
            recent=[*self.recent],
        )

    def list_readable(self) -> list[str]:
        """Return the variables that are no arrays."""
        return [*self.scalars, *self.constants, *self.bounds]


class KnownFunction(Struct, frozen=True):
    """A function that may be called; a `pure` one changes nothing and gives a value."""

    function: Function
    pure: bool


class NameSource:
    """Names that no other part of the program has, but where one is hidden on purpose."""

    def __init__(self, rng: Random) -> None:
        self._rng = rng
        self._used = set(_RESERVED)

    def make_long(self) -> str:
        """Return a name of two or three syllables, with a digit or an underscore at times."""
        name, choose = min(_RESERVED), self._rng.choice
        while name in self._used:
            syllables = (choose(_CONSONANTS) + choose(_VOWELS) for _ in range(choose((2, 2, 3))))
            name = "".join(syllables) + choose(("", "", "", "_" + choose(_SHORT), "2", "7"))
        self._used.add(name)
        return name

    def make_short(self) -> str:
        """Return a name of one letter, or a long one if they are used up."""
        free = [each for each in _SHORT if each not in self._used]
        if not free or self._rng.random() < 0.3:
            return self.make_long()
        self._used.add(name := self._rng.choice(free))
        return name

    def start_function(self) -> None:
        """Let the short names be used again."""
        self._used -= set(_SHORT) - _RESERVED
