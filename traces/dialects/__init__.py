"""Dialect lenses: the only places that parse or write what a model provider speaks.

A lens reads a request body (the conversation so far, and the tool results in it), reads an
answer (one step), writes an answer, and replaces one tool result while touching no other
byte. `lens(request)` finds the one that fits by path suffix and body shape, never by host:
Azure, localhost and renamed endpoints are model traffic too.

Law, held by a property test: replacing a result by its own text changes no byte.
"""

from traces.dialects import (
    anthropic_messages,
    gemini,
    observed_history,
    openai_chat,
    openai_responses,
    text_history,
)
from traces.latest import Latest
from traces.model import Request
from traces.step import Lens

LENSES: tuple[Lens, ...] = (
    text_history,
    observed_history,
    openai_chat,
    anthropic_messages,
    openai_responses,
    gemini,
)
"""The first that fits; histories that are text look like chat completions, and are narrower."""


def beside(request: Request) -> bool:
    """True for model traffic that asks for no answer: the upgrade to a WebSocket, and the like."""
    return openai_responses.beside(request)


def ends(request: Request, message: bytes) -> bool:
    """True if the answer to a turn over WebSocket is whole with this message of the server.

    False where that is not known: other protocols do not say it, or not to us.
    """
    return openai_responses.fits(request) and openai_responses.ends(message)


@Latest
def lens(request: Request) -> Lens | None:
    """The dialect this request is spoken in; None if it is no model traffic."""
    for found in LENSES:
        if found.fits(request):
            return found
    return None
