"""Where secrets stand in a text: known values in every spelling, and what looks like a secret."""

from traces import patterns
from traces.credentials import SHORTEST
from traces.known import Known
from traces.needle import Needle, in_base64
from traces.placeholder import PLACEHOLDER, Names, stretched
from traces.said import Span
from traces.spelling import cut_escape
from traces.view import View


class Search:
    """Finds the secrets of a text and says what is to stand in their place."""

    def __init__(self, known: Known, names: Names) -> None:
        self._known, self._names = known, names

    def spans(self, data: bytes, *, stream: bool = False, final: bool = True) -> list[Span]:
        """The secrets in the data, in order: start, stop, and what is to stand there.

        `stream` looks for texts that events bring bit by bit, too; `final` False leaves out
        the half of a known secret that the data ends in, since more may come.
        """
        found = self._found(data, self._views(data, stream))
        if final:
            found += self._half(data)
        return _settled(found, data) if found else found

    def _views(self, data: bytes, stream: bool) -> list[View]:
        reader = self._known.reader
        views = reader.unescaped(data) if reader.escaped(data) else []
        return [*views, *reader.framed(data)] if stream else views

    def sees_nothing(self, data: bytes, *, stream: bool) -> bool:
        """True only if `spans` finds nothing; nothing gets a name by being asked about."""
        texts = [data, *[view.text for view in self._views(data, stream)]]
        return not any([self._likely(text) for text in texts]) and not self._begun(data)

    def _likely(self, data: bytes) -> bool:
        hay = patterns.suspects(data)
        return bool(self._known.within(data, hay) or patterns.found(data, hay))

    def growing(self, data: bytes, *, stream: bool) -> tuple[list[Span], int]:
        """The secrets in data that may go on, and where its end that may begin one begins."""
        reader = self._known.reader
        escaped = reader.escaped(data)
        views, framed = list[View](), list[View]()
        if escaped:
            views = reader.unescaped(data)
        if stream:
            framed = reader.framed(data)
        found = self._found(data, [*views, *framed])
        spans = _settled(found, data) if found else found
        if not (escaped or stream):
            return spans, self._open(data[: cut_escape(data)])
        return spans, self._unfinished(data, framed)

    def _unfinished(self, data: bytes, framed: list[View]) -> int:
        base = max(0, len(data) - patterns.LONGEST)
        tail, reader = data[base:] if base else data, self._known.reader
        cut = cut_escape(tail)
        ends = [reader.whole(tail[:cut]), *(reader.framed(tail) if framed and base else framed)]
        begun = [(view, at) for view in ends if (at := self._open(view.text)) < len(view.text)]
        return base + min((view.ranges(at, at + 1)[0][0] for view, at in begun), default=cut)

    def _open(self, text: bytes) -> int:
        return min(patterns.unfinished(text), self._known.begun(text)[0])

    def _found(self, data: bytes, views: list[View]) -> list[Span]:
        found = self._look(data)
        for view in views:
            for start, stop, instead in self._look(view.text):
                found += _placed(view, start, stop, instead)
        return found

    def _look(self, data: bytes) -> list[Span]:
        hay, found = patterns.suspects(data), list[Span]()
        for needle in self._known.within(data, hay):
            found += self._occurrences(data, needle)
        for start, stop, kind in patterns.found(data, hay):
            instead = self._names.instead(data[start:stop], stop - start, kind)
            found.append((start, stop, instead))
        return found

    def _occurrences(self, data: bytes, needle: Needle) -> list[Span]:
        found, at, secret = list[Span](), data.find(needle.text), needle.secret
        while at >= 0:
            if needle.shift is None:
                stop = at + len(needle.text)
                found.append((at, stop, self._names.instead(secret, stop - at)))
            else:
                instead = self._names.instead(secret, len(secret))
                found.append(in_base64(data, at, needle, instead))
            at = data.find(needle.text, at + 1)
        return found

    def _begun(self, data: bytes) -> tuple[int, bytes] | None:
        """Where the half of a known secret stands at the end, and of which."""
        at, secret = self._known.begun(data)
        return (at, secret) if secret and len(data) - at >= SHORTEST else None

    def _half(self, data: bytes) -> list[Span]:
        if (begun := self._begun(data)) is None:
            return []
        at, secret = begun
        return [(at, len(data), self._names.instead(secret, len(data) - at))]


def _placed(view: View, start: int, stop: int, instead: bytes) -> list[Span]:
    """A find in a view as spans of the original; the placeholder is cut where frames cut it."""
    ranges = view.ranges(start, stop)
    length = sum(high - low for low, high in ranges)
    if length != len(instead):
        instead = stretched(instead, length)
    out, at = list[Span](), 0
    for low, high in ranges:
        out.append((low, high, instead[at : at + high - low]))
        at += high - low
    return out


def _settled(found: list[Span], data: bytes) -> list[Span]:
    """Finds in order, without overlaps and without what is a placeholder already."""
    out = list[Span]()
    for start, stop, instead in sorted(found, key=lambda span: (span[0], -span[1])):
        if PLACEHOLDER.fullmatch(data, start, stop):
            continue
        if out and start < out[-1][1]:
            before = out[-1]
            if stop > before[1]:
                out[-1] = (before[0], stop, stretched(before[2], stop - before[0]))
            continue
        out.append((start, stop, instead))
    return out
