"""Plan steps that several tasks share."""

from collections.abc import Callable

from scenarios.practice.tasks.plan import (
    PlanStep,
    RowPicker,
    StepResults,
    ToolArguments,
    find_first_row,
)
from scenarios.practice.tools.json_schema import Json


def find_customer_step(email: str) -> PlanStep:
    """Find the customer with this email address; the step is named `customer`."""
    return PlanStep(
        name="customer",
        why="find the customer",
        tool="search_customer",
        arguments=lambda _: {"query": email},
        rows="customers",
        pick=lambda rows: find_first_row(rows, "email", email),
    )


def find_order_step(pick: RowPicker, status: str | None = None) -> PlanStep:
    """Find one order of the customer; the step is named `listed`."""

    def arguments(seen: StepResults) -> ToolArguments:
        customer: ToolArguments = {"customer_id": seen.get_text("customer", "customer_id")}
        return customer if status is None else customer | {"status": status}

    return PlanStep(
        name="listed",
        why="find the order among the customer's orders",
        tool="list_orders",
        arguments=arguments,
        rows="orders",
        pick=pick,
    )


def read_order_step() -> PlanStep:
    """Read the order that was found; the step is named `order`."""
    return PlanStep(
        name="order",
        why="read the order",
        tool="get_order",
        arguments=lambda seen: {"order_id": seen.get_text("listed", "order_id")},
    )


def read_product_step(key: Callable[[StepResults], str]) -> PlanStep:
    """Read a product; the step is named `product`."""
    return PlanStep(
        name="product",
        why="read the product",
        tool="get_product",
        arguments=lambda seen: {"product_id": key(seen)},
    )


def convert_amount_step(
    name: str,
    amount: Callable[[StepResults], float],
    source: Callable[[StepResults], str],
    target: Callable[[StepResults], str],
) -> PlanStep:
    """Convert an amount of money."""
    return PlanStep(
        name=name,
        why="convert the amount",
        tool="convert_currency",
        arguments=lambda seen: {
            "amount": amount(seen),
            "source": source(seen),
            "target": target(seen),
        },
    )


def add_time_step(name: str, arguments: Callable[[StepResults], ToolArguments]) -> PlanStep:
    """Compute a date."""
    return PlanStep(name=name, why="reckon the date", tool="add_time", arguments=arguments)


def time_between_step(
    name: str, start: Callable[[StepResults], str], end: Callable[[StepResults], str]
) -> PlanStep:
    """Compute the time between two moments."""
    return PlanStep(
        name=name,
        why="reckon the time between",
        tool="time_between",
        arguments=lambda seen: {"start": start(seen), "end": end(seen)},
    )


def add_note_step(name: str, text: Callable[[StepResults], str], on: str = "order") -> PlanStep:
    """Put a note on an order."""
    return PlanStep(
        name=name,
        why="put a note on the order",
        tool="add_note",
        arguments=lambda seen: {"order_id": seen.get_text(on, "order_id"), "text": text(seen)},
    )


def update_order_step(name: str, changes: Callable[[StepResults], dict[str, Json]]) -> PlanStep:
    """Change the order that was read."""
    return PlanStep(
        name=name,
        why="change the order",
        tool="update_order",
        arguments=lambda seen: {
            "order_id": seen.get_text("order", "order_id"),
            "version": seen.get_int("order", "version"),
            **changes(seen),
        },
    )


def place_order_step(
    quantity: Callable[[StepResults], int], currency: Callable[[StepResults], str]
) -> PlanStep:
    """Order `product` for `customer` at the price of step `money`, due at `ready`, as step
    `new`.
    """
    return PlanStep(
        name="new",
        why="place the new order",
        tool="place_order",
        arguments=lambda seen: {
            "customer_id": seen.get_text("customer", "customer_id"),
            "product_id": seen.get_text("product", "product_id"),
            "quantity": quantity(seen),
            "amount": seen.get_number("money", "converted"),
            "currency": currency(seen),
            "deliver_by": seen.get_text("ready", "result"),
        },
    )
