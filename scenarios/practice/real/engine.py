"""Run a GGUF model in this process, by llama.cpp: bounded context, no other memory.

Only `LlamaEngine` imports the library, which is an extra.
"""

import secrets
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Protocol

from msgspec import Struct

from scenarios.practice.tools.json_schema import Json, JsonSchema
from traces.dialects.types import TokenUsage

type PromptTurn = Mapping[str, str]
"""Role and content of a message as the model's own template takes it."""


KEPT_CONVERSATIONS = 2
"""Conversations whose beginnings are kept, so that two agents by turns compute only what is new."""


class ContextExceeded(Exception):
    """The conversation has more tokens than the model's context."""


class InvalidModelRequest(Exception):
    """The engine cannot take the request: a tool's schema is broken, say."""


class EngineSettings(Struct, frozen=True, kw_only=True):
    """Limits of an engine."""

    context: int = 2048
    """Tokens of a conversation with its answer."""
    threads: int = 1
    """Threads; more than there are free processors makes it slower."""


class Sampling(Struct, frozen=True, kw_only=True):
    """How tokens are drawn: with equal values equal tokens are."""

    seed: int
    temperature: float
    max_tokens: int


class Completion(Struct, frozen=True, kw_only=True):
    """One answer of the engine; `whole` is False if it ended at the limit of tokens."""

    text: str
    whole: bool
    usage: TokenUsage


class CompletionEngine(Protocol):
    """Continues a conversation, with a JSON schema that the answer is forced into."""

    def complete(
        self, turns: Sequence[PromptTurn], schema: JsonSchema | None, sampling: Sampling
    ) -> Completion:
        """Return the next answer. Raises ContextExceeded and InvalidModelRequest."""
        ...


class LlamaEngine:
    """An engine on xllamacpp. It serves one request at a time."""

    def __init__(self, weights: Path, settings: EngineSettings) -> None:
        import xllamacpp

        params = xllamacpp.CommonParams()
        params.model.path = str(weights)
        params.n_ctx, params.n_parallel = settings.context * KEPT_CONVERSATIONS, KEPT_CONVERSATIONS
        params.slot_prompt_similarity = 0.95  # less is another conversation with the same beginning
        params.cache_ram_mib = 0  # by default it keeps 8 GB of earlier conversations
        params.cpuparams.n_threads = params.cpuparams_batch.n_threads = settings.threads
        params.cpuparams.poll = params.cpuparams_batch.poll = 0  # waits without computing
        params.warmup, params.verbosity = False, -1
        params.api_keys = [secrets.token_hex()]  # it also listens on a port of loopback
        self._server = xllamacpp.Server(params)

    def complete(
        self, turns: Sequence[PromptTurn], schema: JsonSchema | None, sampling: Sampling
    ) -> Completion:
        """Return the next answer. Raises ContextExceeded and InvalidModelRequest."""
        body: dict[str, object] = {
            "messages": list(turns),
            "seed": sampling.seed,
            "temperature": sampling.temperature,
            "max_tokens": sampling.max_tokens,
            "cache_prompt": True,
        }
        if schema is not None:
            named = {"name": "answer", "schema": schema}
            body["response_format"] = {"type": "json_schema", "json_schema": named}
        try:
            said: dict[str, Json] = self._server.handle_chat_completions(body)
        except ValueError as error:
            raise InvalidModelRequest(str(error)) from None
        if "choices" not in said:
            raise _read_engine_error(said)
        return _read_completion(said)


def _read_completion(said: Mapping[str, Json]) -> Completion:
    choices, usage = said["choices"], said["usage"]
    assert isinstance(choices, list)
    assert isinstance(usage, dict)
    choice = choices[0]
    assert isinstance(choice, dict)
    message = choice["message"]
    assert isinstance(message, dict)
    prompt, completion = usage["prompt_tokens"], usage["completion_tokens"]
    assert isinstance(prompt, int)
    assert isinstance(completion, int)
    return Completion(
        text=str(message.get("content") or ""),
        whole=choice["finish_reason"] != "length",
        usage=TokenUsage(prompt_tokens=prompt, completion_tokens=completion),
    )


def _read_engine_error(said: Mapping[str, Json]) -> Exception:
    error = said.get("error")
    said = error if isinstance(error, dict) else said
    text = str(said.get("message") or said)
    if said.get("type") == "exceed_context_size_error":
        return ContextExceeded(text)
    return RuntimeError(f"the engine failed: {text}")
