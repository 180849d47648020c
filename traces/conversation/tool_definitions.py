"""Tool definitions offered to an agent, and their changes between two recordings.

A tape contains definitions that crossed the wire: in the requests to the model, and in the
responses of MCP servers to `tools/list`. The last definition from each place counts.
"""

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Literal
from urllib.parse import urlsplit

from msgspec import Struct

from traces.bodies.content_encoding import read_content
from traces.dialects import find_dialect, json_access, mcp
from traces.model import Exchange, Request

type ToolDefinition = Mapping[str, object]
type Toolset = Mapping[tuple[str, str], ToolDefinition]
"""Keyed by the place that offered the tool (`model`, or the MCP server's host or name) and its
name."""

MODEL_PLACE = "model"


class ToolChange(Struct, frozen=True, kw_only=True):
    """A change of one tool."""

    place: str
    tool: str
    how: Literal["added", "removed", "changed"]
    fields: tuple[tuple[str, str | None, str | None], ...] = ()
    """(path, was, is) of each changed part of a definition, as JSON; None if absent."""


def collect_tool_definitions(exchanges: Iterable[Exchange]) -> Toolset:
    """Collect all offered tools, in the order of their first offer."""
    definitions: dict[tuple[str, str], ToolDefinition] = {}
    for exchange in exchanges:
        place, defined = _find_offered_definitions(exchange)
        definitions |= {
            (place, name): each for each in defined if (name := _read_definition_name(each))
        }
    return definitions


def _find_offered_definitions(exchange: Exchange) -> tuple[str, list[dict[str, object]]]:
    request, answer = exchange.request, exchange.response
    if find_dialect(request) is not None:
        return MODEL_PLACE, list(_iter_request_definitions(request))
    message = mcp.read_client_message(request)
    if message is not None and message.method == "tools/list" and answer is not None:
        return urlsplit(request.url).netloc, mcp.read_tool_definitions(answer.headers, answer.body)
    return "", []


def _iter_request_definitions(request: Request) -> Iterator[dict[str, object]]:
    """Yield the definitions in a model request: OpenAI may nest each under `function`, Bedrock
    under `toolSpec`, Gemini all under `functionDeclarations`."""
    body = json_access.read_body_object(read_content(request))
    offered = body.get("tools", json_access.to_json_object(body.get("toolConfig")).get("tools"))
    for tool in json_access.to_json_objects(offered) or [json_access.to_json_object(offered)]:
        declared = json_access.to_json_objects(
            tool.get("functionDeclarations", tool.get("function_declarations"))
        )
        nested = json_access.to_json_object(tool.get("function", tool.get("toolSpec")))
        yield from declared or [nested or tool]


def _read_definition_name(definition: ToolDefinition) -> str:
    return (
        json_access.to_optional_string(definition.get("name"))
        or json_access.to_optional_string(definition.get("type"))
        or ""
    )


def compare_toolsets(was: Toolset, now: Toolset) -> tuple[ToolChange, ...]:
    """List the changes: removed and changed tools first, then added ones."""
    changes = list[ToolChange]()
    for (place, tool), definition in was.items():
        if (place, tool) not in now:
            changes.append(ToolChange(place=place, tool=tool, how="removed"))
        elif fields := tuple(
            _iter_changed_fields(
                _flatten_definition(definition), _flatten_definition(now[place, tool])
            )
        ):
            changes.append(ToolChange(place=place, tool=tool, how="changed", fields=fields))
    new = (key for key in now if key not in was)
    return (*changes, *(ToolChange(place=place, tool=tool, how="added") for place, tool in new))


def _iter_changed_fields(
    was: dict[str, str], now: dict[str, str]
) -> Iterator[tuple[str, str | None, str | None]]:
    for path in dict.fromkeys((*was, *now)):
        if was.get(path) != now.get(path):
            yield path, was.get(path), now.get(path)


def _flatten_definition(value: object, path: str = "") -> dict[str, str]:
    """Map each part of a definition by its path; a list of plain values is one part, in any order.

    Prompt cache markers are ignored: they do not describe a tool.
    """
    match value:
        case dict() if value:
            flat = dict[str, str]()
            for key, item in value.items():
                if key != "cache_control":
                    flat |= _flatten_definition(item, f"{path}.{key}" if path else str(key))
            return flat
        case list() if any(isinstance(item, dict | list) for item in value):
            flat = {}
            for index, item in enumerate(value):
                flat |= _flatten_definition(item, f"{path}[{index}]")
            return flat
        case list():
            plain_values = sorted(json.dumps(item, ensure_ascii=False) for item in value)
            return {path: f"[{', '.join(plain_values)}]"}
    return {path: json.dumps(value, ensure_ascii=False)}
