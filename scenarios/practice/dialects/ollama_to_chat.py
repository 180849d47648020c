"""Convert requests for Ollama's own API to chat completions, which the model reads.

Wire facts: a call's `arguments` is an object, and most clients return no id; a result then belongs
to the next call of its `tool_name`, or to the next call. A prompt is a conversation of one message.
"""

import json
from collections.abc import Iterator

from scenarios.practice.conversation import get_content_text
from scenarios.practice.tools.json_schema import Json, JsonRow


def convert_ollama_messages(body: JsonRow) -> list[JsonRow]:
    """Return the conversation, each call with an id."""
    messages = body.get("messages")
    waiting: list[tuple[str, str]] = []
    return [
        _convert_ollama_message(message, turn, waiting)
        for turn, message in enumerate(messages if isinstance(messages, list) else ())
        if isinstance(message, dict)
    ]


def _convert_ollama_message(message: JsonRow, turn: int, waiting: list[tuple[str, str]]) -> JsonRow:
    """Convert one message; `waiting` holds name and id of each call without a result yet."""
    text = get_content_text(message.get("content"))
    if message.get("role") == "assistant":
        calls = list(_find_calls(message, turn))
        waiting += [(str(call["name"]), id) for id, call in calls]
        listed: list[Json] = [{"id": id, "type": "function", "function": c} for id, c in calls]
        return {"role": "assistant", "content": text or None, "tool_calls": listed}
    if message.get("role") != "tool":
        return {"role": str(message.get("role")), "content": text}
    name, id = str(message.get("tool_name")), str(message.get("tool_call_id"))
    answered = next((each for each in waiting if each[1] == id), None) or next(
        (each for each in waiting if each[0] == name), next(iter(waiting), (name, id))
    )
    if answered in waiting:
        waiting.remove(answered)
    return {"role": "tool", "tool_call_id": answered[1], "content": text}


def _find_calls(message: JsonRow, turn: int) -> Iterator[tuple[str, dict[str, Json]]]:
    calls = message.get("tool_calls")
    for nth, call in enumerate(calls if isinstance(calls, list) else ()):
        function = call.get("function") if isinstance(call, dict) else None
        if isinstance(call, dict) and isinstance(function, dict):
            arguments = json.dumps(function.get("arguments") or {})
            named: dict[str, Json] = {"name": str(function.get("name")), "arguments": arguments}
            yield str(call.get("id") or f"{turn}_{nth}"), named


def convert_prompt(body: JsonRow) -> list[JsonRow]:
    """Return the conversation of a request with a prompt."""
    texts = (("system", body.get("system")), ("user", body.get("prompt")))
    return [{"role": role, "content": text} for role, text in texts if isinstance(text, str)]


def to_ollama_error(
    status: int, message: str, *, param: str | None = None, code: str | None = None
) -> JsonRow:
    """Return an error in Ollama's format, which has a message only."""
    return {"error": message}
