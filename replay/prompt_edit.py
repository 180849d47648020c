"""Prompt edits: a tap that replaces a text of the system and user messages in live model requests.

The agent still sends its own prompt; the request that goes out has the other text, in no other byte
changed. Answers from the recording stay as they are, so that two forks of one recording have the
same prefix and the same fault, and differ by what the model is asked from there on.

Messages are found by structure, as providers name them: `system`, `instructions` and the like at
the top, and the content of messages whose role is none of the model's or a tool's. Results of tools
are no prompt, also where they lie in a user message.
"""

from collections.abc import Iterator
from copy import replace
from hashlib import blake2b

import orjson
from msgspec import Struct

from traces.bodies.json_offsets import find_json_members, find_json_root, iter_json_items
from traces.dialects import find_dialect
from traces.model import BodyEdit, Exchange, Request, find_header

TOP_KEYS = (b"system", b"instructions", b"systemInstruction", b"system_instruction", b"preamble",
            b"prompt")  # fmt: skip
CONTENT_KEYS = (b"content", b"parts")
PROMPT_ROLES = ("system", "developer", "user", None)

type JsonSpan = tuple[int, int]
"""Offsets of a value in a body."""


class PromptEdit(Struct, frozen=True, kw_only=True):
    """A text of a prompt, and the text in its place."""

    old: str
    new: str


class PromptText(Struct, frozen=True, kw_only=True):
    """A text of a system or user message, and its place in the body, quotes included."""

    span: JsonSpan
    role: str
    text: str


def name_prompt_edits(edits: tuple[PromptEdit, ...]) -> str:
    """Return a short name of the edits; equal edits have equal names."""
    packed = orjson.dumps([[each.old, each.new] for each in edits])
    return f"prompt {blake2b(packed, digest_size=4).hexdigest()}"


class PromptSubstitution:
    """Makes the edits in each live model request of one run."""

    def __init__(self, edits: tuple[PromptEdit, ...]) -> None:
        self._edits = edits
        self.edited = 0
        """Number of requests that were changed."""

    def request(self, exchange: Exchange) -> Exchange:
        """Return the exchange with its prompt edited, unless it is already answered."""
        if exchange.response is not None or exchange.error is not None:
            return exchange
        found = [
            BodyEdit(start=each.span[0], stop=each.span[1], data=orjson.dumps(changed))
            for each in find_prompt_texts(exchange.request)
            if (changed := apply_prompt_edits(each.text, self._edits)) != each.text
        ]
        if not found:
            return exchange
        self.edited += 1
        edits = sorted((*exchange.edits, *found), key=lambda each: each.start)
        return replace(exchange, edits=tuple(edits))


def apply_prompt_edits(text: str, edits: tuple[PromptEdit, ...]) -> str:
    """Return a text with the edits made, in their order."""
    for each in edits:
        text = text.replace(each.old, each.new)
    return text


def find_prompt_texts(request: Request) -> tuple[PromptText, ...]:
    """Return the texts of the system and user messages of a model request, in order.

    Empty if it is no model request, or its body is compressed.
    """
    lens, encoding = find_dialect(request), find_header(request.headers, "content-encoding")
    if lens is None or encoding not in (None, "identity"):
        return ()
    body = request.body
    try:
        if not isinstance(orjson.loads(body), dict):
            return ()
    except orjson.JSONDecodeError:
        return ()
    members = find_json_members(body, find_json_root(body))
    spans = [span for key in TOP_KEYS if (span := members.get(key))]
    places = {place: "system" for span in spans for place in _find_content_texts(body, span)}
    if messages := members.get(lens.MESSAGES_KEY.encode()):
        places |= dict(_find_message_texts(body, messages))
    return tuple(
        PromptText(span=span, role=places[span], text=orjson.loads(body[slice(*span)]))
        for span in sorted(places)
    )


def _find_message_texts(body: bytes, span: JsonSpan) -> Iterator[tuple[JsonSpan, str]]:
    """Yield the texts of messages with their roles: of an array, or one text."""
    if _starts_with(body, span, b'"'):
        yield span, "user"
    if not _starts_with(body, span, b"["):
        return
    for item in iter_json_items(body, span[0]):
        if not _starts_with(body, item, b"{"):
            continue
        members = find_json_members(body, item[0])
        role = orjson.loads(body[slice(*members[b"role"])]) if b"role" in members else None
        if role in PROMPT_ROLES:
            for key in CONTENT_KEYS:
                if content := members.get(key):
                    for place in _find_content_texts(body, content):
                        yield place, role or "user"


def _find_content_texts(body: bytes, span: JsonSpan) -> Iterator[JsonSpan]:
    """Yield the texts of a content: a text, a part or a list of parts."""
    if _starts_with(body, span, b'"'):
        yield span
    elif _starts_with(body, span, b"{"):
        members = find_json_members(body, span[0])
        text = members.get(b"text")
        if text is not None and _starts_with(body, text, b'"'):
            yield text
        elif parts := members.get(b"parts"):
            yield from _find_content_texts(body, parts)
    elif _starts_with(body, span, b"["):
        for item in iter_json_items(body, span[0]):
            yield from _find_content_texts(body, item)


def _starts_with(body: bytes, span: JsonSpan, sign: bytes) -> bool:
    return body[span[0] : span[0] + 1] == sign
