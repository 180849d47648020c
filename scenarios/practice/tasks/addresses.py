"""Address tasks: send a pending order to a new address, later, with freight and a goodwill
refund.
"""

from collections.abc import Iterator
from copy import replace

from scenarios.practice.order_book import MORNING_BOOK, RefundRecord
from scenarios.practice.tasks import steps
from scenarios.practice.tasks.expected_state import (
    WRITTEN_DURING_RUN,
    add_to_moment,
    build_expected_book,
    build_expected_note,
    convert_to_currency,
    make_new_row_id,
    round_to_cents,
    to_decimal,
)
from scenarios.practice.tasks.expected_state import count_seconds_between as seconds_between
from scenarios.practice.tasks.plan import (
    InjectableCall,
    PlanStep,
    PracticeTask,
    StepResults,
    find_first_row,
)


def build_address_tasks() -> Iterator[PracticeTask]:
    """Three changes of address; the customer's record has the new address, the order the old
    one.
    """
    yield _build_address_task("address-1", "ord-7189", r"\b\d{5}\b", "80083", hours=52, tariff=1.35)
    yield _build_address_task(
        "address-2", "ord-7155", r"\b111\d\d\b", "11130", hours=76, tariff=2.45
    )
    yield _build_address_task(
        "address-3", "ord-7173", r"\b80\d{3}\b", "80831", hours=44, tariff=1.85
    )


def _build_address_task(
    id: str, moved: str, pattern: str, code: str, *, hours: int, tariff: float
) -> PracticeTask:
    order = MORNING_BOOK.orders[moved]
    customer = MORNING_BOOK.customers[order.customer_id]
    product = MORNING_BOOK.products[order.product_id]
    grams = product.weight_g * order.quantity
    freight = convert_to_currency(
        round_to_cents(to_decimal(tariff) * grams / 1000), "EUR", order.currency
    )
    date = add_to_moment(order.deliver_by, hours=hours)
    seconds_waited = seconds_between(order.placed_at, date)
    goodwill = RefundRecord(
        refund_id=make_new_row_id(MORNING_BOOK.refunds),
        order_id=order.order_id,
        amount=round_to_cents(to_decimal(seconds_waited) / 10000),
        currency=order.currency,
        reason=f"goodwill for {seconds_waited} s of waiting",
        created_at=WRITTEN_DURING_RUN,
    )
    end = build_expected_book(
        goodwill,
        replace(order, address=customer.address, deliver_by=date, version=order.version + 1),
        build_expected_note(
            1, order.order_id, f"moved to {code}, freight {freight:.2f} {order.currency}"
        ),
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
    return PracticeTask(
        id=id,
        prompt=prompt,
        end=end,
        plan=_plan_address_task(customer.email, order.product_id, pattern, hours, tariff),
        final=lambda seen: (
            f"{seen.get_text('order', 'order_id')} arrives "
            f"by {seen.get_text('date', 'result')}; freight"
            f" {seen.get_number('freight', 'converted'):.2f}, refund"
            f" {seen.get_text('goodwill', 'refund_id')} of {_compute_goodwill(seen):.2f}"
            f" {seen.get_text('order', 'currency')}."
        ),
        sites=(
            InjectableCall("check_pattern", 1),
            InjectableCall("add_time", 1),
            InjectableCall("get_product", 1),
            InjectableCall("convert_currency", 1),
            InjectableCall("time_between", 1),
            InjectableCall("update_order", 1),
        ),
        decisive_fields=("match", "result", "weight_g", "converted", "seconds", None),
    )


def _compute_goodwill(seen: StepResults) -> float:
    return round(seen.get_number("waited", "seconds") / 10000, 2)


def _plan_address_task(
    email: str, product: str, pattern: str, hours: int, tariff: float
) -> tuple[PlanStep, ...]:
    def freight(seen: StepResults) -> float:
        grams = seen.get_number("product", "weight_g") * seen.get_number("order", "quantity")
        return round(grams * tariff / 1000, 2)

    def currency(seen: StepResults) -> str:
        return seen.get_text("order", "currency")

    return (
        steps.find_customer_step(email),
        PlanStep(
            name="code",
            why="find the postcode in the new address",
            tool="check_pattern",
            arguments=lambda seen: {
                "pattern": pattern,
                "text": seen.get_text("customer", "address"),
            },
        ),
        steps.find_order_step(
            lambda rows: find_first_row(rows, "product_id", product), status="pending"
        ),
        steps.read_order_step(),
        steps.add_time_step(
            "date", lambda seen: {"start": seen.get_text("order", "deliver_by"), "hours": hours}
        ),
        steps.update_order_step(
            "moved",
            lambda seen: {
                "address": seen.get_text("customer", "address"),
                "deliver_by": seen.get_text("date", "result"),
            },
        ),
        steps.read_product_step(lambda seen: seen.get_text("order", "product_id")),
        steps.convert_amount_step("freight", freight, lambda _: "EUR", currency),
        steps.add_note_step(
            "first",
            lambda seen: (
                f"moved to {seen.get_text('code', 'match')}, freight"
                f" {seen.get_number('freight', 'converted'):.2f} {currency(seen)}"
            ),
        ),
        steps.time_between_step(
            "waited",
            lambda seen: seen.get_text("order", "placed_at"),
            lambda seen: seen.get_text("date", "result"),
        ),
        PlanStep(
            name="goodwill",
            why="refund the goodwill",
            tool="issue_refund",
            arguments=lambda seen: {
                "order_id": seen.get_text("order", "order_id"),
                "amount": _compute_goodwill(seen),
                "currency": currency(seen),
                "reason": f"goodwill for {seen.get_int('waited', 'seconds')} s of waiting",
            },
        ),
    )
