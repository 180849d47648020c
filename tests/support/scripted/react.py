"""The same conversations as text: actions and observations, as agents without tool calls write."""

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

PROMPT = (
    "Answer in this form:\nThought: what to do\nAction: a tool\n"
    "Action Input: its arguments as JSON\nObservation: what the tool returned\n"
    "If you are done, write no action."
)
_CALL = re.compile(
    r"^Action: (?P<tool>\w+)\nAction Input: (?P<input>.*)\Z", re.MULTILINE | re.DOTALL
)


def to_text_messages(messages: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return a history of calls as one of texts, with the prompt before it."""
    return [{"role": "system", "content": PROMPT}] + [
        {"role": "user", "content": f"Observation: {each['content']}"}
        if each["role"] == "tool"
        else {"role": each["role"], "content": each["content"]}
        for each in messages
    ]


def write_action(message: Mapping[str, Any]) -> dict[str, Any]:
    """Return a message with one call as a text."""
    [call] = message["tool_calls"]
    action = f"Action: {call['function']['name']}\nAction Input: {call['function']['arguments']}"
    thought = message["content"] or "I go on."
    return {"role": "assistant", "content": f"Thought: {thought}\n{action}"}


def read_action(message: dict[str, Any]) -> dict[str, Any]:
    """Return a message with the call that its text makes, if it makes one."""
    found = _CALL.search(message["content"] or "")
    if found is None:
        return message
    function = {"name": found["tool"], "arguments": json.dumps(json.loads(found["input"]))}
    return message | {"tool_calls": [{"id": "", "type": "function", "function": function}]}


def list_observations(messages: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return the results in a history of texts."""
    texts = (str(each["content"]) for each in messages if each["role"] == "user")
    return [text.removeprefix("Observation: ") for text in texts if text.startswith("Observation")]
