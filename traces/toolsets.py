"""Which tools an agent was offered, and what of them changed between two recordings.

Definitions stand on a tape where they crossed the wire: in the requests to the model, and in the
answers of MCP servers to `tools/list`. Each place keeps the last definition that it gave.
"""

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Literal
from urllib.parse import urlsplit

from traces.dialects import lens, mcp, wire
from traces.encoding import plain
from traces.model import Exchange, Request

type Definition = Mapping[str, object]
type Toolset = Mapping[tuple[str, str], Definition]
"""By the place that offered it (`model`, or the MCP server's host or name) and the tool's name."""

MODEL = "model"


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """What became of one tool."""

    place: str
    tool: str
    how: Literal["added", "removed", "changed"]
    fields: tuple[tuple[str, str | None, str | None], ...] = ()
    """(path, was, is) of each part of a definition that changed, as JSON; None where absent."""


def toolset(exchanges: Iterable[Exchange]) -> Toolset:
    """All tools that were offered, in the order in which they were first."""
    found: dict[tuple[str, str], Definition] = {}
    for exchange in exchanges:
        place, defined = _offered(exchange)
        found |= {(place, name): each for each in defined if (name := _name(each))}
    return found


def _offered(exchange: Exchange) -> tuple[str, list[dict[str, object]]]:
    request, answer = exchange.request, exchange.response
    if lens(request) is not None:
        return MODEL, list(_handed(request))
    said = mcp.message(request)
    if said is not None and said.method == "tools/list" and answer is not None:
        return urlsplit(request.url).netloc, mcp.definitions(answer.headers, answer.body)
    return "", []


def _handed(request: Request) -> Iterator[dict[str, object]]:
    """The definitions in a request to a model: OpenAI's may stand under `function`, Gemini's
    together under `functionDeclarations`."""
    handed = wire.load(plain(request.headers, request.body) or b"").get("tools")
    for tool in wire.tables(handed) or [wire.table(handed)]:
        declared = wire.tables(tool.get("functionDeclarations", tool.get("function_declarations")))
        yield from declared or [wire.table(tool.get("function")) or tool]


def _name(definition: Definition) -> str:
    return wire.string(definition.get("name")) or wire.string(definition.get("type")) or ""


def changes(was: Toolset, now: Toolset) -> tuple[Change, ...]:
    """What is not as it was: what is gone or other first, then what is new."""
    found = list[Change]()
    for (place, tool), definition in was.items():
        if (place, tool) not in now:
            found.append(Change(place=place, tool=tool, how="removed"))
        elif fields := tuple(_differing(_flat(definition), _flat(now[place, tool]))):
            found.append(Change(place=place, tool=tool, how="changed", fields=fields))
    new = (key for key in now if key not in was)
    return (*found, *(Change(place=place, tool=tool, how="added") for place, tool in new))


def _differing(
    was: dict[str, str], now: dict[str, str]
) -> Iterator[tuple[str, str | None, str | None]]:
    for path in dict.fromkeys((*was, *now)):
        if was.get(path) != now.get(path):
            yield path, was.get(path), now.get(path)


def _flat(value: object, path: str = "") -> dict[str, str]:
    """Each part of a definition by its path; a list of plain values is one, in any order.

    Marks for prompt caches say nothing of a tool.
    """
    match value:
        case dict() if value:
            flat = dict[str, str]()
            for key, item in value.items():
                if key != "cache_control":
                    flat |= _flat(item, f"{path}.{key}" if path else str(key))
            return flat
        case list() if any(isinstance(item, dict | list) for item in value):
            flat = {}
            for index, item in enumerate(value):
                flat |= _flat(item, f"{path}[{index}]")
            return flat
        case list():
            plain_values = sorted(json.dumps(item, ensure_ascii=False) for item in value)
            return {path: f"[{', '.join(plain_values)}]"}
    return {path: json.dumps(value, ensure_ascii=False)}
