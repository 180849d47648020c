"""Steps that several plans share."""

from collections.abc import Callable

from scenarios.practice.plan import Arguments, Pick, Seen, Step, first
from scenarios.practice.schema import Json


def customer(email: str) -> Step:
    """Find the customer with this address, as `customer`."""
    return Step(
        name="customer",
        why="find the customer",
        tool="search_customer",
        arguments=lambda _: {"query": email},
        rows="customers",
        pick=lambda rows: first(rows, "email", email),
    )


def listed(pick: Pick, status: str | None = None) -> Step:
    """Find one order of the customer, as `listed`."""

    def arguments(seen: Seen) -> Arguments:
        whose: Arguments = {"customer_id": seen.text("customer", "customer_id")}
        return whose if status is None else whose | {"status": status}

    return Step(
        name="listed",
        why="find the order among the customer's orders",
        tool="list_orders",
        arguments=arguments,
        rows="orders",
        pick=pick,
    )


def order() -> Step:
    """Read the order that was found, as `order`."""
    return Step(
        name="order",
        why="read the order",
        tool="get_order",
        arguments=lambda seen: {"order_id": seen.text("listed", "order_id")},
    )


def product(key: Callable[[Seen], str]) -> Step:
    """Read a product, as `product`."""
    return Step(
        name="product",
        why="read the product",
        tool="get_product",
        arguments=lambda seen: {"product_id": key(seen)},
    )


def convert(
    name: str,
    amount: Callable[[Seen], float],
    source: Callable[[Seen], str],
    target: Callable[[Seen], str],
) -> Step:
    """Convert an amount of money."""
    return Step(
        name=name,
        why="convert the amount",
        tool="convert_currency",
        arguments=lambda seen: {
            "amount": amount(seen),
            "source": source(seen),
            "target": target(seen),
        },
    )


def add_time(name: str, arguments: Callable[[Seen], Arguments]) -> Step:
    """Reckon a date."""
    return Step(name=name, why="reckon the date", tool="add_time", arguments=arguments)


def time_between(name: str, start: Callable[[Seen], str], end: Callable[[Seen], str]) -> Step:
    """Reckon the time between two moments."""
    return Step(
        name=name,
        why="reckon the time between",
        tool="time_between",
        arguments=lambda seen: {"start": start(seen), "end": end(seen)},
    )


def note(name: str, text: Callable[[Seen], str], on: str = "order") -> Step:
    """Put a note on an order."""
    return Step(
        name=name,
        why="put a note on the order",
        tool="add_note",
        arguments=lambda seen: {"order_id": seen.text(on, "order_id"), "text": text(seen)},
    )


def update(name: str, changes: Callable[[Seen], dict[str, Json]]) -> Step:
    """Change the order that was read."""
    return Step(
        name=name,
        why="change the order",
        tool="update_order",
        arguments=lambda seen: {
            "order_id": seen.text("order", "order_id"),
            "version": seen.whole("order", "version"),
            **changes(seen),
        },
    )


def place(quantity: Callable[[Seen], int], currency: Callable[[Seen], str]) -> Step:
    """Order `product` for `customer` at the price of `money`, delivered by `ready`, as `new`."""
    return Step(
        name="new",
        why="place the new order",
        tool="place_order",
        arguments=lambda seen: {
            "customer_id": seen.text("customer", "customer_id"),
            "product_id": seen.text("product", "product_id"),
            "quantity": quantity(seen),
            "amount": seen.number("money", "converted"),
            "currency": currency(seen),
            "deliver_by": seen.text("ready", "result"),
        },
    )
