"""The tools of the shop by name, each with its JSON schemas, and the one way to call them."""

import sqlite3
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import cast, get_type_hints

from scenarios.practice import orders, reckoning
from scenarios.practice.schema import Json, Schema, parameters, problem, schema


@dataclass(frozen=True, slots=True, kw_only=True)
class Tool:
    """A function on (connection, keyword arguments), what it takes and what it returns."""

    name: str
    description: str
    parameters: Schema
    returns: Schema
    writes: bool
    run: Callable[..., Mapping[str, object]]


def _tool(run: Callable[..., Mapping[str, object]], *, writes: bool) -> Tool:
    return Tool(
        name=run.__name__,
        description=run.__doc__ or "",
        parameters=parameters(run),
        returns=schema(get_type_hints(run)["return"]),
        writes=writes,
        run=run,
    )


_READS: tuple[Callable[..., Mapping[str, object]], ...] = (
    reckoning.convert_currency,
    reckoning.add_time,
    reckoning.time_between,
    reckoning.check_pattern,
    orders.search_customer,
    orders.list_products,
    orders.get_product,
    orders.list_orders,
    orders.get_order,
    orders.get_refund,
    orders.list_refunds,
    orders.list_notes,
)
_WRITES: tuple[Callable[..., Mapping[str, object]], ...] = (
    orders.issue_refund,
    orders.update_order,
    orders.add_note,
    orders.place_order,
)
TOOLS: Mapping[str, Tool] = {
    tool.name: tool
    for tool in (
        *(_tool(run, writes=False) for run in _READS),
        *(_tool(run, writes=True) for run in _WRITES),
    )
}

type Body = dict[str, Json]


def call(book: sqlite3.Connection, name: str, arguments: Json) -> tuple[int, Body]:
    """HTTP status and JSON body of a call: 400 bad arguments, 404 unknown, 409 conflict."""
    if name not in TOOLS:
        return 404, _error("unknown_tool", f"no tool {name}")
    wrong = problem(TOOLS[name].parameters, arguments, "arguments")
    if wrong is not None or not isinstance(arguments, dict):
        return 400, _error("bad_arguments", wrong or "arguments are no object")
    try:
        return 200, cast(Body, TOOLS[name].run(book, **arguments))
    except sqlite3.IntegrityError as error:
        return 409, _error("conflict", str(error))
    except LookupError as error:
        return 404, _error("not_found", str(error))
    except (ValueError, OverflowError) as error:
        return 400, _error("bad_arguments", str(error))


def _error(code: str, message: str) -> Body:
    return {"error": {"code": code, "message": message}}
