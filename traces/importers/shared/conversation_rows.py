"""Rows of runs stored as conversations: without exchanges, each response counts as one."""

import pyarrow as pa
from msgspec import Struct, field

from traces.store.schema import clip_stored_text, make_relation_row, make_relation_table
from traces.store.usage_rows import PriceFunction, price_nothing

type Row = tuple[object, ...]


class ConversationRows(Struct, frozen=True, kw_only=True):
    """The rows of a file by relation, in the column order of their schemas."""

    trajectories: list[Row] = field(default_factory=list)
    steps: list[Row] = field(default_factory=list)
    tool_calls: list[Row] = field(default_factory=list)
    messages: list[Row] = field(default_factory=list)
    usage: list[Row] = field(default_factory=list)
    known: dict[str, list[object]] = field(default_factory=dict)
    """The facts of each run by its id, to tell two runs with the same messages apart."""
    keys: dict[str, object] = field(default_factory=dict)
    """The key of each run by its id."""
    restored: set[str] = field(default_factory=set)
    """The runs whose ids an export of ours has."""
    price: PriceFunction = price_nothing

    def to_tables(self) -> dict[str, pa.Table]:
        """Convert all relations to tables."""
        return {
            name: make_relation_table(name, getattr(self, name))
            for name in ("trajectories", "steps", "tool_calls", "messages", "usage")
        }


def make_call_row(known: dict[str, object], arguments: str, result: str | None) -> Row:
    """Make the row of a local tool call, with arguments and result clipped for the index."""
    return make_relation_row(
        "tool_calls",
        known
        | {
            "arguments": clip_stored_text(arguments),
            "arguments_bytes": len(arguments.encode()),
            "result": None if result is None else clip_stored_text(result),
            "result_bytes": None if result is None else len(result.encode()),
            "place": "local",
            "faulted": False,
            "drifted": False,
        },
    )
