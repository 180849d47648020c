"""The practice tools: what they return, and how they refuse."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scenarios.practice import order_book, world
from scenarios.practice.tasks.registry import ORDER_TASKS
from scenarios.practice.tools import calculator, registry
from scenarios.practice.tools.json_schema import Json, find_schema_problem

NOWHERE = sqlite3.connect(":memory:")


@pytest.fixture
def shop(tmp_path: Path) -> Iterator[sqlite3.Connection]:
    path = tmp_path / "shop.db"
    world.set_up_order_book(path, ORDER_TASKS["refund-1"])
    with closing(order_book.connect_order_book(path)) as connection:
        yield connection


CALLS: dict[str, dict[str, Json]] = {
    "convert_currency": {"amount": 295.22, "source": "USD", "target": "GBP"},
    "add_time": {"start": "2026-01-24T08:20:00Z", "days": 5, "hours": 6},
    "time_between": {"start": "2026-01-19T11:30:00Z", "end": "2026-01-24T08:20:00Z"},
    "check_pattern": {"pattern": r"\d{5}", "text": "Hafenstrasse 18, 20457 Hamburg"},
    "search_customer": {"query": "BRANDT"},
    "list_products": {"category": "lighting"},
    "get_product": {"product_id": "sku-4411"},
    "list_orders": {"customer_id": "cus-2047", "status": "delivered"},
    "get_order": {"order_id": "ord-7018"},
    "get_refund": {"refund_id": "ref-5012"},
    "list_refunds": {"order_id": "ord-7018"},
    "list_notes": {"order_id": "ord-7018"},
    "issue_refund": {"order_id": "ord-7018", "amount": 12.34, "currency": "EUR", "reason": "x"},
    "update_order": {"order_id": "ord-7018", "version": 4, "status": "refunded"},
    "add_note": {"order_id": "ord-7018", "text": "hello"},
    "place_order": {
        "customer_id": "cus-2047",
        "product_id": "sku-4411",
        "quantity": 14,
        "amount": 542.5,
        "currency": "EUR",
        "deliver_by": "2026-04-01T09:00:00Z",
    },
}


def changes(shop: sqlite3.Connection) -> int:
    writes: int = shop.execute("select writes from shop").fetchone()[0]
    return writes


@pytest.mark.parametrize("name", registry.SHOP_TOOLS)
def test_each_tool_returns_what_its_schema_says_and_writes_only_if_it_says_so(
    shop: sqlite3.Connection, name: str
) -> None:
    status, result = registry.call_shop_tool(shop, name, dict(CALLS[name]))
    assert (status, find_schema_problem(registry.SHOP_TOOLS[name].returns, result)) == (200, None)
    assert changes(shop) == registry.SHOP_TOOLS[name].writes


def test_what_they_return(shop: sqlite3.Connection) -> None:
    def result(name: str) -> dict[str, Json]:
        return registry.call_shop_tool(shop, name, dict(CALLS[name]))[1]

    assert result("convert_currency")["converted"] == 231.94
    assert result("add_time") == {
        "start": "2026-01-24T08:20:00Z",
        "result": "2026-01-29T14:20:00Z",
        "weekday": "Thursday",
    }
    assert result("time_between")["seconds"] == 420600
    assert result("check_pattern")["match"] == "20457"
    assert result("search_customer")["count"] == 2
    assert result("list_orders")["count"] == 2
    assert result("get_order")["amount"] == 1057.86
    assert result("issue_refund")["refund_id"] == "ref-5048"
    assert result("list_refunds")["count"] == 2
    assert result("update_order")["version"] == 5
    assert result("place_order")["order_id"] == "ord-7208"
    assert result("get_product")["stock"] == 200


@pytest.mark.parametrize(
    ("name", "arguments", "status", "says"),
    [
        ("fetch_order", {}, 404, "no tool fetch_order"),
        ("get_order", {}, 400, "arguments.order_id is missing"),
        ("get_order", {"order_id": 7018}, 400, "arguments.order_id is no string"),
        ("get_order", {"order_id": "ord-7018", "x": 1}, 400, "arguments.x is unknown"),
        ("get_order", ["ord-7018"], 400, "arguments is no object"),
        ("get_order", {"order_id": "ord-1"}, 404, "no order_id ord-1"),
        ("list_orders", {"customer_id": "cus-1"}, 404, "no customer_id cus-1"),
        (
            "list_orders",
            {"customer_id": "cus-2047", "status": "lost"},
            400,
            "arguments.status is none of pending, delivered, cancelled, refunded, reordered",
        ),
        ("add_time", {"start": "tomorrow"}, 400, "Invalid isoformat string: 'tomorrow'"),
        ("add_time", {"start": "2026-01-01T00:00:00Z", "days": 10**8}, 400, "out of range"),
        ("check_pattern", {"pattern": "(", "text": ""}, 400, "pattern: missing )"),
        ("add_note", {"order_id": "ord-1", "text": "x"}, 404, "no order_id ord-1"),
        (
            "update_order",
            {"order_id": "ord-7018", "version": 3},
            409,
            "ord-7018 is at version 4, not 3",
        ),
        (
            "issue_refund",
            {"order_id": "ord-7018", "amount": 900, "currency": "EUR", "reason": "x"},
            409,
            "refunds of ord-7018 would exceed its amount",
        ),
        (
            "place_order",
            dict(CALLS["place_order"]) | {"quantity": 215},
            409,
            "sku-4411 has 214 pieces in stock, not 215",
        ),
    ],
)
def test_how_they_refuse(
    shop: sqlite3.Connection, name: str, arguments: Json, status: int, says: str
) -> None:
    found, body = registry.call_shop_tool(shop, name, arguments)
    assert found == status
    assert isinstance(body["error"], dict)
    assert says in str(body["error"]["message"])
    assert changes(shop) == 0


def test_the_same_writes_make_the_same_rows(tmp_path: Path) -> None:
    def written() -> dict[str, Json]:
        world.set_up_order_book(tmp_path / "shop.db", ORDER_TASKS["refund-1"])
        with closing(order_book.connect_order_book(tmp_path / "shop.db")) as shop:
            registry.call_shop_tool(shop, "add_note", {"order_id": "ord-7018", "text": "one"})
            return registry.call_shop_tool(
                shop, "add_note", {"order_id": "ord-7018", "text": "two"}
            )[1]

    assert written() == written()


moments = st.datetimes().map(calculator.format_moment)


@given(moments, st.integers(-999, 999), st.integers(-99, 99))
def test_the_time_between_is_the_time_that_was_added(start: str, days: int, hours: int) -> None:
    try:
        later = calculator.add_time(NOWHERE, start=start, days=days, hours=hours)
    except OverflowError:
        return
    between = calculator.time_between(NOWHERE, start=start, end=later["result"])
    assert between["seconds"] == (days * 24 + hours) * 3600


@given(
    st.floats(-1e6, 1e6).map(lambda amount: round(amount, 2)),
    st.sampled_from(list(calculator.RATES)),
    st.sampled_from(list(calculator.RATES)),
)
def test_money_converted_there_and_back_is_the_same_but_for_rounding(
    amount: float, source: str, target: str
) -> None:
    there = converted(amount, source, target)
    cent = 0.005 * calculator.RATES[source] / calculator.RATES[target]
    assert abs(converted(there, target, source) - amount) <= cent + 0.0051


def converted(amount: float, source: str, target: str) -> float:
    arguments: dict[str, Json] = {"amount": amount, "source": source, "target": target}
    status, result = registry.call_shop_tool(NOWHERE, "convert_currency", arguments)
    assert status == 200
    assert isinstance(result["converted"], float)
    return result["converted"]
