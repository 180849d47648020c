"""Send a pending order to the customer's new address, later, with freight and a goodwill."""

from collections.abc import Iterator
from dataclasses import replace

from scenarios.practice import steps
from scenarios.practice.book import MORNING, Refund
from scenarios.practice.ends import LATER, after, cents, exact, exchanged, later, new_id, note
from scenarios.practice.ends import seconds as seconds_between
from scenarios.practice.plan import Seen, Site, Step, Task, first


def addresses() -> Iterator[Task]:
    """Three moves; each customer's file has the new address, the order still the old one."""
    yield _move("address-1", "ord-7189", r"\b\d{5}\b", "80083", hours=52, tariff=1.35)
    yield _move("address-2", "ord-7155", r"\b111\d\d\b", "11130", hours=76, tariff=2.45)
    yield _move("address-3", "ord-7173", r"\b80\d{3}\b", "80831", hours=44, tariff=1.85)


def _move(id: str, moved: str, pattern: str, code: str, *, hours: int, tariff: float) -> Task:
    order = MORNING.orders[moved]
    customer = MORNING.customers[order.customer_id]
    product = MORNING.products[order.product_id]
    grams = product.weight_g * order.quantity
    freight = exchanged(cents(exact(tariff) * grams / 1000), "EUR", order.currency)
    date = later(order.deliver_by, hours=hours)
    waited = seconds_between(order.placed_at, date)
    goodwill = Refund(
        refund_id=new_id(MORNING.refunds),
        order_id=order.order_id,
        amount=cents(exact(waited) / 10000),
        currency=order.currency,
        reason=f"goodwill for {waited} s of waiting",
        created_at=LATER,
    )
    end = after(
        goodwill,
        replace(order, address=customer.address, deliver_by=date, version=order.version + 1),
        note(1, order.order_id, f"moved to {code}, freight {freight:.2f} {order.currency}"),
    )
    prompt = f"""\
The customer with the address {customer.email} has moved; their file has the new address. \
Their pending order of {order.product_id} must go there, {hours} hours later than planned.
1. Give the order the new address and the new delivery date.
2. Put a note on it: "moved to <postcode>, freight <amount> <currency>". The postcode is what \
the pattern {pattern} matches in the new address; the freight is {tariff} EUR per kilogram of \
all pieces, rounded to cents and then converted to the currency of the order.
3. Refund, in the currency of the order, one hundredth of a cent for every second from placing \
the order to its new delivery date, rounded to cents (seconds / 10000 units). The reason is \
"goodwill for <seconds> s of waiting".
Amounts have two decimals. Tell me the new date, the freight and the refund with its id.
task: {id}
"""
    return Task(
        id=id,
        prompt=prompt,
        end=end,
        plan=_plan(customer.email, order.product_id, pattern, hours, tariff),
        final=lambda seen: (
            f"{seen.text('order', 'order_id')} arrives by {seen.text('date', 'result')}; freight"
            f" {seen.number('freight', 'converted'):.2f}, refund"
            f" {seen.text('goodwill', 'refund_id')} of {_goodwill(seen):.2f}"
            f" {seen.text('order', 'currency')}."
        ),
        sites=(
            Site("check_pattern", 1),
            Site("add_time", 1),
            Site("get_product", 1),
            Site("convert_currency", 1),
            Site("time_between", 1),
            Site("update_order", 1),
        ),
        live=("match", "result", "weight_g", "converted", "seconds", None),
    )


def _goodwill(seen: Seen) -> float:
    return round(seen.number("waited", "seconds") / 10000, 2)


def _plan(email: str, product: str, pattern: str, hours: int, tariff: float) -> tuple[Step, ...]:
    def freight(seen: Seen) -> float:
        grams = seen.number("product", "weight_g") * seen.number("order", "quantity")
        return round(grams * tariff / 1000, 2)

    def currency(seen: Seen) -> str:
        return seen.text("order", "currency")

    return (
        steps.customer(email),
        Step(
            name="code",
            why="find the postcode in the new address",
            tool="check_pattern",
            arguments=lambda seen: {"pattern": pattern, "text": seen.text("customer", "address")},
        ),
        steps.listed(lambda rows: first(rows, "product_id", product), status="pending"),
        steps.order(),
        steps.add_time(
            "date", lambda seen: {"start": seen.text("order", "deliver_by"), "hours": hours}
        ),
        steps.update(
            "moved",
            lambda seen: {
                "address": seen.text("customer", "address"),
                "deliver_by": seen.text("date", "result"),
            },
        ),
        steps.product(lambda seen: seen.text("order", "product_id")),
        steps.convert("freight", freight, lambda _: "EUR", currency),
        steps.note(
            "first",
            lambda seen: (
                f"moved to {seen.text('code', 'match')}, freight"
                f" {seen.number('freight', 'converted'):.2f} {currency(seen)}"
            ),
        ),
        steps.time_between(
            "waited",
            lambda seen: seen.text("order", "placed_at"),
            lambda seen: seen.text("date", "result"),
        ),
        Step(
            name="goodwill",
            why="refund the goodwill",
            tool="issue_refund",
            arguments=lambda seen: {
                "order_id": seen.text("order", "order_id"),
                "amount": _goodwill(seen),
                "currency": currency(seen),
                "reason": f"goodwill for {seen.whole('waited', 'seconds')} s of waiting",
            },
        ),
    )
