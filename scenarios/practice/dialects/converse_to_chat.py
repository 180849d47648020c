"""Convert requests for AWS Bedrock Converse to chat completions, which the model reads.

Wire facts: content blocks have no type; a call's `input` is an object; results are blocks in a user
message, whose status becomes a prefix of the text. The path contains the model and whether to
stream.
"""

import json
from collections.abc import Iterator

from scenarios.practice.conversation import get_content_text
from scenarios.practice.tools.json_schema import Json, JsonRow

MODELS_ROUTE = r"/model/{model:.+}/{method:converse|converse-stream}"
INVOKE_ROUTE = r"/model/{model:.+}/{method:invoke|invoke-with-response-stream}"


def convert_converse_messages(body: JsonRow) -> list[JsonRow]:
    """Return the conversation, `system` first."""
    system = get_content_text(body.get("system"))
    converted: list[JsonRow] = [{"role": "system", "content": system}] if system else []
    messages = body.get("messages")
    for message in messages if isinstance(messages, list) else ():
        if isinstance(message, dict):
            converted += _convert_converse_message(message)
    return converted


def _convert_converse_message(message: JsonRow) -> Iterator[JsonRow]:
    text, blocks = get_content_text(message.get("content")), _get_rows(message.get("content"))
    if message.get("role") == "assistant":
        calls: list[Json] = [
            _convert_tool_use(use)
            for block in blocks
            if isinstance(use := block.get("toolUse"), dict)
        ]
        yield {"role": "assistant", "content": text or None, "tool_calls": calls}
        return
    results = [each for block in blocks if isinstance(each := block.get("toolResult"), dict)]
    for result in results:
        key = str(result.get("toolUseId"))
        yield {"role": "tool", "tool_call_id": key, "content": _format_result(result)}
    if text or not results:
        yield {"role": str(message.get("role")), "content": text}


def _get_rows(value: Json) -> list[JsonRow]:
    return [each for each in value if isinstance(each, dict)] if isinstance(value, list) else []


def _convert_tool_use(use: JsonRow) -> dict[str, Json]:
    function: Json = {"name": str(use.get("name")), "arguments": json.dumps(use.get("input"))}
    return {"id": str(use.get("toolUseId")), "type": "function", "function": function}


def _format_result(result: JsonRow) -> str:
    text = "".join(
        json.dumps(block["json"]) if "json" in block else get_content_text(block.get("text"))
        for block in _get_rows(result.get("content"))
    )
    flagged = result.get("status") == "error" and not text.startswith(("error", "HTTP "))
    return f"error: {text}" if flagged else text


def convert_converse_tools(body: JsonRow) -> list[JsonRow]:
    """Return the offered tools."""
    config = body.get("toolConfig")
    tools = _get_rows(config.get("tools")) if isinstance(config, dict) else []
    return [
        {
            "type": "function",
            "function": {
                "name": tool.get("name"),
                "description": tool.get("description"),
                "parameters": schema.get("json") if isinstance(schema, dict) else None,
            },
        }
        for each in tools
        if isinstance(tool := each.get("toolSpec"), dict)
        for schema in [tool.get("inputSchema")]
    ]


def to_bedrock_error(
    status: int, message: str, *, param: str | None = None, code: str | None = None
) -> JsonRow:
    """Return an error in Bedrock's format, which has no field for `param` and `code`."""
    names = {400: "ValidationException", 404: "ResourceNotFoundException"}
    names |= {429: "ThrottlingException", 503: "ServiceUnavailableException"}
    return {"__type": names.get(status, "InternalServerException"), "message": message}
