"""Chat completions through the official openai SDK, with its built-in retries."""

import os
from collections.abc import Iterable, Mapping, Sequence

import httpx
import openai
from openai.types.chat import ChatCompletionChunk, ChatCompletionStreamOptionsParam

from scenarios.practice.agents.plain_chat import (
    ChatMessage,
    ChatReply,
    ChatToolCall,
    make_tool_call,
)


class OpenAIChat:
    """A client of one model; `http` is the shared client, which follows the proxy variables."""

    def __init__(self, http: httpx.Client, url: str, model: str, *, stream: bool = False) -> None:
        key = os.environ.get("OPENAI_API_KEY", "practice")
        self._client = openai.OpenAI(base_url=url, api_key=key, http_client=http, timeout=120)
        self._model = model
        self._stream = stream

    def ask(
        self, messages: Sequence[ChatMessage], offered: Sequence[Mapping[str, object]]
    ) -> ChatReply:
        """Return the next text and tool calls."""
        # Passed as `messages`, the SDK would validate every field of every message against its
        # parameter types, which takes two thirds of a run; the request is the same.
        body = {"messages": messages, "tools": offered}
        create = self._client.chat.completions.create
        if self._stream:
            usage: ChatCompletionStreamOptionsParam = {"include_usage": True}
            with create(
                model=self._model, messages=(), stream=True, stream_options=usage, extra_body=body
            ) as stream:
                return _join_stream(stream)
        message = create(model=self._model, messages=(), extra_body=body).choices[0].message
        calls = [
            make_tool_call(call.id, call.function.name, call.function.arguments)
            for call in message.tool_calls or ()
            if call.type == "function"
        ]
        return message.content or "", calls


def _join_stream(stream: Iterable[ChatCompletionChunk]) -> ChatReply:
    """Join text and calls of a streamed answer; the fragments of a call are joined by index."""
    texts: list[str] = []
    calls: dict[int, ChatToolCall] = {}
    for chunk in stream:
        for choice in chunk.choices:
            texts.append(choice.delta.content or "")
            for piece in choice.delta.tool_calls or ():
                call = calls.setdefault(piece.index, make_tool_call("", "", ""))
                call["id"] += piece.id or ""
                if piece.function is not None:
                    call["function"]["name"] += piece.function.name or ""
                    call["function"]["arguments"] += piece.function.arguments or ""
    return "".join(texts), [call for _, call in sorted(calls.items())]
