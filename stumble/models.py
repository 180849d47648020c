"""A recorded request body, sent to any model through litellm, which is imported when needed."""

import asyncio
import json
import os
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Protocol, runtime_checkable

from traces import dialects
from traces.step import Answer

_ALL = frozenset(("tools", "tool_choice", "temperature", "top_p"))
_CHAT = _ALL | {"messages", "parallel_tool_calls", "max_tokens", "max_completion_tokens", "stop"}
KEPT: Mapping[str, frozenset[str]] = MappingProxyType(
    {
        "openai_chat": _CHAT | {"response_format", "reasoning_effort"},
        "text_history": _CHAT,
        "observed_history": _CHAT,
        "anthropic_messages": _ALL
        | {"messages", "system", "top_k", "max_tokens", "stop_sequences", "thinking"},
        "openai_responses": _ALL
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
"""What of a request belongs to the question; the rest is about the account or the transport."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What came of one question."""

    answer: Answer | None
    error: str | None = None


def arguments(dialect: str, body: bytes) -> dict[str, object]:
    """The keyword arguments of a litellm call that asks what a recorded body asked."""
    said: dict[str, object] = json.loads(body)
    return {key: value for key, value in said.items() if key in KEPT[dialect]}


class Model:
    """Any model that litellm knows; keys and addresses come from the environment, as litellm's."""

    def __init__(self, name: str, *, timeout: float) -> None:
        # Otherwise the import fetches a price list over the network, with retries.
        os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")
        import litellm
        import openai

        litellm.suppress_debug_info = True
        self._name, self._timeout, self._error = name, timeout, openai.OpenAIError
        self._ask: Mapping[str, Callable[..., Awaitable[object]]] = {
            "openai_chat": litellm.acompletion,
            "text_history": litellm.acompletion,
            "observed_history": litellm.acompletion,
            "anthropic_messages": litellm.anthropic_messages,
            "openai_responses": litellm.aresponses,
        }

    async def ask(self, dialect: str, body: bytes) -> Asked:
        """One answer; what the provider or the way there refused is the `error`."""
        try:
            async with asyncio.timeout(self._timeout):
                said = await self._ask[dialect](
                    model=self._name,
                    num_retries=2,
                    drop_params=True,
                    **arguments(dialect, body),
                )
        except TimeoutError:
            return Asked(answer=None, error=f"nothing came for {self._timeout:g} s")
        except (self._error, ValueError) as error:
            return Asked(answer=None, error=f"{type(error).__name__}: {error}".splitlines()[0])
        return Asked(answer=_read(dialect, said))


@runtime_checkable
class _Typed(Protocol):
    """litellm answers with models of pydantic or, for some dialects, with plain data."""

    def model_dump_json(self) -> str: ...


def _read(dialect: str, said: object) -> Answer | None:
    """The answer through the lens of its dialect, so that it reads like a recorded one."""
    text = said.model_dump_json() if isinstance(said, _Typed) else json.dumps(said)
    lens = next(lens for lens in dialects.LENSES if dialect == lens.NAME)
    return lens.read((("content-type", "application/json"),), text.encode())
