"""A request for OpenAI responses, told as chat completions, which is what the model reads.

Wire facts: what an assistant said and each call it made are items of their own, and are one
message in a chat; a result is an item `function_call_output`; a tool is not nested in `function`.
"""

from scenarios.practice.conversation import text
from scenarios.practice.schema import Json, Row


def messages(body: Row) -> list[Row]:
    """The conversation, `instructions` first; reasoning and other items say nothing."""
    told: list[dict[str, Json]] = []
    if instructions := text(body.get("instructions")):
        told.append({"role": "system", "content": instructions})
    said = body.get("input")
    if isinstance(said, str):
        said = [{"role": "user", "content": said}]
    for item in said if isinstance(said, list) else ():
        if isinstance(item, dict):
            _tell(item, told)
    return [*told]


def _tell(item: Row, told: list[dict[str, Json]]) -> None:
    match item.get("type", "message"):
        case "message":
            told.append({"role": str(item.get("role")), "content": text(item.get("content"))})
        case "function_call":
            if not told or told[-1]["role"] != "assistant":
                told.append({"role": "assistant", "content": None})
            calls = told[-1].setdefault("tool_calls", [])
            if isinstance(calls, list):
                calls.append(_call(item))
        case "function_call_output":
            key = str(item.get("call_id"))
            told.append({"role": "tool", "tool_call_id": key, "content": text(item.get("output"))})


def _call(item: Row) -> dict[str, Json]:
    function: Json = {"name": str(item.get("name")), "arguments": str(item.get("arguments"))}
    return {"id": str(item.get("call_id")), "type": "function", "function": function}


def tools(body: Row) -> list[Row]:
    """The tools that are offered; those that a provider would run are not."""
    offered = body.get("tools")
    return [
        {"type": "function", "function": {key: tool[key] for key in tool if key != "type"}}
        for tool in (offered if isinstance(offered, list) else ())
        if isinstance(tool, dict) and tool.get("type") == "function"
    ]
