"""Placeholders that an agent cannot know: a text of this run that looks like a redacted secret.

A recorded answer may hold a placeholder, and an agent that was given it may send it back; so may
one in whose recorded command it stands. Any other text that is the placeholder of a secret of the
recording is a text of its own, and is not that secret.
"""

from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property

from traces.encoding import legible
from traces.model import Exchange, Request
from traces.redact import PLACEHOLDER, Redaction
from traces.spelling import Reader

_EVENTS = Reader()
"""Joins what events say bit by bit: they may cut a placeholder."""


class Forgeries:
    """Which placeholders of a recording an agent can have been given."""

    def __init__(
        self,
        exchanges: Sequence[Exchange],
        redactions: Iterable[Redaction],
        given: Iterable[str] = (),
    ) -> None:
        """`given` are texts that the agent was given besides the answers."""
        self._exchanges, self._texts = exchanges, tuple(given)
        self._tags = frozenset(each.tag.encode() for each in redactions)

    def has_any(self, request: Request) -> bool:
        """True if URL or body hold a placeholder that no answer of the recording holds."""
        if not self._tags:
            return False
        body = legible(request.headers, request.body)
        url = request.url.encode("utf-8", "surrogatepass")
        return any(not self._given.issuperset(_tags(text) & self._tags) for text in (url, body))

    @cached_property
    def _given(self) -> frozenset[bytes]:
        told = {tag for exchange in self._exchanges for tag in _given(exchange)}
        return frozenset(
            told.union(*(_tags(text.encode("utf-8", "surrogateescape")) for text in self._texts))
        )


def _given(exchange: Exchange) -> Iterator[bytes]:
    if (answer := exchange.response) is not None:
        body = legible(answer.headers, answer.body)
        yield from _tags(body)
        for view in _EVENTS.framed(body):
            yield from _tags(view.text)
        for name, value in (*answer.headers, *answer.trailers):
            yield from _tags(f"{name}: {value}".encode("latin-1", "replace"))


def _tags(text: bytes) -> set[bytes]:
    if b"RE" not in text and b"RD" not in text:
        return set()
    return set(PLACEHOLDER.findall(text))
