"""Which read shows that a write has happened."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from scenarios.practice.plan import Arguments
from scenarios.practice.results import Call
from scenarios.practice.schema import Json, Row


@dataclass(frozen=True, slots=True, kw_only=True)
class Proof:
    """A read after a write; `find` gives the row that proves it, None where it is missing."""

    call: Call
    find: Callable[[Row], Row | None]


def proof(write: Call) -> Proof | None:
    """How to see that a write has had its effect; None for writes that nothing shows."""
    asked = write.arguments
    order = {"order_id": asked.get("order_id")}
    match write.tool:
        case "issue_refund":
            return _listed("list_refunds", order, "refunds", asked, "amount", "currency", "reason")
        case "add_note":
            return _listed("list_notes", order, "notes", asked, "text")
        case "place_order":
            whose: Arguments = {"customer_id": asked["customer_id"], "status": "pending"}
            fields = ("product_id", "quantity", "amount", "deliver_by")
            return _listed("list_orders", whose, "orders", asked, *fields)
        case "update_order":
            return Proof(call=_read("get_order", order), find=lambda row: _updated(row, asked))
        case _:
            return None


def _read(tool: str, arguments: Arguments) -> Call:
    return Call(tool=tool, arguments=arguments, why="see that the change is there")


def _listed(
    tool: str, arguments: Arguments, rows: str, asked: Mapping[str, Json], *fields: str
) -> Proof:
    def find(whole: Row) -> Row | None:
        found = whole.get(rows)
        return next(
            (
                row
                for row in (found if isinstance(found, list) else ())
                if isinstance(row, dict) and all(row[name] == asked[name] for name in fields)
            ),
            None,
        )

    return Proof(call=_read(tool, arguments), find=find)


def _updated(row: Row, asked: Mapping[str, Json]) -> Row | None:
    """The order if it is one version on and has the values asked for."""
    version = asked["version"]
    wanted = dict(asked) | {"version": version + 1 if isinstance(version, int) else version}
    return row if all(row.get(name) == value for name, value in wanted.items()) else None
