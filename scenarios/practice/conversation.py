"""Normalise a chat completions conversation for the scripted model, whichever agent leads it.

Agents reorder keys, write 5.0 as 5, prefix tool names with a server's name, send text as parts and
invent ids; none of that changes the meaning.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from hashlib import blake2b

from msgspec import Struct

from scenarios.practice.shell_tool_names import BASH, ShellTool
from scenarios.practice.tools.json_schema import Json, JsonRow

_TASK_ID = re.compile(r"\btask:\s*([a-z]+(?:-[a-z0-9]+)+)")


class PracticeConversation(Struct, frozen=True, kw_only=True):
    """The properties of a conversation that the model depends on."""

    task: str | None
    """The id in the first message that contains `task: <id>`."""
    step: int
    """Number of the model's next answer, from 1."""
    results: Mapping[str, tuple[str, ...]]
    """The results of each call (see `to_call_key`), in order of arrival."""
    digest: str
    """Equal for conversations with the same meaning."""


def match_tool_names(tools: Sequence[JsonRow], known: Sequence[str]) -> dict[str, str]:
    """Map each known tool to its offered name, which may have a server's prefix."""
    offered = [
        str(function["name"])
        for tool in tools
        if isinstance(function := tool.get("function"), dict) and "name" in function
    ]
    names: dict[str, str] = {}
    for name in known:
        prefixed = (full for full in offered if full.endswith((f"_{name}", f".{name}")))
        if full := (name if name in offered else next(prefixed, None)):
            names[name] = full
    return names


def list_tool_parameters(tools: Sequence[JsonRow], name: str) -> list[str]:
    """Return the names of a tool's parameters."""
    for tool in tools:
        function = tool.get("function")
        if isinstance(function, dict) and function.get("name") == name:
            schema = function.get("parameters")
            known = schema.get("properties") if isinstance(schema, dict) else None
            return [*known] if isinstance(known, dict) else []
    return []


@lru_cache(maxsize=4096)
def to_call_key(tool: str, arguments: str) -> str:
    """Return one key for all spellings of the same call; arguments that are not JSON are used as
    is.
    """
    try:
        value = json.loads(arguments, parse_float=_parse_json_number)
    except ValueError:
        value = arguments
    return json.dumps([tool, value], sort_keys=True)


def _parse_json_number(text: str) -> float | int:
    value = float(text)
    return int(value) if value.is_integer() else value


def read_chat_messages(
    messages: Sequence[JsonRow], offered: Mapping[str, str], shell: ShellTool | None = None
) -> PracticeConversation:
    """Parse the messages of a request; `offered` is the result of `match_tool_names`.

    Calls of `shell` are converted to the form used in plans.
    """
    known = {name: tool for tool, name in offered.items()}
    task, step, call_keys = None, 1, dict[str, str]()
    results: dict[str, list[str]] = {}
    digest = blake2b(digest_size=16)
    for message in messages:
        role, text = str(message.get("role")), get_content_text(message.get("content"))
        digest.update(json.dumps([role, text]).encode())
        if role == "assistant":
            step += 1
        for id, name, arguments in find_message_calls(message):
            if shell is not None and name == shell.tool:
                call_keys[id] = to_call_key(BASH, shell.to_plan_arguments(arguments))
            else:
                call_keys[id] = to_call_key(known.get(name, name), arguments)
            digest.update(call_keys[id].encode())
        if role in ("user", "system", "developer") and task is None:
            match = _TASK_ID.search(text)
            task = match.group(1) if match else None
        if role == "tool" and (call := call_keys.get(str(message.get("tool_call_id")))):
            results.setdefault(call, []).append(text)
    return PracticeConversation(
        task=task,
        step=step,
        results={call: tuple(texts) for call, texts in results.items()},
        digest=digest.hexdigest(),
    )


def get_content_text(content: Json) -> str:
    """Return the text of a message's content: a string, parts, or null."""
    if isinstance(content, list):
        return "".join(
            get_content_text(part.get("text")) for part in content if isinstance(part, dict)
        )
    return content if isinstance(content, str) else ""


def find_message_calls(message: JsonRow) -> Iterator[tuple[str, str, str]]:
    """Yield id, tool and arguments of the calls in a message."""
    calls = message.get("tool_calls")
    for call in calls if isinstance(calls, list) else ():
        function = call.get("function") if isinstance(call, dict) else None
        if isinstance(call, dict) and isinstance(function, dict):
            yield str(call.get("id")), str(function.get("name")), str(function.get("arguments"))
