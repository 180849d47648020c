"""A recorded request body, sent to any model through litellm, which is imported when needed."""

import asyncio
import json
import os
import warnings
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from types import MappingProxyType
from typing import Protocol, runtime_checkable

from msgspec import Struct

from traces import dialects
from traces.dialects.types import ModelAnswer

_COMMON_FIELDS = frozenset(("tools", "tool_choice", "temperature", "top_p"))
_CHAT_FIELDS = _COMMON_FIELDS | {
    "messages",
    "parallel_tool_calls",
    "max_tokens",
    "max_completion_tokens",
    "stop",
}
MODEL_REQUEST_FIELDS: Mapping[str, frozenset[str]] = MappingProxyType(
    {
        "openai_chat": _CHAT_FIELDS | {"response_format", "reasoning_effort"},
        "text_history": _CHAT_FIELDS,
        "react_text": _CHAT_FIELDS,
        "observed_history": _CHAT_FIELDS,
        "anthropic_messages": _COMMON_FIELDS
        | {"messages", "system", "top_k", "max_tokens", "stop_sequences", "thinking"},
        "openai_responses": _COMMON_FIELDS
        | {
            "input",
            "instructions",
            "parallel_tool_calls",
            "max_output_tokens",
            "reasoning",
            "text",
        },
    }
)
"""Request fields that are part of the prompt; the others concern account or transport."""
_NAMED_EVENTS = frozenset(("anthropic_messages", "openai_responses"))
"""Dialects whose server-sent events have names; streams of the others end in `[DONE]`."""


class ModelReply(Struct, frozen=True, kw_only=True):
    """The answer to one request, or an error."""

    answer: ModelAnswer | None
    error: str | None = None


def build_litellm_arguments(dialect: str, body: bytes) -> dict[str, object]:
    """Return the keyword arguments of the litellm call for a recorded request body."""
    fields: dict[str, object] = json.loads(body)
    return {key: value for key, value in fields.items() if key in MODEL_REQUEST_FIELDS[dialect]}


class LitellmClient:
    """A model of litellm, which reads keys and base URLs from the environment."""

    def __init__(self, name: str, *, timeout: float) -> None:
        # Otherwise the import fetches a price list over the network, with retries.
        os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")
        import litellm
        import openai

        litellm.suppress_debug_info = True
        # Its own types warn about usage that its own translation made.
        warnings.filterwarnings("ignore", "Pydantic serializer warnings", UserWarning)
        self._name, self._timeout, self._error = name, timeout, openai.OpenAIError
        self._ask: Mapping[str, Callable[..., Awaitable[object]]] = {
            "openai_chat": litellm.acompletion,
            "text_history": litellm.acompletion,
            "react_text": litellm.acompletion,
            "observed_history": litellm.acompletion,
            "anthropic_messages": litellm.anthropic_messages,
            "openai_responses": litellm.aresponses,
        }

    async def ask(self, dialect: str, body: bytes) -> ModelReply:
        """Return one answer, or a provider or network failure as `error`."""
        try:
            async with asyncio.timeout(self._timeout):
                response = await self._ask[dialect](
                    model=self._name,
                    num_retries=2,
                    drop_params=True,
                    **build_litellm_arguments(dialect, body),
                )
        except TimeoutError:
            return ModelReply(answer=None, error=f"nothing came for {self._timeout:g} s")
        except (self._error, ValueError) as error:
            return ModelReply(answer=None, error=f"{type(error).__name__}: {error}".splitlines()[0])
        return ModelReply(answer=_parse_litellm_answer(dialect, response))

    async def answer_request(
        self, dialect: str, arguments: Mapping[str, object]
    ) -> AsyncIterator[bytes]:
        """Yield the body of the answer in the dialect of the request, in pieces if it streams.

        Raises TimeoutError if nothing came for the client's timeout, and `openai.OpenAIError` or
        ValueError for a refusal or a failure, before the first piece or between two.
        """
        async with asyncio.timeout(self._timeout):
            response = await self._ask[dialect](
                model=self._name, num_retries=0, drop_params=True, **arguments
            )
        if not isinstance(response, AsyncIterator):
            yield _to_json(response, exclude_none=True).encode()
            return
        pieces = aiter(response)
        while True:
            try:
                async with asyncio.timeout(self._timeout):
                    piece: object = await anext(pieces)
            except StopAsyncIteration:
                break
            yield _to_server_event(dialect, piece)
        if dialect not in _NAMED_EVENTS:
            yield b"data: [DONE]\n\n"


@runtime_checkable
class _PydanticResponse(Protocol):
    """A pydantic model; for some dialects litellm answers with plain data instead."""

    def model_dump_json(self, *, exclude_none: bool = False) -> str: ...


def _to_json(said: object, *, exclude_none: bool = False) -> str:
    if isinstance(said, _PydanticResponse):
        return said.model_dump_json(exclude_none=exclude_none)
    return json.dumps(said)


def _to_server_event(dialect: str, piece: object) -> bytes:
    """Format a piece of a stream as a server-sent event; litellm formats those of Anthropic."""
    if isinstance(piece, bytes):
        return piece
    data = _to_json(piece, exclude_none=True)
    kind = f"event: {json.loads(data)['type']}\n" if dialect in _NAMED_EVENTS else ""
    return f"{kind}data: {data}\n\n".encode()


def _parse_litellm_answer(dialect: str, said: object) -> ModelAnswer | None:
    """Parse the answer by its dialect, like a recorded one."""
    text = _to_json(said)
    lens = next(lens for lens in dialects.LENSES if dialect == lens.NAME)
    return lens.parse_model_answer((("content-type", "application/json"),), text.encode())
