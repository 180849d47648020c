"""Rows of runs that were kept as conversations: no exchanges, so each answer counts as one."""

from dataclasses import dataclass, field

import orjson
import pyarrow as pa

from traces.relations import clipped, row, table

type Row = tuple[object, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Rows:
    """What a file holds, by relation, as rows in the order of their schemas."""

    trajectories: list[Row] = field(default_factory=list)
    steps: list[Row] = field(default_factory=list)
    tool_calls: list[Row] = field(default_factory=list)
    messages: list[Row] = field(default_factory=list)
    usage: list[Row] = field(default_factory=list)

    def tables(self) -> dict[str, pa.Table]:
        """All of them as tables."""
        return {
            name: table(name, getattr(self, name))
            for name in ("trajectories", "steps", "tool_calls", "messages", "usage")
        }


def message(
    trajectory: str,
    request: int,
    position: int,
    requests: int,
    role: str,
    text: str | None,
    calls: object = None,
) -> Row:
    """A message that is first sent by one model request and last by the last one."""
    content = orjson.dumps({"content": text, "tool_calls": calls}).decode() if calls else text or ""
    size = len(content.encode())
    return (trajectory, request, position, requests, role, clipped(content), size, None)


def call(known: dict[str, object], arguments: str, result: str | None) -> Row:
    """A call of a local tool, with as much of its arguments and result as the index keeps."""
    return row(
        "tool_calls",
        known
        | {
            "arguments": clipped(arguments),
            "arguments_bytes": len(arguments.encode()),
            "result": None if result is None else clipped(result),
            "result_bytes": None if result is None else len(result.encode()),
            "place": "local",
            "struck": False,
            "drifted": False,
        },
    )
