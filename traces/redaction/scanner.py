"""Secret scanner: spans of known values in every spelling, and of text that looks like a secret."""

from collections.abc import Sequence

from traces.redaction.base64_search import SecretNeedle, replace_in_base64
from traces.redaction.detection import patterns
from traces.redaction.detection.credential_names import MIN_SECRET_LENGTH
from traces.redaction.detection.prefilter import NEEDLES, SECRETS, TOKENS
from traces.redaction.escape_bounds import keep_escapes_whole
from traces.redaction.known_values import KnownValueIndex
from traces.redaction.offset_map import OffsetMap
from traces.redaction.placeholder import PLACEHOLDER, PlaceholderRegistry, stretch_placeholder
from traces.redaction.text_buffer import EventTexts, SpanReplacement
from traces.redaction.unescape import find_cut_escape


class SecretScanner:
    """Finds the secrets of a text and their replacements."""

    def __init__(self, known: KnownValueIndex, names: PlaceholderRegistry) -> None:
        self._known, self._names = known, names

    def find_spans(
        self, data: bytes, *, events: EventTexts | None = None, final: bool = True
    ) -> list[SpanReplacement]:
        """Return the secrets in the data, in order: start, stop and replacement.

        `events` also searches texts that events deliver in fragments, after these texts of
        earlier ones; `final` False ignores a partial known secret at the end of the data, since
        more may come.
        """
        possible = self._known.prefilter.find_possible(data)
        maps = self._make_offset_maps(data, possible, events)
        spans = self._find_everywhere(data, possible, maps)
        if final:
            spans += self._replace_partial_secret(data)
        return _resolve_overlapping_spans(spans, data) if spans else spans

    def join_event_texts(self, data: bytes, before: EventTexts) -> EventTexts:
        """Return the texts that events deliver in fragments, each after that of `before`."""
        joined = self._known.reader.join_event_texts(data, before)
        return {name: view.text for name, view in joined.items()}

    def _make_offset_maps(
        self, data: bytes, possible: int, events: EventTexts | None
    ) -> list[OffsetMap]:
        reader = self._known.reader
        escaped = reader.has_escapes(data, possible)
        views = reader.unescape_parts(data, possible) if escaped else []
        return (
            views if events is None else [*views, *reader.join_event_texts(data, events).values()]
        )

    def is_clean(self, data: bytes, *, events: EventTexts | None) -> bool:
        """True only if `find_spans` finds nothing; assigns no placeholders."""
        find = self._known.prefilter.find_possible
        possible = find(data)
        if self._has_suspect(data, possible) or self._find_partial_secret(data):
            return False
        views = self._make_offset_maps(data, possible, events)
        return not any([self._has_suspect(view.text, find(view.text)) for view in views])

    def are_clean(self, texts: Sequence[bytes]) -> bool:
        """True only if `find_spans` finds nothing in any of the texts; one native pass for all.

        They are joined by a line end, at which each pattern of the prefilter may begin as at the
        beginning of a text.
        """
        joined = b"\n".join(texts)
        possible = self._known.prefilter.find_possible(joined)
        if possible & SECRETS or self._known.reader.has_escapes(joined, possible):
            return False
        return not any([self._find_partial_secret(text) for text in texts])

    def _has_suspect(self, data: bytes, possible: int) -> bool:
        if not possible & SECRETS:
            return False
        hay = patterns.extract_suspect_runs(data)
        return bool(
            self._known.find_needles(data, hay)
            or patterns.find_pattern_secrets(data, hay, possible)
        )

    def find_open_spans(
        self, data: bytes, *, events: EventTexts | None
    ) -> tuple[list[SpanReplacement], int]:
        """Return the secrets in data that may continue, and the offset of an end that may begin
        one."""
        reader = self._known.reader
        possible = self._known.prefilter.find_possible(data)
        escaped = reader.has_escapes(data, possible)
        if events is not None and not (escaped or possible & SECRETS):
            texts = [*reader.join_plain_event_texts(data, events).values()]
            if not self._known.prefilter.find_possible(b"\n".join(texts)) & SECRETS:
                return [], self._find_plain_open_end(data, texts, events)
        maps = reader.unescape_parts(data, possible) if escaped else []
        joined = [] if events is None else [*reader.join_event_texts(data, events).values()]
        all_spans = self._find_everywhere(data, possible, [*maps, *joined])
        spans = _resolve_overlapping_spans(all_spans, data) if all_spans else all_spans
        if not (escaped or events is not None):
            return spans, self._find_open_start(data[: find_cut_escape(data)])
        return spans, self._find_open_end(data, joined)

    def _find_plain_open_end(self, data: bytes, texts: list[bytes], events: EventTexts) -> int:
        """Return what `_find_open_end` does, for data without escapes, whose events deliver these
        texts; offsets are mapped only if one of them is needed."""
        cut = find_cut_escape(data)
        tail = data[max(0, len(data) - patterns.MAX_OPEN_SECRET) : cut]
        if all([self._find_open_start(text) == len(text) for text in (tail, *texts)]):
            return cut
        joined = self._known.reader.join_event_texts(data, events).values()
        return self._find_open_end(data, [*joined])

    def _find_open_end(self, data: bytes, joined: list[OffsetMap]) -> int:
        base = max(0, len(data) - patterns.MAX_OPEN_SECRET)
        tail = data[base:]
        cut = find_cut_escape(tail)
        starts = [base + cut]
        for view, view_base in (
            (self._known.reader.unescape_all(tail[:cut]), base),
            *((each, 0) for each in joined),
        ):
            at = self._find_open_start(view.text)
            if at < len(view.text):
                # What began in an earlier event is written up to here.
                starts.append(view_base + max(0, view.original_ranges(at, at + 1)[0][0]))
        return min(starts)

    def _find_open_start(self, text: bytes) -> int:
        return min(patterns.find_open_secret(text), self._known.find_partial_value(text)[0])

    def _find_everywhere(
        self, data: bytes, possible: int, views: list[OffsetMap]
    ) -> list[SpanReplacement]:
        spans = self._find_in_text(data, possible)
        for view in views:
            possible = self._known.prefilter.find_possible(view.text)
            for start, stop, instead in self._find_in_text(view.text, possible):
                spans += _map_find_to_original(view, start, stop, instead)
        return spans

    def _find_in_text(self, data: bytes, possible: int) -> list[SpanReplacement]:
        spans = list[SpanReplacement]()
        if not possible & SECRETS:
            return spans
        hay = patterns.extract_suspect_runs(data) if possible & (TOKENS | NEEDLES) else b""
        if possible & NEEDLES:
            for needle in self._known.find_needles(data, hay):
                spans += self._find_occurrences(data, needle)
        for found, end, kind in patterns.find_pattern_secrets(data, hay, possible):
            start, stop = keep_escapes_whole(data, found, end)
            if start < stop:
                instead = self._names.placeholder_for(data[start:stop], stop - start, kind)
                spans.append((start, stop, instead))
        return spans

    def _find_occurrences(self, data: bytes, needle: SecretNeedle) -> list[SpanReplacement]:
        spans, at, secret = list[SpanReplacement](), data.find(needle.text), needle.secret
        while at >= 0:
            if needle.shift is None:
                start, stop = keep_escapes_whole(data, at, at + len(needle.text))
                spans.append((start, stop, self._names.placeholder_for(secret, stop - start)))
            else:
                instead = self._names.placeholder_for(secret, len(secret))
                spans.append(replace_in_base64(data, at, needle, instead))
            at = data.find(needle.text, at + 1)
        return spans

    def _find_partial_secret(self, data: bytes) -> tuple[int, bytes] | None:
        """Return the offset of a partial known secret at the end, and the secret."""
        at, secret = self._known.find_partial_value(data)
        return (at, secret) if secret and len(data) - at >= MIN_SECRET_LENGTH else None

    def _replace_partial_secret(self, data: bytes) -> list[SpanReplacement]:
        if (partial := self._find_partial_secret(data)) is None:
            return []
        at, secret = partial
        return [(at, len(data), self._names.placeholder_for(secret, len(data) - at))]


def _map_find_to_original(
    view: OffsetMap, start: int, stop: int, instead: bytes
) -> list[SpanReplacement]:
    """Map a span of an offset map to spans of the original; frames split the placeholder.

    What lies before the original, in the text of earlier events, is written already.
    """
    ranges = [(max(0, low), high) for low, high in view.original_ranges(start, stop) if high > 0]
    length = sum(high - low for low, high in ranges)
    if length != len(instead):
        instead = stretch_placeholder(instead, length)
    out, at = list[SpanReplacement](), 0
    for low, high in ranges:
        out.append((low, high, instead[at : at + high - low]))
        at += high - low
    return out


def _resolve_overlapping_spans(found: list[SpanReplacement], data: bytes) -> list[SpanReplacement]:
    """Return the spans in order, without overlaps and without existing placeholders."""
    out = list[SpanReplacement]()
    for start, stop, instead in sorted(found, key=lambda span: (span[0], -span[1])):
        if PLACEHOLDER.fullmatch(data, start, stop):
            continue
        if out and start < out[-1][1]:
            previous = out[-1]
            if stop > previous[1]:
                out[-1] = (previous[0], stop, stretch_placeholder(previous[2], stop - previous[0]))
            continue
        out.append((start, stop, instead))
    return out
