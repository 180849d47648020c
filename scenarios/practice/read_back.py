"""The read that proves that a write took effect."""

from collections.abc import Callable, Mapping

from msgspec import Struct

from scenarios.practice.result_reader import PlannedCall
from scenarios.practice.tasks.plan import ToolArguments
from scenarios.practice.tools.json_schema import Json, JsonRow


class ReadBack(Struct, frozen=True, kw_only=True):
    """A read after a write; `find` returns the row that proves it, or None."""

    call: PlannedCall
    find: Callable[[JsonRow], JsonRow | None]


def find_read_back(write: PlannedCall) -> ReadBack | None:
    """Return the read that proves a write; None for writes without one."""
    written = write.arguments
    order = {"order_id": written.get("order_id")}
    match write.tool:
        case "issue_refund":
            return _build_list_read_back(
                "list_refunds", order, "refunds", written, "amount", "currency", "reason"
            )
        case "add_note":
            return _build_list_read_back("list_notes", order, "notes", written, "text")
        case "place_order":
            customer: ToolArguments = {"customer_id": written["customer_id"], "status": "pending"}
            fields = ("product_id", "quantity", "amount", "deliver_by")
            return _build_list_read_back("list_orders", customer, "orders", written, *fields)
        case "update_order":
            return ReadBack(
                call=_build_read_call("get_order", order),
                find=lambda row: _match_updated_order(row, written),
            )
        case _:
            return None


def _build_read_call(tool: str, arguments: ToolArguments) -> PlannedCall:
    return PlannedCall(tool=tool, arguments=arguments, why="see that the change is there")


def _build_list_read_back(
    tool: str, arguments: ToolArguments, rows: str, asked: Mapping[str, Json], *fields: str
) -> ReadBack:
    def find(whole: JsonRow) -> JsonRow | None:
        listed = whole.get(rows)
        return next(
            (
                row
                for row in (listed if isinstance(listed, list) else ())
                if isinstance(row, dict) and all(row[name] == asked[name] for name in fields)
            ),
            None,
        )

    return ReadBack(call=_build_read_call(tool, arguments), find=find)


def _match_updated_order(row: JsonRow, asked: Mapping[str, Json]) -> JsonRow | None:
    """Return the order if its version has increased by one and it has the requested values."""
    version = asked["version"]
    expected = dict(asked) | {"version": version + 1 if isinstance(version, int) else version}
    return row if all(row.get(name) == value for name, value in expected.items()) else None
