"""Refund part of a damaged delivery in the currency of the customer's card."""

from collections.abc import Iterator
from dataclasses import replace

from scenarios.practice import steps
from scenarios.practice.book import MORNING, Refund
from scenarios.practice.ends import (
    LATER,
    after,
    cents,
    exact,
    exchanged,
    later,
    new_id,
    note,
    seconds,
)
from scenarios.practice.plan import Seen, Site, Step, Task, first


def refunds() -> Iterator[Task]:
    """Three refunds; each order has been refunded in part before."""
    yield _refund("refund-1", "ref-5012", percent=35, card="GBP", reported="2026-01-24T08:20:00Z")
    yield _refund("refund-2", "ref-5026", percent=45, card="EUR", reported="2026-03-07T16:05:00Z")
    yield _refund("refund-3", "ref-5047", percent=60, card="PLN", reported="2026-03-15T11:45:00Z")


def _refund(id: str, earlier: str, *, percent: int, card: str, reported: str) -> Task:
    paid = MORNING.refunds[earlier]
    order = MORNING.orders[paid.order_id]
    customer = MORNING.customers[order.customer_id]
    rest = cents((exact(order.amount) - exact(paid.amount)) * percent / 100)
    amount = exchanged(rest, order.currency, card)
    waited = seconds(order.deliver_by, reported)
    due = later(reported, days=5, hours=6)
    refund = Refund(
        refund_id=new_id(MORNING.refunds),
        order_id=order.order_id,
        amount=amount,
        currency=card,
        reason=f"damaged, reported {waited} s after delivery",
        created_at=LATER,
    )
    end = after(
        refund,
        replace(order, status="refunded", version=order.version + 1),
        note(1, order.order_id, f"{percent} % of the rest is {amount:.2f} {card}"),
        note(2, order.order_id, f"{refund.refund_id} pays {amount:.2f} {card} by {due}"),
    )
    prompt = f"""\
The customer with the address {customer.email} reports at {reported} that part of their order \
of {order.product_id} came damaged. One refund, {earlier}, was paid for it before.
Refund {percent} % of what remains of the order's amount after that refund, in {card}.
1. Put a note on the order: "{percent} % of the rest is <amount> {card}".
2. Issue the refund; the reason is "damaged, reported <seconds> s after delivery", where the \
seconds run from the order's delivery date to the report.
3. Give the order the status refunded.
4. Put a second note on it: "<refund id> pays <amount> {card} by <date>", the date being five \
days and six hours after the report.
Amounts have two decimals. Tell me the refund's id, its amount and the date.
task: {id}
"""
    return Task(
        id=id,
        prompt=prompt,
        end=end,
        plan=_plan(customer.email, order.product_id, earlier, percent, card, reported),
        final=lambda seen: (
            f"refund {seen.text('refund', 'refund_id')} pays"
            f" {seen.number('money', 'converted'):.2f} {card} for"
            f" {seen.text('order', 'order_id')} by {seen.text('due', 'result')}."
        ),
        sites=(
            Site("get_order", 1),
            Site("get_refund", 1),
            Site("convert_currency", 1),
            Site("time_between", 1),
            Site("add_time", 1),
            Site("issue_refund", 1),
        ),
        live=("amount", "amount", "converted", "seconds", "result", "refund_id"),
    )


def _plan(
    email: str, product: str, earlier: str, percent: int, card: str, reported: str
) -> tuple[Step, ...]:
    def rest(seen: Seen) -> float:
        left = seen.number("order", "amount") - seen.number("earlier", "amount")
        return round(left * percent / 100, 2)

    def money(seen: Seen) -> str:
        return f"{seen.number('money', 'converted'):.2f} {card}"

    return (
        steps.customer(email),
        steps.listed(lambda rows: first(rows, "product_id", product)),
        steps.order(),
        Step(
            name="earlier",
            why="read the earlier refund",
            tool="get_refund",
            arguments=lambda _: {"refund_id": earlier},
        ),
        steps.convert("money", rest, lambda seen: seen.text("order", "currency"), lambda _: card),
        steps.note("first", lambda seen: f"{percent} % of the rest is {money(seen)}"),
        steps.time_between(
            "waited", lambda seen: seen.text("order", "deliver_by"), lambda _: reported
        ),
        Step(
            name="refund",
            why="pay the money back",
            tool="issue_refund",
            arguments=lambda seen: {
                "order_id": seen.text("order", "order_id"),
                "amount": seen.number("money", "converted"),
                "currency": card,
                "reason": f"damaged, reported {seen.whole('waited', 'seconds')} s after delivery",
            },
        ),
        steps.add_time("due", lambda _: {"start": reported, "days": 5, "hours": 6}),
        steps.update("status", lambda _: {"status": "refunded"}),
        steps.note(
            "last",
            lambda seen: (
                f"{seen.text('refund', 'refund_id')} pays {money(seen)}"
                f" by {seen.text('due', 'result')}"
            ),
        ),
    )
