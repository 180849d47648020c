"""The shop's tools by name, each with its JSON schemas, and the function that calls them."""

import sqlite3
from collections.abc import Callable, Mapping
from typing import cast, get_type_hints

from msgspec import Struct

from scenarios.practice.tools import calculator, orders, short
from scenarios.practice.tools.json_schema import (
    Json,
    JsonSchema,
    build_json_schema,
    build_parameter_schema,
    find_schema_problem,
)


class ShopTool(Struct, frozen=True, kw_only=True):
    """A function of a connection and keyword arguments, with parameter and result schemas."""

    name: str
    description: str
    parameters: JsonSchema
    returns: JsonSchema
    writes: bool
    run: Callable[..., Mapping[str, object]]


def _define_shop_tool(run: Callable[..., Mapping[str, object]], *, writes: bool) -> ShopTool:
    return ShopTool(
        name=run.__name__,
        description=run.__doc__ or "",
        parameters=build_parameter_schema(run),
        returns=build_json_schema(get_type_hints(run)["return"]),
        writes=writes,
        run=run,
    )


_READ_TOOLS: tuple[Callable[..., Mapping[str, object]], ...] = (
    calculator.convert_currency,
    calculator.add_time,
    calculator.time_between,
    calculator.check_pattern,
    orders.search_customer,
    orders.list_products,
    orders.get_product,
    orders.list_orders,
    orders.get_order,
    orders.get_refund,
    orders.list_refunds,
    orders.list_notes,
)
_WRITE_TOOLS: tuple[Callable[..., Mapping[str, object]], ...] = (
    orders.issue_refund,
    orders.update_order,
    orders.add_note,
    orders.place_order,
)
SHOP_TOOLS: Mapping[str, ShopTool] = {
    tool.name: tool
    for tool in (
        *(_define_shop_tool(run, writes=False) for run in _READ_TOOLS),
        *(_define_shop_tool(run, writes=True) for run in _WRITE_TOOLS),
    )
}

SHORT_TOOLS: Mapping[str, ShopTool] = {
    tool.name: tool
    for tool in (
        *(
            _define_shop_tool(run, writes=False)
            for run in (
                short.get_stock,
                short.get_price,
                short.get_weight,
                short.get_amount,
                short.get_refunded,
                short.get_item,
                short.convert,
            )
        ),
        *(_define_shop_tool(run, writes=True) for run in (short.write_note, short.set_price)),
    )
}
"""Tools of the short tasks, which no other task offers."""
ALL_TOOLS: Mapping[str, ShopTool] = {**SHOP_TOOLS, **SHORT_TOOLS}

type ResultBody = dict[str, Json]


def call_shop_tool(book: sqlite3.Connection, name: str, arguments: Json) -> tuple[int, ResultBody]:
    """Return HTTP status and JSON body of a call: 400 bad arguments, 404 unknown, 409 conflict."""
    if name not in ALL_TOOLS:
        return 404, _make_shop_error("unknown_tool", f"no tool {name}")
    problem = find_schema_problem(ALL_TOOLS[name].parameters, arguments, "arguments")
    if problem is not None or not isinstance(arguments, dict):
        return 400, _make_shop_error("bad_arguments", problem or "arguments are no object")
    try:
        return 200, cast(ResultBody, ALL_TOOLS[name].run(book, **arguments))
    except sqlite3.IntegrityError as error:
        return 409, _make_shop_error("conflict", str(error))
    except LookupError as error:
        return 404, _make_shop_error("not_found", str(error))
    except (ValueError, OverflowError) as error:
        return 400, _make_shop_error("bad_arguments", str(error))


def _make_shop_error(code: str, message: str) -> ResultBody:
    return {"error": {"code": code, "message": message}}
