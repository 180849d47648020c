"""Detect placeholders an agent cannot know: text of this run that looks like a redacted secret.

A recorded answer may contain a placeholder, and an agent that received it may send it back; so may
an agent whose recorded command contains it. Any other text that equals a placeholder of the
recording is unrelated text, and does not match that secret.
"""

from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property

from traces.bodies.content_encoding import decode_content_or_raw
from traces.model import Exchange, Request
from traces.redaction.fingerprints import RedactionRecord
from traces.redaction.placeholder import PLACEHOLDER
from traces.redaction.unescape import EscapeDecoder

_EVENT_READER = EscapeDecoder()
"""Joins the texts of streamed events, which may split a placeholder."""


class ForgedPlaceholders:
    """The placeholders of a recording that an agent may have received."""

    def __init__(
        self,
        exchanges: Sequence[Exchange],
        redactions: Iterable[RedactionRecord],
        given: Iterable[str] = (),
    ) -> None:
        """`given` are texts that the agent received in addition to the answers."""
        self._exchanges, self._texts = exchanges, tuple(given)
        self._tags = frozenset(each.tag.encode() for each in redactions)

    def has_forged_placeholder(self, request: Request) -> bool:
        """Return whether URL or body contain a placeholder that no recorded answer contains."""
        if not self._tags:
            return False
        body = decode_content_or_raw(request.headers, request.body)
        url = request.url.encode("utf-8", "surrogatepass")
        return any(
            not self._given_tags.issuperset(_find_placeholder_tags(text) & self._tags)
            for text in (url, body)
        )

    @cached_property
    def answer_tags(self) -> frozenset[bytes]:
        """The tags in the recorded answers."""
        return frozenset(tag for exchange in self._exchanges for tag in _iter_given_tags(exchange))

    @cached_property
    def _given_tags(self) -> frozenset[bytes]:
        texts = (text.encode("utf-8", "surrogateescape") for text in self._texts)
        return self.answer_tags.union(*map(_find_placeholder_tags, texts))


def _iter_given_tags(exchange: Exchange) -> Iterator[bytes]:
    if (answer := exchange.response) is not None:
        body = decode_content_or_raw(answer.headers, answer.body)
        yield from _find_placeholder_tags(body)
        for view in _EVENT_READER.join_event_texts(body, {}).values():
            yield from _find_placeholder_tags(view.text)
        for name, value in (*answer.headers, *answer.trailers):
            yield from _find_placeholder_tags(f"{name}: {value}".encode("latin-1", "replace"))


def _find_placeholder_tags(text: bytes) -> set[bytes]:
    if b"RE" not in text and b"RD" not in text:
        return set()
    return set(PLACEHOLDER.findall(text))
