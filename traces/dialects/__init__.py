"""Dialect lenses: the only modules that parse or write the formats of model providers.

A lens reads a request body (the conversation so far, with its tool results), reads a response (one
step), writes a response, and replaces one tool result without changing any other byte.
`find_dialect(request)` selects the lens by path suffix and body shape, never by host: Azure,
localhost and renamed endpoints are model traffic too.

Invariant, checked by a property test: replacing a result by its own text changes no byte.
"""

from traces.dialects import (
    anthropic_messages,
    bedrock_anthropic,
    bedrock_converse,
    cohere_chat,
    gemini,
    mini_swe_agent,
    ollama_chat,
    ollama_generate,
    openai_chat,
    openai_responses,
    react_text,
    smolagents,
)
from traces.dialects.types import DialectLens
from traces.identity_cache import IdentityCache
from traces.model import Request

LENSES: tuple[DialectLens, ...] = (
    mini_swe_agent,
    smolagents,
    react_text,
    openai_chat,
    anthropic_messages,
    openai_responses,
    gemini,
    ollama_chat,
    ollama_generate,
    bedrock_converse,
    bedrock_anthropic,
    cohere_chat,
)
"""In order of precedence; text histories look like chat completions and are narrower."""


def is_unanswered_model_traffic(request: Request) -> bool:
    """Whether this is model traffic without a response, such as the upgrade to a WebSocket."""
    return openai_responses.is_websocket_traffic(request)


def is_end_of_turn(request: Request, message: bytes) -> bool:
    """Whether this message of the server completes the response to a turn over a WebSocket.

    False if unknown: other protocols have no such marker, or none known here.
    """
    return openai_responses.can_read_request(request) and openai_responses.is_final_event(message)


@IdentityCache
def find_dialect(request: Request) -> DialectLens | None:
    """Return the dialect of this request; None if it is not model traffic."""
    for lens in LENSES:
        if lens.can_read_request(request):
            return lens
    return None
