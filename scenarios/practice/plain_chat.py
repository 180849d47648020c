"""Chat completions by one POST and no SDK, which starts in a quarter of the time and never retries.

Source of the wire: the OpenAI API reference, "Create chat completion", not streamed.
"""

import os
from collections.abc import Mapping, Sequence
from typing import Protocol, TypedDict

import httpx

type Message = Mapping[str, object]


class Function(TypedDict):
    """What is called, with its arguments as JSON text."""

    name: str
    arguments: str


class ToolCall(TypedDict):
    """A call as the wire has it."""

    id: str
    type: str
    function: Function


type Reply = tuple[str, list[ToolCall]]
"""The text of an answer, and the tools that it calls."""


class Chat(Protocol):
    """Any way to ask a model."""

    def ask(self, messages: Sequence[Message], offered: Sequence[Mapping[str, object]]) -> Reply:
        """The next text and tool calls of a conversation; raises if the model cannot be had."""
        ...


class PlainChat:
    """Asks one model; raises httpx.HTTPError on any answer but 200."""

    def __init__(self, http: httpx.Client, url: str, model: str) -> None:
        self._http = http
        self._url = f"{url}/chat/completions"
        self._model = model

    def ask(self, messages: Sequence[Message], offered: Sequence[Mapping[str, object]]) -> Reply:
        """The next text and tool calls."""
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
            tool_call(call["id"], call["function"]["name"], call["function"]["arguments"])
            for call in message.get("tool_calls") or ()
        ]
        return message.get("content") or "", calls


def tool_call(id: str, name: str, arguments: str) -> ToolCall:
    """A call of a function."""
    return {"id": id, "type": "function", "function": {"name": name, "arguments": arguments}}
