"""Convert requests for Cohere's chat to chat completions, which the model reads.

Wire facts: messages are those of chat completions, but the content of a result may be documents,
and what an assistant said before its calls is `tool_plan`.
"""

import json

from scenarios.practice.conversation import get_content_text
from scenarios.practice.tools.json_schema import Json, JsonRow


def convert_cohere_messages(body: JsonRow) -> list[JsonRow]:
    """Return the conversation."""
    messages = body.get("messages")
    return [
        _convert_cohere_message(message)
        for message in (messages if isinstance(messages, list) else ())
        if isinstance(message, dict)
    ]


def _convert_cohere_message(message: JsonRow) -> JsonRow:
    if message.get("role") == "tool":
        return {**message, "content": _join_documents(message.get("content"))}
    text = get_content_text(message.get("content")) or get_content_text(message.get("tool_plan"))
    return {**message, "content": text or None}


def _join_documents(content: Json) -> str:
    blocks = content if isinstance(content, list) else []
    return get_content_text(content) + "".join(
        data if isinstance(data, str) else json.dumps(data)
        for block in blocks
        if isinstance(block, dict) and isinstance(document := block.get("document"), dict)
        for data in [document.get("data")]
    )


def to_cohere_error(
    status: int, message: str, *, param: str | None = None, code: str | None = None
) -> JsonRow:
    """Return an error in Cohere's format, which has a message only."""
    return {"message": message}
