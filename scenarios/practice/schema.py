"""JSON schemas of the practice tools, made from annotations and checked without a library."""

from collections.abc import Callable, Mapping
from inspect import signature
from typing import Annotated, Literal, get_args, get_origin, get_type_hints, is_typeddict

type Json = str | int | float | bool | None | list[Json] | dict[str, Json]
type Row = Mapping[str, Json]
type Schema = dict[str, Json]

_PLAIN = {str: "string", int: "integer", float: "number", bool: "boolean"}


def schema(kind: object) -> Schema:
    """The schema of a plain type, Literal, list, TypedDict, optional or Annotated one."""
    if isinstance(kind, type) and kind in _PLAIN:
        return {"type": _PLAIN[kind]}
    if is_typeddict(kind):
        hints = get_type_hints(kind, include_extras=True)
        return _object({key: schema(hint) for key, hint in hints.items()}, list(hints))
    arguments = get_args(kind)
    if get_origin(kind) is Annotated:
        return schema(arguments[0]) | {"description": arguments[1]}
    if get_origin(kind) is Literal:
        return {"type": "string", "enum": list(arguments)}
    if get_origin(kind) is list:
        return {"type": "array", "items": schema(arguments[0])}
    if arguments[1:] == (type(None),):
        return schema(arguments[0])
    raise TypeError(f"no JSON schema for {kind!r}")


def parameters(run: Callable[..., object]) -> Schema:
    """The schema of the keyword-only arguments of a tool; those without default are required."""
    found = [p for p in signature(run).parameters.values() if p.kind is p.KEYWORD_ONLY]
    required: list[Json] = [p.name for p in found if p.default is p.empty]
    properties: dict[str, Json] = {p.name: schema(p.annotation) for p in found}
    return _object(properties, required) | {"additionalProperties": False}


def _object(properties: Mapping[str, Json], required: list[Json] | list[str]) -> Schema:
    return {"type": "object", "properties": dict(properties), "required": [*required]}


def example(wanted: Schema) -> Json:
    """A value that fits a schema of this module: every member, and one item per list."""
    match wanted["type"]:
        case "object":
            return {key: example(_dict(each)) for key, each in _dict(wanted["properties"]).items()}
        case "array":
            return [example(_dict(wanted["items"]))]
        case kind:
            return _list(wanted["enum"])[0] if "enum" in wanted else _EXAMPLES[str(kind)]


_EXAMPLES: Mapping[str, Json] = {"string": "", "integer": 1, "number": 1.5, "boolean": True}
_KINDS: Mapping[str, tuple[type, ...]] = {
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
    "array": (list,),
    "object": (dict,),
}


def problem(wanted: Schema, value: Json, name: str = "") -> str | None:
    """The first thing in which a value does not fit a schema of this module; None if it fits."""
    kind = str(wanted["type"])
    if not isinstance(value, _KINDS[kind]) or (isinstance(value, bool) and kind != "boolean"):
        return f"{name or 'the value'} is no {kind}"
    if "enum" in wanted and value not in _list(wanted["enum"]):
        return f"{name} is none of {', '.join(map(str, _list(wanted['enum'])))}"
    if isinstance(value, list):
        inner = _dict(wanted["items"])
        found = (problem(inner, item, f"{name}[{at}]") for at, item in enumerate(value))
    elif isinstance(value, dict):
        found = (
            _member(wanted, value, key, f"{name}.{key}" if name else key)
            for key in dict.fromkeys([*_dict(wanted["properties"]), *value])
        )
    else:
        return None
    return next((text for text in found if text is not None), None)


def _member(wanted: Schema, value: dict[str, Json], key: str, name: str) -> str | None:
    properties = _dict(wanted["properties"])
    if key not in properties:
        return f"{name} is unknown" if wanted.get("additionalProperties") is False else None
    if key not in value:
        return f"{name} is missing" if key in _list(wanted["required"]) else None
    return problem(_dict(properties[key]), value[key], name)


def _dict(value: Json) -> dict[str, Json]:
    if not isinstance(value, dict):
        raise TypeError(f"{value!r} is no part of a schema")
    return value


def _list(value: Json) -> list[Json]:
    if not isinstance(value, list):
        raise TypeError(f"{value!r} is no part of a schema")
    return value
