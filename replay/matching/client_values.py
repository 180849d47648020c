"""Values that a client chose for itself, and those that stand for them in this run.

A request may differ from the recorded one in an id that the client drew, a value that a rule maps,
or a number that it gave to one of several concurrent things. All of a run's requests share one
renaming, one-to-one: what stands for a recorded value once stands for it always, and for no other.
A later request may repeat such a value in any place, since a model repeats what it reads; and a
recorded answer is played with the values of this run.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from copy import replace

from replay.matching.typed_values import get_type_pattern
from replay.value_renaming import ValueRenaming
from traces.model import (
    BodyEdit,
    Request,
    Response,
    apply_body_edits,
    apply_edits_to_chunks,
    find_header,
)

type ValuePair = tuple[str, str]
"""A recorded value and the one of this run."""

MIN_MAPPED_LENGTH = 4
"""Minimum characters of a mapped value that replaces another in answers."""
_ID = re.compile(get_type_pattern("uuid"))
_PREFIX = re.compile(r"[A-Za-z]+_")
_WORD = re.compile(
    r"(?<![0-9A-Za-z])(?:[0-9A-Fa-f]{8}(?:-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}|[0-9A-Za-z]{8,})"
    r"(?![0-9A-Za-z])"
)
_NAME_START = r"(?:(?<![0-9A-Za-z_\\\\-])|(?<=\\\\[bfnrt])|(?<=\\\\u[0-9A-Fa-f]{4}))"
"""Also after an escape of JSON."""
_LABEL = re.compile(
    rf"{_NAME_START}(?P<name>[A-Za-z][\w-]*)(?P<sign>(?:\\*\")? ?[:=] ?(?:\\*\")?)"
    r"(?P<value>\d{1,7})(?![\w.-])"
)
_LABEL_KEY = re.compile(r"[\w-]+ \d{1,7}")
_NAME_WORD = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")
_CONCURRENT_THINGS = frozenset(
    ("agent", "cmd", "command", "exec", "job", "process", "session", "shell", "task", "terminal",
     "thread", "worker")
)  # fmt: skip


def keep_ids(pairs: Iterable[ValuePair]) -> Iterator[ValuePair]:
    """Yield the pairs of different ids, without prefixes.

    A time or a count is no id: two requests may have the same one by chance.
    """
    for was, now in pairs:
        pair = strip_prefix(was), strip_prefix(now)
        if was != now and all(_ID.fullmatch(each) and _WORD.fullmatch(each) for each in pair):
            yield pair


def strip_prefix(id: str) -> str:
    """Return an id without the kind that it begins with (`ses_`)."""
    return _PREFIX.sub("", id, count=1)


def find_labels(text: str) -> list[str]:
    """Return the numbers that a text gives to concurrent things of a client, each as `NAME 3`."""
    return [
        f"{match['name']} {match['value']}"
        for match in _LABEL.finditer(text)
        if _is_label_name(match["name"])
    ]


def _is_label_name(name: str) -> bool:
    """Return whether a name is that of a number which a client gives: `shellId`, `pid`."""
    words = [word.lower() for word in _NAME_WORD.findall(name)]
    return words[-1:] in (["pid"], ["tid"]) or (
        words[-1:] == ["id"] and not _CONCURRENT_THINGS.isdisjoint(words)
    )


class ClientValues:
    """The renaming of one run; a label is `NAME 3` in it, other values are as they are."""

    def __init__(self) -> None:
        self._renaming = ValueRenaming()
        self._mapped: dict[str, str] = {}
        self._has_ids = self._has_labels = False

    @property
    def names(self) -> Mapping[str, str]:
        """The recorded values, and those of this run that stand for them."""
        return self._renaming.live_of

    def find_new(self, pairs: Iterable[ValuePair]) -> tuple[ValuePair, ...]:
        """Return the pairs that are not in the renaming yet."""
        return tuple(pair for pair in pairs if pair[0] not in self.names)

    def find_conflict(self, pairs: Iterable[ValuePair]) -> ValuePair | None:
        """Return a pair of which a value stands for another one already, or None."""
        return self._renaming.find_conflict(pairs)

    def add(self, pairs: Iterable[ValuePair]) -> None:
        """Add pairs without a conflict."""
        for was, now in pairs:
            self._renaming.add(was, now)
            if _LABEL_KEY.fullmatch(was):
                self._has_labels = True
            elif _WORD.fullmatch(was):
                self._has_ids = True
            elif was != now:
                self._mapped[was] = now

    def with_labels(self, pairs: Iterable[ValuePair]) -> "ClientValues | None":
        """Return a copy with further labels; None if one contradicts the renaming."""
        if self.find_conflict(pairs) is not None:
            return None
        copied = ClientValues()
        copied.add((*self.names.items(), *pairs))
        return copied

    def to_recorded(self, request: Request) -> Request:
        """Return a request with the recorded values in URL and body, the same one without any."""
        names = self._renaming.recorded_of
        if not (self._has_ids or self._has_labels) or not _is_plain(request.headers):
            return request
        body = apply_body_edits(request.body, self._find_edits(request.body, names))
        url = _WORD.sub(lambda match: names.get(match[0], match[0]), request.url)
        is_same = url == request.url and body == request.body
        return request if is_same else replace(request, url=url, body=body)

    def to_present(self, answer: Response) -> Response:
        """Return a recorded answer with this run's values in its body."""
        if not (self._mapped or self._has_ids or self._has_labels) or not _is_plain(answer.headers):
            return answer
        edits = self._find_edits(answer.body, self._renaming.live_of)
        if self._mapped:
            edits = _merge_edits(edits, _find_mapped_edits(answer.body, self._mapped))
        if not edits:
            return answer
        return replace(answer, chunks=apply_edits_to_chunks(answer.chunks, edits))

    def _find_edits(self, body: bytes, names: Mapping[str, str]) -> tuple[BodyEdit, ...]:
        text, edits = body.decode("latin-1"), list[BodyEdit]()
        for match in _WORD.finditer(text) if self._has_ids else ():
            if match[0] in names:
                edits.append(_to_edit(match, 0, names[match[0]]))
        for match in _LABEL.finditer(text) if self._has_labels else ():
            other = names.get(f"{match['name']} {match['value']}")
            if other is not None:
                edits.append(_to_edit(match, "value", other.rpartition(" ")[2]))
        return tuple(sorted(edits, key=lambda edit: edit.start))


def _to_edit(match: re.Match[str], group: int | str, text: str) -> BodyEdit:
    return BodyEdit(start=match.start(group), stop=match.end(group), data=text.encode("latin-1"))


def _find_mapped_edits(body: bytes, names: Mapping[str, str]) -> tuple[BodyEdit, ...]:
    """Return the edits that rename mapped values, also within words."""
    data = {a.encode(): b.encode() for a, b in names.items() if len(a) >= MIN_MAPPED_LENGTH}
    if not data:
        return ()
    pattern = re.compile(b"|".join(map(re.escape, sorted(data, key=len, reverse=True))))
    return tuple(
        BodyEdit(start=match.start(), stop=match.end(), data=data[match[0]])
        for match in pattern.finditer(body)
    )


def _merge_edits(one: Iterable[BodyEdit], two: Iterable[BodyEdit]) -> tuple[BodyEdit, ...]:
    """Return both sets of edits in order; of two that overlap, the first."""
    merged = list[BodyEdit]()
    for edit in sorted((*one, *two), key=lambda edit: edit.start):
        if not merged or merged[-1].stop <= edit.start:
            merged.append(edit)
    return tuple(merged)


def _is_plain(headers: Iterable[tuple[str, str]]) -> bool:
    return find_header(tuple(headers), "content-encoding") in (None, "identity")
