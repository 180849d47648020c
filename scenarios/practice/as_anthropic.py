"""A request for Anthropic messages, told as chat completions, which is what the model reads.

Wire facts: a call's `input` is an object, not text; results come as blocks in a user message and
may carry a flag for errors, which the model sees as a word before the text.
"""

import json
from collections.abc import Iterator

from scenarios.practice.conversation import text
from scenarios.practice.schema import Json, Row


def messages(body: Row) -> list[Row]:
    """The conversation, `system` first."""
    system = text(body.get("system"))
    told: list[Row] = [{"role": "system", "content": system}] if system else []
    said = body.get("messages")
    for message in said if isinstance(said, list) else ():
        if isinstance(message, dict):
            told += _told(message)
    return told


def _told(message: Row) -> Iterator[Row]:
    content = message.get("content")
    blocks = (
        [each for each in content if isinstance(each, dict)] if isinstance(content, list) else []
    )
    said = text(content)
    if message.get("role") == "assistant":
        calls: list[Json] = [_call(block) for block in blocks if block.get("type") == "tool_use"]
        yield {"role": "assistant", "content": said or None, "tool_calls": calls}
        return
    results = [block for block in blocks if block.get("type") == "tool_result"]
    for block in results:
        key = str(block.get("tool_use_id"))
        yield {"role": "tool", "tool_call_id": key, "content": _shown(block)}
    if said or not results:
        yield {"role": str(message.get("role")), "content": said}


def _call(block: Row) -> dict[str, Json]:
    arguments = json.dumps(block.get("input"))
    function: Json = {"name": str(block.get("name")), "arguments": arguments}
    return {"id": str(block.get("id")), "type": "function", "function": function}


def _shown(block: Row) -> str:
    shown = text(block.get("content"))
    flagged = block.get("is_error") is True and not shown.startswith(("error", "HTTP "))
    return f"error: {shown}" if flagged else shown


def tools(body: Row) -> list[Row]:
    """The tools that are offered; those that a provider would run are not."""
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


def refused(status: int, message: str, *, param: str | None = None, code: str | None = None) -> Row:
    """What is wrong, as Anthropic says it, with no place for `param` and `code`."""
    kinds = {400: "invalid_request_error", 404: "not_found_error", 429: "rate_limit_error"}
    kind = kinds.get(status, "overloaded_error" if status == 529 else "api_error")
    return {"type": "error", "error": {"type": kind, "message": message}, "request_id": None}
