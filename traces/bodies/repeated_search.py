"""Search of a text in bodies that repeat the beginning of earlier ones, which is only compared."""

from traces.bodies.body_delta import common_prefix

SMALL = 1 << 16
"""Size in bytes up to which searching a body takes no longer than comparing it."""
MAX_BODIES, MAX_BYTES = 4, 1 << 24


class RepeatedSearch:
    """The first place of a text. Threads may share it: what it keeps is replaced as a whole."""

    def __init__(self, text: bytes) -> None:
        self._text = text
        self._known: tuple[tuple[bytes, int], ...] = ()
        """The last bodies, and the place in each."""

    def __call__(self, body: bytes) -> int:
        """Return the offset of the first occurrence; -1 if there is none."""
        if (position := body.find(self._text, 0, SMALL)) >= 0 or len(body) <= SMALL:
            return position
        before, start = None, 0
        for known in self._known:
            common = common_prefix(known[0], body)
            if 0 <= known[1] <= common - len(self._text):
                return known[1]
            if common > start:
                before, start = known, common
            if common * 4 >= len(body) * 3:
                break
        position = body.find(self._text, max(0, start - len(self._text) + 1))
        others = [each for each in self._known if each is not before]
        size, kept = len(body), [(body, position)]
        for each in others[: MAX_BODIES - 1]:
            size += len(each[0])
            kept += [each] if size <= MAX_BYTES else []
        self._known = tuple(kept)
        return position
