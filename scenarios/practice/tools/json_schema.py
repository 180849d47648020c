"""JSON schemas of the practice tools, made from annotations and checked without a library."""

import re
from collections.abc import Callable, Mapping
from inspect import signature
from typing import Annotated, Literal, get_args, get_origin, get_type_hints, is_typeddict

type Json = str | int | float | bool | None | list[Json] | dict[str, Json]
type JsonRow = Mapping[str, Json]
type JsonSchema = dict[str, Json]

_PLAIN_TYPES = {str: "string", int: "integer", float: "number", bool: "boolean"}


def build_json_schema(kind: object) -> JsonSchema:
    """Return the schema of a plain type, Literal, list, TypedDict, optional or Annotated one."""
    if isinstance(kind, type) and kind in _PLAIN_TYPES:
        return {"type": _PLAIN_TYPES[kind]}
    if is_typeddict(kind):
        hints = get_type_hints(kind, include_extras=True)
        return _build_object_schema(
            {key: build_json_schema(hint) for key, hint in hints.items()}, list(hints)
        )
    arguments = get_args(kind)
    if get_origin(kind) is Annotated:
        pattern = {"pattern": arguments[2]} if arguments[2:] else {}
        return build_json_schema(arguments[0]) | {"description": arguments[1]} | pattern
    if get_origin(kind) is Literal:
        return {"type": "string", "enum": list(arguments)}
    if get_origin(kind) is list:
        return {"type": "array", "items": build_json_schema(arguments[0])}
    if arguments[1:] == (type(None),):
        return build_json_schema(arguments[0])
    raise TypeError(f"no JSON schema for {kind!r}")


def build_parameter_schema(run: Callable[..., object]) -> JsonSchema:
    """Return the schema of a tool's keyword-only arguments; those without default are required."""
    parameters = [p for p in signature(run).parameters.values() if p.kind is p.KEYWORD_ONLY]
    required: list[Json] = [p.name for p in parameters if p.default is p.empty]
    properties: dict[str, Json] = {p.name: build_json_schema(p.annotation) for p in parameters}
    return _build_object_schema(properties, required) | {"additionalProperties": False}


def _build_object_schema(
    properties: Mapping[str, Json], required: list[Json] | list[str]
) -> JsonSchema:
    return {"type": "object", "properties": dict(properties), "required": [*required]}


def build_schema_example(wanted: JsonSchema) -> Json:
    """Return a value that fits a schema of this module: every member, and one item per list."""
    match wanted["type"]:
        case "object":
            return {
                key: build_schema_example(_require_dict(each))
                for key, each in _require_dict(wanted["properties"]).items()
            }
        case "array":
            return [build_schema_example(_require_dict(wanted["items"]))]
        case kind:
            return (
                _require_list(wanted["enum"])[0] if "enum" in wanted else _EXAMPLE_VALUES[str(kind)]
            )


_EXAMPLE_VALUES: Mapping[str, Json] = {"string": "", "integer": 1, "number": 1.5, "boolean": True}
_TYPE_CLASSES: Mapping[str, tuple[type, ...]] = {
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
    "array": (list,),
    "object": (dict,),
}


def find_schema_problem(wanted: JsonSchema, value: Json, name: str = "") -> str | None:
    """Return the first mismatch of a value with a schema of this module; None if it fits."""
    kind = str(wanted["type"])
    if not isinstance(value, _TYPE_CLASSES[kind]) or (
        isinstance(value, bool) and kind != "boolean"
    ):
        return f"{name or 'the value'} is no {kind}"
    if "enum" in wanted and value not in _require_list(wanted["enum"]):
        return f"{name} is none of {', '.join(map(str, _require_list(wanted['enum'])))}"
    if "pattern" in wanted and not re.search(str(wanted["pattern"]), str(value)):
        return f"{name} is not {wanted['description']}"
    if isinstance(value, list):
        inner = _require_dict(wanted["items"])
        problems = (
            find_schema_problem(inner, item, f"{name}[{at}]") for at, item in enumerate(value)
        )
    elif isinstance(value, dict):
        problems = (
            _find_member_problem(wanted, value, key, f"{name}.{key}" if name else key)
            for key in dict.fromkeys([*_require_dict(wanted["properties"]), *value])
        )
    else:
        return None
    return next((text for text in problems if text is not None), None)


def _find_member_problem(
    wanted: JsonSchema, value: dict[str, Json], key: str, name: str
) -> str | None:
    properties = _require_dict(wanted["properties"])
    if key not in properties:
        return f"{name} is unknown" if wanted.get("additionalProperties") is False else None
    if key not in value:
        return f"{name} is missing" if key in _require_list(wanted["required"]) else None
    return find_schema_problem(_require_dict(properties[key]), value[key], name)


def _require_dict(value: Json) -> dict[str, Json]:
    if not isinstance(value, dict):
        raise TypeError(f"{value!r} is no part of a schema")
    return value


def _require_list(value: Json) -> list[Json]:
    if not isinstance(value, list):
        raise TypeError(f"{value!r} is no part of a schema")
    return value
