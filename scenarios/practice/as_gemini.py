"""A request for Gemini's generateContent, told as chat completions, which is what the model reads.

Wire facts: calls and results are parts; not every client sends back the id of a call, and then a
result belongs to the next call of its name. The path names the model and says whether it streams.
Names may be in snake_case, as litellm writes them.
"""

import json
from collections.abc import Iterator, Mapping

from scenarios.practice.conversation import text
from scenarios.practice.schema import Json, Row

MODELS = r"/v1beta/models/{model:.+}:{method:generateContent|streamGenerateContent}"


def messages(body: Row) -> list[Row]:
    """The conversation, the system instruction first."""
    system = _said(_parts(_either(body, "systemInstruction", "system_instruction")))
    told: list[Row] = [{"role": "system", "content": system}] if system else []
    open: list[tuple[str, str]] = []
    contents = body.get("contents")
    for turn, content in enumerate(contents if isinstance(contents, list) else ()):
        if isinstance(content, dict):
            told += _told(content, turn, open)
    return told


def _told(content: Row, turn: int, open: list[tuple[str, str]]) -> Iterator[Row]:
    """One content as messages; `open` holds name and id of each call without a result yet."""
    parts = _parts(content)
    said = _said(parts)
    if content.get("role") == "model":
        calls = list(_calls(parts, turn))
        open += [(str(call["name"]), id) for id, call in calls]
        listed: list[Json] = [{"id": id, "type": "function", "function": c} for id, c in calls]
        yield {"role": "assistant", "content": said or None, "tool_calls": listed}
        return
    results = [
        each
        for part in parts
        if isinstance(each := _either(part, "functionResponse", "function_response"), dict)
    ]
    for result in results:
        name, id = str(result.get("name")), str(result.get("id"))
        found = next((o for o in open if o[1] == id), None) or next(
            (o for o in open if o[0] == name), (name, id)
        )
        if found in open:
            open.remove(found)
        yield {"role": "tool", "tool_call_id": found[1], "content": _shown(result.get("response"))}
    if said or not results:
        yield {"role": "user", "content": said}


def _parts(content: Json | Row) -> list[Row]:
    parts = content.get("parts") if isinstance(content, Mapping) else None
    return [part for part in parts if isinstance(part, dict)] if isinstance(parts, list) else []


def _either(part: Row, name: str, other: str) -> Json:
    return part.get(name) or part.get(other)


def _said(parts: list[Row]) -> str:
    return "".join(text(part.get("text")) for part in parts)


def _calls(parts: list[Row], turn: int) -> Iterator[tuple[str, dict[str, Json]]]:
    for nth, part in enumerate(parts):
        if isinstance(call := _either(part, "functionCall", "function_call"), dict):
            arguments = json.dumps(call.get("args") or {})
            function: dict[str, Json] = {"name": str(call.get("name")), "arguments": arguments}
            yield str(call.get("id") or f"{turn}_{nth}"), function


def _shown(response: Json) -> str:
    """A tool's text; what is no text as JSON, and an error with a word before it."""
    told = response if isinstance(response, dict) else {}
    failed = told.get("error")
    if isinstance(failed, str):
        return failed if failed.startswith(("error", "HTTP ")) else f"error: {failed}"
    lone = next(iter(told.values()), None) if len(told) == 1 else None
    return lone if isinstance(lone, str) else json.dumps(response)


def tools(body: Row) -> list[Row]:
    """The tools that are offered; those that Google would run are not."""
    offered = body.get("tools")
    return [
        {
            "type": "function",
            "function": {
                "name": tool.get("name"),
                "description": tool.get("description"),
                "parameters": tool.get("parametersJsonSchema") or tool.get("parameters"),
            },
        }
        for each in (offered if isinstance(offered, list) else [offered])
        if isinstance(each, dict)
        for tool in _declared(each)
    ]


def _declared(tools: Row) -> list[Row]:
    listed = _either(tools, "functionDeclarations", "function_declarations")
    return [tool for tool in listed if isinstance(tool, dict)] if isinstance(listed, list) else []


def refused(status: int, message: str, *, param: str | None = None, code: str | None = None) -> Row:
    """What is wrong, as Google says it, with no place for `param` and `code`."""
    names = {400: "INVALID_ARGUMENT", 404: "NOT_FOUND", 429: "RESOURCE_EXHAUSTED"}
    name = names.get(status, "UNAVAILABLE" if status == 503 else "INTERNAL")
    return {"error": {"code": status, "message": message, "status": name}}
