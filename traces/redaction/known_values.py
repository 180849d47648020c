"""Index of known secret values, searched everywhere and in every spelling."""

import re
from collections.abc import Iterable

from traces.redaction.base64_search import SecretNeedle, make_needles
from traces.redaction.detection.credential_names import MIN_SECRET_LENGTH, is_distinctive_secret
from traces.redaction.detection.prefilter import SecretPrefilter
from traces.redaction.placeholder import PLACEHOLDER
from traces.redaction.unescape import EscapeDecoder

_LEARNED = 128
"""Maximum number of values from the wire that are searched: the latest ones."""


class KnownValueIndex:
    """The values given at the start, and those learned from the wire.

    `generation` increases whenever the set of searched values changes.
    """

    def __init__(self, values: Iterable[str] = ()) -> None:
        encoded_values = (value.encode("utf-8", "surrogateescape") for value in values)
        self._given = {
            value: tuple(make_needles(value))
            for value in encoded_values
            if len(value) >= MIN_SECRET_LENGTH
        }
        self._learned: dict[bytes, tuple[SecretNeedle, ...]] = {}
        self.prefilter = SecretPrefilter()
        self.prefilter.set_given(n.text for all in self._given.values() for n in all)
        self.generation = 0
        self._build_needle_index()

    def learn(self, value: bytes) -> None:
        """Search this value from now on, if it is distinctive."""
        if value in self._given or not is_distinctive_secret(value) or PLACEHOLDER.fullmatch(value):
            return
        if value in self._learned:
            self._learned[value] = self._learned.pop(value)
            return
        self._learned[value] = tuple(make_needles(value))
        if len(self._learned) > _LEARNED:
            del self._learned[next(iter(self._learned))]
        self.prefilter.set_learned(n.text for all in self._learned.values() for n in all)
        self._build_needle_index()

    def _build_needle_index(self) -> None:
        """Split the needles by cost: those with long runs in the suspects only, the rest
        everywhere."""
        self.generation += 1
        needles = [
            n for known in (self._given, self._learned) for all in known.values() for n in all
        ]
        self._long = [(needle.anchor, needle) for needle in needles if needle.anchor]
        self._short = [needle for needle in needles if not needle.anchor]
        self._heads: dict[bytes, list[SecretNeedle]] = {}
        for needle in needles:
            self._heads.setdefault(needle.text[:3], []).append(needle)
        heads = b"|".join(re.escape(head) for head in self._heads)
        self._head = re.compile(b"(?=(" + heads + b"))") if heads else None
        self._bits = {needle.text[:size] for needle in needles for size in (1, 2)}
        self.alphabet = frozenset(byte for needle in needles for byte in needle.text)
        """All bytes that the beginning of a value may end in."""
        self.longest = max((len(needle.text) for needle in needles), default=0)
        self.reader = EscapeDecoder((*self._given, *self._learned), self.longest)

    def find_needles(self, data: bytes, hay: bytes) -> list[SecretNeedle]:
        """Return needles that (may) occur in the data; `hay` is from `extract_suspect_runs`."""
        candidates = list[SecretNeedle]()
        if hay:
            find = hay.find
            candidates = [needle for anchor, needle in self._long if find(anchor) >= 0]
        if self._short:
            find = data.find
            candidates += [needle for needle in self._short if find(needle.text) >= 0]
        return candidates

    def find_partial_value(self, text: bytes) -> tuple[int, bytes]:
        """Find the beginning of a value at the end of the text: its offset and the value, b"" if
        ambiguous."""
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
