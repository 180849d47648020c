"""What goes wrong with a model's answers, in the words of each dialect.

A lens reads and writes what a provider says when all is well. Here is what it says when it is
not: the body of an error, the event that breaks a stream off; and where in an answer the text
stands that may be cut short, or all that it says.
"""

from collections.abc import Mapping
from typing import Protocol

from traces.dialects import (
    anthropic_messages,
    gemini,
    observed_history,
    openai_chat,
    openai_responses,
    text_history,
    wire,
)
from traces.dialects.failing import chat, generate, messages, responses
from traces.dialects.failing.spots import Spots
from traces.encoding import plain
from traces.model import Edit, Request
from traces.step import Lens

__all__ = ["Failing", "Spots", "failing", "spoken", "streams"]


class Failing(Protocol):
    """What a module provides for its dialect, as module-level functions."""

    @property
    def ID(self) -> str:  # noqa: N802
        """What the ids of answers begin with."""
        ...

    def failure(self, status: int, message: str | None = None) -> bytes:
        """The body of an answer with this status; a provider's words where none are said."""
        ...

    def breakdown(self) -> bytes:
        """The event by which a stream says that nothing more comes."""
        ...

    def spots(self, body: bytes) -> Spots | None:
        """Where the last call's arguments stand, or the text of an answer without calls.

        None where it says neither.
        """
        ...

    def emptied(self, body: bytes) -> tuple[Edit, ...]:
        """The edits that leave an answer with neither text nor calls; none where it has neither."""
        ...


_BY_NAME: Mapping[str, Failing] = {
    text_history.NAME: chat,
    observed_history.NAME: chat,
    openai_chat.NAME: chat,
    anthropic_messages.NAME: messages,
    openai_responses.NAME: responses,
    gemini.NAME: generate,
}


def streams(request: Request) -> bool:
    """Whether a request wants its answer as a stream: its body says so, or its path."""
    if gemini.fits(request):
        return gemini.streams(request)
    return wire.load(plain(request.headers, request.body) or b"").get("stream") is True


def spoken(body: bytes) -> str | None:
    """The last call's arguments, or the text, of an answer in any dialect; None for nothing."""
    for each in _BY_NAME.values():
        try:
            spots = each.spots(body)
        except ValueError:  # an answer that broke off inside a value
            return None
        if spots is not None:
            return spots.text(body)
    return None


def failing(dialect: Lens) -> Failing | None:
    """How answers in a dialect go wrong; None where nobody has said it yet."""
    return _BY_NAME.get(dialect.NAME)
