"""What the model sees of a chat completions conversation, whoever leads it.

Agents reorder keys, write 5.0 as 5, prefix tool names with a server's name, send text as parts
and invent ids; none of that changes what was said.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from hashlib import blake2b

from scenarios.practice.schema import Json, Row
from scenarios.practice.shells import BASH, Shell

_TASK = re.compile(r"\btask:\s*([a-z]+(?:-[a-z0-9]+)+)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Talk:
    """A conversation as far as the model cares."""

    task: str | None
    """The id named in the first message that says `task: <id>`."""
    step: int
    """Which answer of the model comes next, from 1."""
    results: Mapping[str, tuple[str, ...]]
    """The results of each call (see `key`), in the order they came."""
    digest: str
    """Equal for conversations that say the same."""


def names(tools: Sequence[Row], known: Sequence[str]) -> dict[str, str]:
    """For each known tool the name under which it is offered, a server's prefix allowed for."""
    offered = [
        str(function["name"])
        for tool in tools
        if isinstance(function := tool.get("function"), dict) and "name" in function
    ]
    found: dict[str, str] = {}
    for name in known:
        prefixed = (full for full in offered if full.endswith((f"_{name}", f".{name}")))
        if full := (name if name in offered else next(prefixed, None)):
            found[name] = full
    return found


@lru_cache(maxsize=4096)
def key(tool: str, arguments: str) -> str:
    """One text for all ways to write the same call; arguments that are no JSON stay as they are."""
    try:
        value = json.loads(arguments, parse_float=_number)
    except ValueError:
        value = arguments
    return json.dumps([tool, value], sort_keys=True)


def _number(text: str) -> float | int:
    value = float(text)
    return int(value) if value.is_integer() else value


def read(messages: Sequence[Row], offered: Mapping[str, str], shell: Shell | None = None) -> Talk:
    """The conversation in a request's messages; `offered` is what `names` returned.

    The calls of `shell` are read as a plan would write them.
    """
    known = {name: tool for tool, name in offered.items()}
    task, step, asked = None, 1, dict[str, str]()
    results: dict[str, list[str]] = {}
    digest = blake2b(digest_size=16)
    for message in messages:
        role, said = str(message.get("role")), text(message.get("content"))
        digest.update(json.dumps([role, said]).encode())
        if role == "assistant":
            step += 1
        for id, name, arguments in _calls(message):
            if shell is not None and name == shell.tool:
                asked[id] = key(BASH, shell.plain(arguments))
            else:
                asked[id] = key(known.get(name, name), arguments)
            digest.update(asked[id].encode())
        if role in ("user", "system", "developer") and task is None:
            named = _TASK.search(said)
            task = named.group(1) if named else None
        if role == "tool" and (call := asked.get(str(message.get("tool_call_id")))):
            results.setdefault(call, []).append(said)
    return Talk(
        task=task,
        step=step,
        results={call: tuple(texts) for call, texts in results.items()},
        digest=digest.hexdigest(),
    )


def text(content: Json) -> str:
    """The text of a message's content, which is a string, parts, or nothing."""
    if isinstance(content, list):
        return "".join(text(part.get("text")) for part in content if isinstance(part, dict))
    return content if isinstance(content, str) else ""


def _calls(message: Row) -> Iterator[tuple[str, str, str]]:
    calls = message.get("tool_calls")
    for call in calls if isinstance(calls, list) else ():
        function = call.get("function") if isinstance(call, dict) else None
        if isinstance(call, dict) and isinstance(function, dict):
            yield str(call.get("id")), str(function.get("name")), str(function.get("arguments"))
