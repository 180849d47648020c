"""Rename values between a recording and the live world: ids that the world made anew.

The agent and its model see the recorded ids; each later live request has the live ones, and each
later live answer the recorded ones again. The renaming is one-to-one, and all values are renamed
at once, so that two swapped ids do not become one.
"""

import re
from collections.abc import Iterable, Mapping
from copy import replace

from traces.bodies.content_encoding import decode_content
from traces.model import (
    BodyEdit,
    Chunk,
    Exchange,
    Request,
    Response,
    apply_body_edits,
    compose_body_edits,
    find_header,
)
from traces.value_names import compile_values, rename_text, rename_url

_ID_NAME = re.compile(r"(?i)(?:id|ids|key|no|nr|num|number|ref|uid|uuid|pk|code|handle)\Z")
_NAME_WORD = re.compile(r"[A-Za-z][a-z]*\Z|[A-Z]+\Z")


def is_id_name(name: str) -> bool:
    """Return whether a field of this name holds an id: `id`, `booking_id`, `orderNumber`."""
    word = _NAME_WORD.search(name)
    return word is not None and _ID_NAME.match(word[0]) is not None


class ValueRenaming:
    """The recorded values of one run and the live ones that stand for them."""

    def __init__(self) -> None:
        self.live_of: dict[str, str] = {}
        self.recorded_of: dict[str, str] = {}

    def __bool__(self) -> bool:
        return bool(self.live_of)

    def add(self, recorded: str, live: str) -> bool:
        """Add a pair; return False if one of the two stands for another value already."""
        if self.find_conflict([(recorded, live)]) is not None:
            return False
        self.live_of[recorded], self.recorded_of[live] = live, recorded
        return True

    def find_conflict(self, pairs: Iterable[tuple[str, str]]) -> tuple[str, str] | None:
        """Return a pair of which a value stands for another one, here or in the pairs; or None."""
        live_of, recorded_of = dict[str, str](), dict[str, str]()
        for recorded, live in pairs:
            known_live = live_of.setdefault(recorded, self.live_of.get(recorded, live))
            known_recorded = recorded_of.setdefault(live, self.recorded_of.get(live, recorded))
            if (known_recorded, known_live) != (recorded, live):
                return recorded, live
        return None

    def to_live(self, exchange: Exchange) -> Exchange:
        """Return the exchange with the live values in what is forwarded."""
        request = exchange.forwarded
        edits = find_renaming_edits(request.body, self.live_of) if _is_plain(request) else ()
        used = [pair for pair in self.live_of.items() if _occurs(request, pair[0])]
        if not used:
            return exchange
        renamed = tuple(text for pair in used for text in pair)
        edits = compose_body_edits(exchange.edits, edits, exchange.request.body)
        return replace(exchange, edits=edits, renamed=renamed)

    def to_recorded(self, answer: Response) -> Response:
        """Return a live answer with the recorded values in place of the live ones."""
        headers = tuple(
            (name, rename_text(value, self.recorded_of)) for name, value in answer.headers
        )
        body = decode_content(answer.headers, answer.body)
        edits = () if body is None else find_renaming_edits(body, self.recorded_of)
        if body is None or not edits:
            return replace(answer, headers=headers)
        return replace_body(replace(answer, headers=headers), apply_body_edits(body, edits))


def replace_body(answer: Response, body: bytes) -> Response:
    """Return a complete answer with another body, not encoded, at the time at which it ended."""
    headers = tuple(
        (name, str(len(body)) if name.lower() == "content-length" else value)
        for name, value in answer.headers
        if name.lower() != "content-encoding"
    )
    at = answer.chunks[-1].at if answer.chunks else answer.at
    return replace(answer, headers=headers, chunks=(Chunk(at=at, data=body),))


def find_renaming_edits(body: bytes, names: Mapping[str, str]) -> tuple[BodyEdit, ...]:
    """Return the edits that rename values in a body. A number is renamed in fields of ids alone."""
    texts = [name for name in names if not name.isdecimal()]
    numbers = [name for name in names if name.isdecimal()]
    found = []
    text = body.decode("latin-1")
    for match in compile_values(texts).finditer(text) if texts else ():
        found.append((match.start(), match.end(), match[0]))
    for match in _compile_fields(numbers).finditer(text) if numbers else ():
        if is_id_name(match["name"]):
            found.append((*match.span("value"), match["value"]))
    return tuple(
        BodyEdit(start=start, stop=stop, data=names[value].encode())
        for start, stop, value in sorted(found)
    )


def _occurs(request: Request, value: str) -> bool:
    names = {value: "\0"}
    return (
        rename_url(request.url, names) != request.url
        or any(rename_text(text, names) != text for _, text in request.headers)
        or (_is_plain(request) and bool(find_renaming_edits(request.body, names)))
    )


def _is_plain(request: Request) -> bool:
    return find_header(request.headers, "content-encoding") in (None, "identity")


def _compile_fields(values: Iterable[str]) -> re.Pattern[str]:
    """Return a pattern for numbers in fields of JSON, also of JSON in a string, and of forms."""
    listed = "|".join(re.escape(each) for each in values)
    name, value = r"(?P<name>[\w-]+)", rf"(?P<value>{listed})"
    return re.compile(rf"(?<![\w-]){name}(?:\\*\"\s*:\s*(?:\\*\")?|=){value}(?![\w.-])")
