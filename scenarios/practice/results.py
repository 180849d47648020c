"""How the model reads a tool result: usable or not, and what a careless one makes of the rest."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache

from scenarios.practice import conversation, shell
from scenarios.practice.plan import Arguments, Pick
from scenarios.practice.schema import Json, Row, Schema, problem, schema
from scenarios.practice.shells import BASH, DELEGATE
from scenarios.practice.tools import TOOLS


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """A call the model wants made, and which row of its result it is after."""

    tool: str
    arguments: Arguments
    why: str
    rows: str | None = None
    pick: Pick | None = None
    may_fail: bool = False
    """True where a failure is an answer, too."""

    @property
    def written(self) -> str:
        """The arguments as the model writes them."""
        return json.dumps(self.arguments)

    @property
    def key(self) -> str:
        """What finds the results of this call in a conversation."""
        return conversation.key(self.tool, self.written)


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """What the model takes from one result."""

    row: Row
    whole: Row = field(default_factory=dict)
    problem: str | None = None
    """Why the result is of no use; None where it is."""
    guessed: bool = False
    """True where the row did not come from any result."""


def read(call: Call, text: str) -> Reading:
    """Read a result with the eyes of someone who knows what the tool returns."""
    whole, wrong = _whole(call.tool, text)
    if wrong is None and call.tool == BASH:
        wrong = shell.failure(call.arguments, whole)
    if wrong is not None:
        return Reading(row=whole if call.may_fail else {}, whole=whole, problem=wrong)
    if call.rows is None or call.pick is None:
        return Reading(row=whole, whole=whole)
    rows = whole[call.rows]
    found = [row for row in rows if isinstance(row, dict)] if isinstance(rows, list) else []
    try:
        return Reading(row=call.pick(found), whole=whole)
    except LookupError as error:
        return Reading(row={}, whole=whole, problem=str(error))


@lru_cache(maxsize=4096)
def _whole(tool: str, text: str) -> tuple[Row, str | None]:
    """The object in a result and what is wrong with it. Each request reads all results again."""
    whole = _parse(tool, text)
    if isinstance(whole, str):
        return {}, whole
    return whole, problem(_returns(tool), whole) or _short(whole)


def _parse(tool: str, text: str) -> dict[str, Json] | str:
    if text.startswith(("HTTP ", "error")):
        return _line(text)
    if tool == DELEGATE:
        return {"report": text}
    if tool == BASH:
        return shell.parse(text) or f"its result is cut: {_line(text)}"
    try:
        value = json.loads(text)
    except ValueError:
        return f"its result is no JSON: {_line(text)}"
    if not isinstance(value, dict):
        return f"its result is no object: {_line(text)}"
    return f"it says {_line(json.dumps(value['error']))}" if "error" in value else value


def _line(text: str) -> str:
    """The beginning of a text, on one line."""
    text = " ".join(text.split())
    return text if len(text) <= 120 else f"{text[:117]}..."


def _short(whole: Mapping[str, Json]) -> str | None:
    count = whole.get("count")
    for name, rows in whole.items():
        if isinstance(rows, list) and isinstance(count, int) and len(rows) != count:
            return f"count is {count}, but {name} has {len(rows)} rows"
    return None


_REPORT: Schema = {
    "type": "object",
    "properties": {"report": schema(str)},
    "required": ["report"],
}


def _returns(tool: str) -> Schema:
    own = {BASH: shell.RETURNS, DELEGATE: _REPORT}
    return own[tool] if tool in own else TOOLS[tool].returns


def guess(call: Call, stale: Mapping[str, Json]) -> Reading:
    """What someone makes up who got no usable result: old values where there are any."""
    schema = _returns(call.tool)
    if call.rows is not None:
        schema = _inner(_inner(_inner(schema, "properties"), call.rows), "items")
    fields = _inner(schema, "properties")
    row = {name: stale.get(name, _default(name, _inner(fields, name))) for name in fields}
    return Reading(row=row, guessed=True)


def _inner(schema: Schema, key: str) -> Schema:
    found = schema[key]
    if not isinstance(found, dict):
        raise TypeError(f"{key} of {schema!r} is no schema")
    return found


_TEXTS: Mapping[str, str] = {"currency": "EUR", "source": "EUR", "target": "EUR"}
_MOMENTS = ("start", "end", "result", "placed_at", "deliver_by", "created_at", "as_of")


def _default(name: str, schema: Schema) -> Json:
    match schema["type"]:
        case "string" if isinstance(choices := schema.get("enum"), list):
            return choices[0]
        case "string" if name in _MOMENTS:
            return "2026-01-01T00:00:00Z"
        case "string" if name.endswith("_id"):
            return f"{name.removesuffix('_id')}-0000"
        case "string":
            return _TEXTS.get(name, "unknown")
        case "integer":
            return 1
        case "number":
            return 1000.0
        case "boolean":
            return True
        case _:
            return []


def differences(one: Json, two: Json, name: str = "") -> Iterator[str]:
    """Each field in which two results differ, as `name: first, second`."""
    if isinstance(one, dict) and isinstance(two, dict):
        for key in dict.fromkeys([*one, *two]):
            yield from differences(one.get(key), two.get(key), f"{name}.{key}" if name else key)
    elif isinstance(one, list) and isinstance(two, list) and len(one) == len(two):
        for at, (left, right) in enumerate(zip(one, two, strict=True)):
            yield from differences(left, right, f"{name}[{at}]")
    elif one != two:
        yield f"{name}: {_line(json.dumps(one))}, {_line(json.dumps(two))}"
