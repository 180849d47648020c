"""Convert requests for Gemini's generateContent to chat completions, which the model reads.

Wire facts: calls and results are parts; not every client returns the id of a call, and then a
result belongs to the next call of its name. The path contains the model and whether to stream.
Names may be in snake_case, as litellm writes them.
"""

import json
from collections.abc import Iterator, Mapping

from scenarios.practice.conversation import get_content_text
from scenarios.practice.tools.json_schema import Json, JsonRow

MODELS_ROUTE = r"/v1beta/models/{model:.+}:{method:generateContent|streamGenerateContent}"
VERTEX_ROUTE = (
    r"/{version}/projects/{project}/locations/{location}/publishers/google/models/{model}"
    r":{method:generateContent|streamGenerateContent}"
)


def convert_gemini_messages(body: JsonRow) -> list[JsonRow]:
    """Return the conversation, the system instruction first."""
    system = _join_part_texts(
        _get_content_parts(_get_either_key(body, "systemInstruction", "system_instruction"))
    )
    converted: list[JsonRow] = [{"role": "system", "content": system}] if system else []
    unanswered: list[tuple[str, str]] = []
    contents = body.get("contents")
    for turn, content in enumerate(contents if isinstance(contents, list) else ()):
        if isinstance(content, dict):
            converted += _convert_gemini_content(content, turn, unanswered)
    return converted


def _convert_gemini_content(
    content: JsonRow, turn: int, open: list[tuple[str, str]]
) -> Iterator[JsonRow]:
    """Yield the messages of one content; `open` holds name and id of each call without a result
    yet.
    """
    parts = _get_content_parts(content)
    text = _join_part_texts(parts)
    if content.get("role") == "model":
        calls = list(_find_function_calls(parts, turn))
        open += [(str(call["name"]), id) for id, call in calls]
        listed: list[Json] = [{"id": id, "type": "function", "function": c} for id, c in calls]
        yield {"role": "assistant", "content": text or None, "tool_calls": listed}
        return
    results = [
        each
        for part in parts
        if isinstance(each := _get_either_key(part, "functionResponse", "function_response"), dict)
    ]
    for result in results:
        name, id = str(result.get("name")), str(result.get("id"))
        answered = next((o for o in open if o[1] == id), None) or next(
            (o for o in open if o[0] == name), (name, id)
        )
        if answered in open:
            open.remove(answered)
        yield {
            "role": "tool",
            "tool_call_id": answered[1],
            "content": _format_function_response(result.get("response")),
        }
    if text or not results:
        yield {"role": "user", "content": text}


def _get_content_parts(content: Json | JsonRow) -> list[JsonRow]:
    parts = content.get("parts") if isinstance(content, Mapping) else None
    return [part for part in parts if isinstance(part, dict)] if isinstance(parts, list) else []


def _get_either_key(part: JsonRow, name: str, other: str) -> Json:
    return part.get(name) or part.get(other)


def _join_part_texts(parts: list[JsonRow]) -> str:
    return "".join(get_content_text(part.get("text")) for part in parts)


def _find_function_calls(parts: list[JsonRow], turn: int) -> Iterator[tuple[str, dict[str, Json]]]:
    for nth, part in enumerate(parts):
        if isinstance(call := _get_either_key(part, "functionCall", "function_call"), dict):
            arguments = json.dumps(call.get("args") or {})
            function: dict[str, Json] = {"name": str(call.get("name")), "arguments": arguments}
            yield str(call.get("id") or f"{turn}_{nth}"), function


def _format_function_response(response: Json) -> str:
    """Return a tool's text, other values as JSON, and errors with a prefix."""
    fields = response if isinstance(response, dict) else {}
    failed = fields.get("error")
    if isinstance(failed, str):
        return failed if failed.startswith(("error", "HTTP ")) else f"error: {failed}"
    only_value = next(iter(fields.values()), None) if len(fields) == 1 else None
    return only_value if isinstance(only_value, str) else json.dumps(response)


def convert_gemini_tools(body: JsonRow) -> list[JsonRow]:
    """Return the offered tools, without those that Google runs."""
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
        for tool in _get_declared_functions(each)
    ]


def _get_declared_functions(tools: JsonRow) -> list[JsonRow]:
    listed = _get_either_key(tools, "functionDeclarations", "function_declarations")
    return [tool for tool in listed if isinstance(tool, dict)] if isinstance(listed, list) else []


def to_gemini_error(
    status: int, message: str, *, param: str | None = None, code: str | None = None
) -> JsonRow:
    """Return an error in Google's format, which has no field for `param` and `code`."""
    names = {400: "INVALID_ARGUMENT", 404: "NOT_FOUND", 429: "RESOURCE_EXHAUSTED"}
    name = names.get(status, "UNAVAILABLE" if status == 503 else "INTERNAL")
    return {"error": {"code": status, "message": message, "status": name}}
