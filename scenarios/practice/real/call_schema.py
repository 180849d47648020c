"""The JSON schema that an answer is forced into: one call as an array, or words.

`["get_stock", "sku-4603"]` has the tool's required arguments in their order, and last an object of
the optional ones, if the tool has any and the model wants them. `["say", "..."]` ends the turn.
"""

from collections.abc import Iterator, Mapping, Sequence

from msgspec import Struct

from scenarios.practice.tools.json_schema import Json, JsonRow, JsonSchema

SAY = "say"
"""The first item of an answer that calls no tool; a tool of this name cannot be called."""
MAX_TEXT = 48
"""Most characters of a text without a limit of its own: a small model fills what it is given."""


class OfferedTool(Struct, frozen=True, kw_only=True):
    """A tool as the model sees it."""

    name: str
    required: Mapping[str, JsonSchema]
    optional: Mapping[str, JsonSchema]

    @property
    def signature(self) -> str:
        """Name and arguments, as `get_stock(product_id)`."""
        return f"{self.name}({', '.join(self.required)})"


def read_offered_tools(tools: Sequence[JsonRow]) -> tuple[OfferedTool, ...]:
    """Return the tools of a chat request; entries that are no functions are left out."""
    return tuple(_iterate_offered_tools(tools))


def _iterate_offered_tools(tools: Sequence[JsonRow]) -> Iterator[OfferedTool]:
    for tool in tools:
        function = tool.get("function")
        if not isinstance(function, dict) or not isinstance(function.get("name"), str):
            continue
        parameters = function.get("parameters")
        schema = parameters if isinstance(parameters, dict) else {}
        properties, required = schema.get("properties"), schema.get("required")
        named = (
            {k: v for k, v in properties.items() if isinstance(v, dict)}
            if isinstance(properties, dict)
            else {}
        )
        order = [k for k in required if k in named] if isinstance(required, list) else []
        yield OfferedTool(
            name=str(function["name"]),
            required={str(k): named[str(k)] for k in order},
            optional={k: v for k, v in named.items() if k not in order},
        )


def choose_tools(
    tools: Sequence[OfferedTool], choice: Json
) -> tuple[tuple[OfferedTool, ...], bool]:
    """Return the tools that a request's `tool_choice` permits, and whether words are permitted."""
    match choice:
        case "none":
            return (), True
        case "required":
            return tuple(tools), not tools
        case {"function": {"name": name}}:
            return tuple(tool for tool in tools if tool.name == name), False
        case _:
            return tuple(tools), True


def build_call_schema(tools: Sequence[OfferedTool], *, words: bool) -> JsonSchema:
    """Return the schema of all permitted answers."""
    kinds: list[Json] = [kind for tool in tools for kind in _build_tool_kinds(tool)]
    if words or not kinds:
        kinds.append(_build_tuple([{"const": SAY}, _limit_texts({"type": "string"})]))
    return {"oneOf": kinds}


def _build_tool_kinds(tool: OfferedTool) -> Iterator[Json]:
    items: list[Json] = [{"const": tool.name}, *(_limit_texts(v) for v in tool.required.values())]
    yield _build_tuple(items)
    if tool.optional:
        properties: dict[str, Json] = {k: _limit_texts(v) for k, v in tool.optional.items()}
        named: JsonSchema = {"type": "object", "properties": properties}
        yield _build_tuple([*items, named | {"additionalProperties": False, "minProperties": 1}])


def _build_tuple(items: list[Json]) -> JsonSchema:
    count = len(items)
    return {"type": "array", "prefixItems": items, "minItems": count, "maxItems": count}


def _limit_texts(schema: JsonSchema) -> JsonSchema:
    bounded = "enum" in schema or "pattern" in schema or "maxLength" in schema
    if schema.get("type") == "string" and not bounded:
        return schema | {"maxLength": MAX_TEXT}
    return schema
