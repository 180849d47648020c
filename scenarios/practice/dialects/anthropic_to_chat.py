"""Convert requests for Anthropic messages to chat completions, which the model reads.

Wire facts: a call's `input` is an object, not text; results are blocks in a user message and may
have an error flag, which becomes a prefix of the text.
"""

import json
from collections.abc import Iterator

from scenarios.practice.conversation import get_content_text
from scenarios.practice.tools.json_schema import Json, JsonRow

VERTEX_ROUTE = (
    r"/{version}/projects/{project}/locations/{location}/publishers/anthropic/models/{model}"
    r":{method:rawPredict|streamRawPredict}"
)


def convert_anthropic_messages(body: JsonRow) -> list[JsonRow]:
    """Return the conversation, `system` first."""
    system = get_content_text(body.get("system"))
    converted: list[JsonRow] = [{"role": "system", "content": system}] if system else []
    messages = body.get("messages")
    for message in messages if isinstance(messages, list) else ():
        if isinstance(message, dict):
            converted += _convert_anthropic_message(message)
    return converted


def _convert_anthropic_message(message: JsonRow) -> Iterator[JsonRow]:
    content = message.get("content")
    blocks = (
        [each for each in content if isinstance(each, dict)] if isinstance(content, list) else []
    )
    text = get_content_text(content)
    if message.get("role") == "assistant":
        calls: list[Json] = [
            _convert_tool_use(block) for block in blocks if block.get("type") == "tool_use"
        ]
        yield {"role": "assistant", "content": text or None, "tool_calls": calls}
        return
    results = [block for block in blocks if block.get("type") == "tool_result"]
    for block in results:
        key = str(block.get("tool_use_id"))
        yield {"role": "tool", "tool_call_id": key, "content": _format_tool_result(block)}
    if text or not results:
        yield {"role": str(message.get("role")), "content": text}


def _convert_tool_use(block: JsonRow) -> dict[str, Json]:
    arguments = json.dumps(block.get("input"))
    function: Json = {"name": str(block.get("name")), "arguments": arguments}
    return {"id": str(block.get("id")), "type": "function", "function": function}


def _format_tool_result(block: JsonRow) -> str:
    text = get_content_text(block.get("content"))
    flagged = block.get("is_error") is True and not text.startswith(("error", "HTTP "))
    return f"error: {text}" if flagged else text


def convert_anthropic_tools(body: JsonRow) -> list[JsonRow]:
    """Return the offered tools, without those that the provider runs."""
    offered = body.get("tools")
    return [
        {
            "type": "function",
            "function": {
                "name": tool.get("name"),
                "description": tool.get("description"),
                "parameters": tool.get("input_schema"),
            },
        }
        for tool in (offered if isinstance(offered, list) else ())
        if isinstance(tool, dict) and tool.get("type") in (None, "custom")
    ]


def to_anthropic_error(
    status: int, message: str, *, param: str | None = None, code: str | None = None
) -> JsonRow:
    """Return an error in Anthropic's format, which has no field for `param` and `code`."""
    kinds = {400: "invalid_request_error", 404: "not_found_error", 429: "rate_limit_error"}
    kind = kinds.get(status, "overloaded_error" if status == 529 else "api_error")
    return {"type": "error", "error": {"type": kind, "message": message}, "request_id": None}
