"""Convert requests for OpenAI responses to chat completions, which the model reads.

Wire facts: an assistant's text and each of its calls are separate items, but one message in a chat;
a result is an item `function_call_output`; a tool is not nested in `function`.
"""

from scenarios.practice.conversation import get_content_text
from scenarios.practice.tools.json_schema import Json, JsonRow


def convert_responses_messages(body: JsonRow) -> list[JsonRow]:
    """Return the conversation, `instructions` first; reasoning and other items are dropped."""
    messages: list[dict[str, Json]] = []
    if instructions := get_content_text(body.get("instructions")):
        messages.append({"role": "system", "content": instructions})
    items = body.get("input")
    if isinstance(items, str):
        items = [{"role": "user", "content": items}]
    for item in items if isinstance(items, list) else ():
        if isinstance(item, dict):
            _append_response_item(item, messages)
    return [*messages]


def _append_response_item(item: JsonRow, told: list[dict[str, Json]]) -> None:
    match item.get("type", "message"):
        case "message":
            told.append(
                {"role": str(item.get("role")), "content": get_content_text(item.get("content"))}
            )
        case "function_call":
            if not told or told[-1]["role"] != "assistant":
                told.append({"role": "assistant", "content": None})
            calls = told[-1].setdefault("tool_calls", [])
            if isinstance(calls, list):
                calls.append(_convert_function_call(item))
        case "function_call_output":
            key = str(item.get("call_id"))
            told.append(
                {
                    "role": "tool",
                    "tool_call_id": key,
                    "content": get_content_text(item.get("output")),
                }
            )


def _convert_function_call(item: JsonRow) -> dict[str, Json]:
    function: Json = {"name": str(item.get("name")), "arguments": str(item.get("arguments"))}
    return {"id": str(item.get("call_id")), "type": "function", "function": function}


def convert_responses_tools(body: JsonRow) -> list[JsonRow]:
    """Return the offered tools, without those that the provider runs."""
    offered = body.get("tools")
    return [
        {"type": "function", "function": {key: tool[key] for key in tool if key != "type"}}
        for tool in (offered if isinstance(offered, list) else ())
        if isinstance(tool, dict) and tool.get("type") == "function"
    ]
