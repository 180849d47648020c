"""Repeat a customer's latest delivery in time for an event, at today's price."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from scenarios.practice import steps
from scenarios.practice.book import MORNING, Order
from scenarios.practice.ends import LATER, after, cents, exact, exchanged, later, new_id, note
from scenarios.practice.ends import seconds as seconds_between
from scenarios.practice.plan import Seen, Site, Step, Task
from scenarios.practice.schema import Row

ASKED = "2026-03-16T10:40:00Z"


def reorders() -> Iterator[Task]:
    """Three repeated orders."""
    yield _reorder("reorder-1", "ord-7106", times=2, hours=19, event="2026-03-28T18:30:00Z")
    yield _reorder("reorder-2", "ord-7117", times=3, hours=31, event="2026-04-04T09:15:00Z")
    yield _reorder("reorder-3", "ord-7124", times=4, hours=26, event="2026-04-09T20:45:00Z")


def _reorder(id: str, latest: str, *, times: int, hours: int, event: str) -> Task:
    old = MORNING.orders[latest]
    customer = MORNING.customers[old.customer_id]
    product = MORNING.products[old.product_id]
    quantity = times * old.quantity
    price = cents(exact(product.unit_price) * quantity)
    amount = exchanged(price, product.currency, customer.currency)
    ready = later(ASKED, days=product.lead_days, hours=hours)
    new = Order(
        order_id=new_id(MORNING.orders),
        customer_id=customer.customer_id,
        product_id=product.product_id,
        quantity=quantity,
        amount=amount,
        currency=customer.currency,
        status="pending",
        placed_at=LATER,
        deliver_by=ready,
        address=customer.address,
        version=1,
    )
    quote = f"repeat of {quantity} pieces quoted at {amount:.2f} {customer.currency}"
    slack = seconds_between(ready, event)
    end = after(
        new,
        replace(old, status="reordered", version=old.version + 1),
        replace(product, stock=product.stock - quantity),
        note(1, old.order_id, quote),
        note(2, new.order_id, f"repeats {old.order_id}, ready {slack} s before the event"),
    )
    prompt = f"""\
The customer with the address {customer.email} wants the goods of their latest delivered order \
again, {times} times as many pieces, before their event at {event}.
The price is today's price per piece times the pieces, converted to the customer's own \
currency. The goods are ready the product's lead days and {hours} hours after {ASKED}.
1. Put a note on the old order: "repeat of <pieces> pieces quoted at <amount> <currency>".
2. Place the new order, to be delivered when the goods are ready.
3. Give the old order the status reordered.
4. Put a note on the new order: "repeats <old order>, ready <seconds> s before the event".
Amounts have two decimals. Tell me the new order's id, its amount and its delivery date.
task: {id}
"""
    return Task(
        id=id,
        prompt=prompt,
        end=end,
        plan=_plan(customer.email, times, hours, event),
        final=lambda seen: (
            f"order {seen.text('new', 'order_id')} over"
            f" {seen.number('money', 'converted'):.2f} {customer.currency}"
            f" will be delivered by {seen.text('ready', 'result')}."
        ),
        sites=(
            Site("get_order", 1),
            Site("get_product", 1),
            Site("convert_currency", 1),
            Site("add_time", 1),
            Site("time_between", 1),
            Site("place_order", 1),
        ),
        live=("quantity", "unit_price", "converted", "result", "seconds", "order_id"),
    )


def _latest(rows: Sequence[Row]) -> Row:
    if not rows:
        raise LookupError("no delivered order")
    return max(rows, key=lambda row: str(row["placed_at"]))


def _plan(email: str, times: int, hours: int, event: str) -> tuple[Step, ...]:
    def quantity(seen: Seen) -> int:
        return times * seen.whole("order", "quantity")

    def price(seen: Seen) -> float:
        return round(seen.number("product", "unit_price") * quantity(seen), 2)

    def currency(seen: Seen) -> str:
        return seen.text("customer", "currency")

    return (
        steps.customer(email),
        steps.listed(_latest, status="delivered"),
        steps.order(),
        steps.product(lambda seen: seen.text("order", "product_id")),
        steps.convert("money", price, lambda seen: seen.text("product", "currency"), currency),
        steps.note(
            "quote",
            lambda seen: (
                f"repeat of {quantity(seen)} pieces quoted at"
                f" {seen.number('money', 'converted'):.2f} {currency(seen)}"
            ),
        ),
        steps.add_time(
            "ready",
            lambda seen: {
                "start": ASKED,
                "days": seen.whole("product", "lead_days"),
                "hours": hours,
            },
        ),
        steps.time_between("slack", lambda seen: seen.text("ready", "result"), lambda _: event),
        steps.place(quantity, currency),
        steps.update("status", lambda _: {"status": "reordered"}),
        steps.note(
            "last",
            lambda seen: (
                f"repeats {seen.text('order', 'order_id')},"
                f" ready {seen.whole('slack', 'seconds')} s before the event"
            ),
            on="new",
        ),
    )
