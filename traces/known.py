"""The values that are looked for wherever they stand, however they are spelled."""

import re
from collections.abc import Iterable

from traces.credentials import SHORTEST, telling
from traces.needle import Needle, needles
from traces.placeholder import PLACEHOLDER
from traces.spelling import Reader

_LEARNED = 128
"""How many values seen on the wire are looked for at a time: the latest ones."""


class Known:
    """The values given, and those learned from the wire.

    `generation` grows whenever another value is looked for than before.
    """

    def __init__(self, values: Iterable[str] = ()) -> None:
        given = (value.encode("utf-8", "surrogateescape") for value in values)
        self._given = {value: tuple(needles(value)) for value in given if len(value) >= SHORTEST}
        self._learned: dict[bytes, tuple[Needle, ...]] = {}
        self.generation = 0
        self._prepare()

    def learn(self, value: bytes) -> None:
        """Look for this value from now on, if it can be told from plain words."""
        if value in self._given or not telling(value) or PLACEHOLDER.fullmatch(value):
            return
        if value in self._learned:
            self._learned[value] = self._learned.pop(value)
            return
        self._learned[value] = tuple(needles(value))
        if len(self._learned) > _LEARNED:
            del self._learned[next(iter(self._learned))]
        self._prepare()

    def _prepare(self) -> None:
        """What to search, by cost: long runs in the suspects only, the rest everywhere."""
        self.generation += 1
        every = [n for known in (self._given, self._learned) for all in known.values() for n in all]
        self._long = [(needle.anchor, needle) for needle in every if needle.anchor]
        self._short = [needle for needle in every if not needle.anchor]
        self._heads: dict[bytes, list[Needle]] = {}
        for needle in every:
            self._heads.setdefault(needle.text[:3], []).append(needle)
        heads = b"|".join(re.escape(head) for head in self._heads)
        self._head = re.compile(b"(?=(" + heads + b"))") if heads else None
        self._bits = {needle.text[:size] for needle in every for size in (1, 2)}
        self.alphabet = frozenset(byte for needle in every for byte in needle.text)
        """All bytes that may be the last one of the beginning of a value."""
        self.longest = max((len(needle.text) for needle in every), default=0)
        self.reader = Reader((*self._given, *self._learned), self.longest)

    def within(self, data: bytes, hay: bytes) -> list[Needle]:
        """The needles that stand in the data, or may; `hay` is what `patterns.suspects` says."""
        likely = list[Needle]()
        if hay:
            find = hay.find
            likely = [needle for anchor, needle in self._long if find(anchor) >= 0]
        if self._short:
            find = data.find
            likely += [needle for needle in self._short if find(needle.text) >= 0]
        return likely

    def begun(self, text: bytes) -> tuple[int, bytes]:
        """Where the beginning of a value stands at the end, and of which; b"" if of several."""
        if self._head is None or not text or text[-1] not in self.alphabet:
            return len(text), b""
        for match in self._head.finditer(text, max(0, len(text) - self.longest)):
            rest = text[match.start() :]
            for needle in self._heads[match[1]]:
                if len(rest) < len(needle.text) and needle.text.startswith(rest):
                    return match.start(), needle.secret
        for size in (2, 1):
            if len(text) >= size and text[-size:] in self._bits:
                return len(text) - size, b""
        return len(text), b""
