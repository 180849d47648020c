"""How the model reads a tool result: usable or not, and what a careless model guesses instead."""

import json
from collections.abc import Iterator, Mapping
from functools import lru_cache

from msgspec import Struct, field

from scenarios.practice import conversation
from scenarios.practice.shell_tool_names import BASH, DELEGATE
from scenarios.practice.tasks import shell
from scenarios.practice.tasks.plan import RowPicker, ToolArguments
from scenarios.practice.tools.json_schema import (
    Json,
    JsonRow,
    JsonSchema,
    build_json_schema,
    find_schema_problem,
)
from scenarios.practice.tools.registry import ALL_TOOLS


class PlannedCall(Struct, frozen=True, kw_only=True):
    """A call in the model's plan, and the row of its result to use."""

    tool: str
    arguments: ToolArguments
    why: str
    rows: str | None = None
    pick: RowPicker | None = None
    may_fail: bool = False
    """True if a failure counts as an answer."""

    @property
    def arguments_json(self) -> str:
        """The arguments as JSON text, as the model writes them."""
        return json.dumps(self.arguments)

    @property
    def key(self) -> str:
        """Key of this call's results in a conversation."""
        return conversation.to_call_key(self.tool, self.arguments_json)


class ResultReading(Struct, frozen=True, kw_only=True):
    """The values that the model takes from one result."""

    row: JsonRow
    full_result: JsonRow = field(default_factory=dict)
    problem: str | None = None
    """Why the result is unusable; None if it is usable."""
    guessed: bool = False
    """True if the row did not come from any result."""


def read_tool_result(call: PlannedCall, text: str) -> ResultReading:
    """Check a result against the tool's schema and pick the row that the call is after."""
    result, problem = _parse_valid_result(call.tool, text)
    if problem is None and call.tool == BASH:
        problem = shell.find_shell_failure(call.arguments, result)
    if problem is not None:
        return ResultReading(
            row=result if call.may_fail else {}, full_result=result, problem=problem
        )
    if call.rows is None or call.pick is None:
        return ResultReading(row=result, full_result=result)
    rows = result[call.rows]
    objects = [row for row in rows if isinstance(row, dict)] if isinstance(rows, list) else []
    try:
        return ResultReading(row=call.pick(objects), full_result=result)
    except LookupError as error:
        return ResultReading(row={}, full_result=result, problem=str(error))


@lru_cache(maxsize=4096)
def _parse_valid_result(tool: str, text: str) -> tuple[JsonRow, str | None]:
    """Return the object in a result and its problem; cached, since each request repeats all
    results.
    """
    result = _parse_result_object(tool, text)
    if isinstance(result, str):
        return {}, result
    return result, find_schema_problem(_get_result_schema(tool), result) or _find_count_mismatch(
        result
    )


def _parse_result_object(tool: str, text: str) -> dict[str, Json] | str:
    if text.startswith(("HTTP ", "error")):
        return _to_excerpt(text)
    if tool == DELEGATE:
        return {"report": text}
    if tool == BASH:
        return shell.parse_shell_result(text) or f"its result is cut: {_to_excerpt(text)}"
    try:
        value = json.loads(text)
    except ValueError:
        return f"its result is no JSON: {_to_excerpt(text)}"
    if not isinstance(value, dict):
        return f"its result is no object: {_to_excerpt(text)}"
    return f"it says {_to_excerpt(json.dumps(value['error']))}" if "error" in value else value


def _to_excerpt(text: str) -> str:
    """Return the beginning of a text, on one line."""
    text = " ".join(text.split())
    return text if len(text) <= 120 else f"{text[:117]}..."


def _find_count_mismatch(whole: Mapping[str, Json]) -> str | None:
    count = whole.get("count")
    for name, rows in whole.items():
        if isinstance(rows, list) and isinstance(count, int) and len(rows) != count:
            return f"count is {count}, but {name} has {len(rows)} rows"
    return None


_REPORT_SCHEMA: JsonSchema = {
    "type": "object",
    "properties": {"report": build_json_schema(str)},
    "required": ["report"],
}


def _get_result_schema(tool: str) -> JsonSchema:
    special = {BASH: shell.SHELL_RESULT_SCHEMA, DELEGATE: _REPORT_SCHEMA}
    return special[tool] if tool in special else ALL_TOOLS[tool].returns


def guess_result(call: PlannedCall, stale: Mapping[str, Json]) -> ResultReading:
    """Make up a result, as a model without a usable one does: old values if there are any."""
    schema = _get_result_schema(call.tool)
    if call.rows is not None:
        schema = _get_subschema(
            _get_subschema(_get_subschema(schema, "properties"), call.rows), "items"
        )
    fields = _get_subschema(schema, "properties")
    row = {
        name: stale.get(name, _make_default_value(name, _get_subschema(fields, name)))
        for name in fields
    }
    return ResultReading(row=row, guessed=True)


def _get_subschema(schema: JsonSchema, key: str) -> JsonSchema:
    subschema = schema[key]
    if not isinstance(subschema, dict):
        raise TypeError(f"{key} of {schema!r} is no schema")
    return subschema


_DEFAULT_TEXTS: Mapping[str, str] = {"currency": "EUR", "source": "EUR", "target": "EUR"}
_MOMENT_FIELDS = ("start", "end", "result", "placed_at", "deliver_by", "created_at", "as_of")


def _make_default_value(name: str, schema: JsonSchema) -> Json:
    match schema["type"]:
        case "string" if isinstance(choices := schema.get("enum"), list):
            return choices[0]
        case "string" if name in _MOMENT_FIELDS:
            return "2026-01-01T00:00:00Z"
        case "string" if name.endswith("_id"):
            return f"{name.removesuffix('_id')}-0000"
        case "string":
            return _DEFAULT_TEXTS.get(name, "unknown")
        case "integer":
            return 1
        case "number":
            return 1000.0
        case "boolean":
            return True
        case _:
            return []


def find_result_differences(one: Json, two: Json, name: str = "") -> Iterator[str]:
    """Yield each field in which two results differ, as `name: first, second`."""
    if isinstance(one, dict) and isinstance(two, dict):
        for key in dict.fromkeys([*one, *two]):
            yield from find_result_differences(
                one.get(key), two.get(key), f"{name}.{key}" if name else key
            )
    elif isinstance(one, list) and isinstance(two, list) and len(one) == len(two):
        for at, (left, right) in enumerate(zip(one, two, strict=True)):
            yield from find_result_differences(left, right, f"{name}[{at}]")
    elif one != two:
        yield f"{name}: {_to_excerpt(json.dumps(one))}, {_to_excerpt(json.dumps(two))}"
