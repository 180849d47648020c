"""Replace a pending order by the cheapest product of a category that is in stock."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from scenarios.practice import steps
from scenarios.practice.book import MORNING, Order
from scenarios.practice.ends import LATER, after, cents, exact, exchanged, later, new_id, note
from scenarios.practice.plan import Pick, Seen, Site, Step, Task, first
from scenarios.practice.schema import Json, Row

ASKED = "2026-03-16T13:25:00Z"


def prices() -> Iterator[Task]:
    """Three price checks; in each the cheapest product of all is out of stock."""
    yield _price("price-1", "ord-7168", "lighting", quantity=76, unit="SEK")
    yield _price("price-2", "ord-7194", "rigging", quantity=140, unit="CHF")
    yield _price("price-3", "ord-7207", "covers", quantity=64, unit="PLN")


def _price(id: str, pending: str, category: str, *, quantity: int, unit: str) -> Task:
    old = MORNING.orders[pending]
    customer = MORNING.customers[old.customer_id]
    product = min(
        (
            product
            for product in MORNING.products.values()
            if product.category == category and product.stock >= quantity
        ),
        key=lambda product: product.unit_price,
    )
    price = cents(exact(product.unit_price) * quantity)
    amount = exchanged(price, product.currency, old.currency)
    more = exchanged(cents(exact(amount) - exact(old.amount)), old.currency, unit)
    new = Order(
        order_id=new_id(MORNING.orders),
        customer_id=customer.customer_id,
        product_id=product.product_id,
        quantity=quantity,
        amount=amount,
        currency=old.currency,
        status="pending",
        placed_at=LATER,
        deliver_by=later(ASKED, days=product.lead_days, hours=4),
        address=customer.address,
        version=1,
    )
    end = after(
        new,
        replace(old, status="cancelled", version=old.version + 1),
        replace(product, stock=product.stock - quantity),
        note(1, new.order_id, f"replaces {old.order_id}, costs {more:.2f} {unit} more"),
    )
    prompt = f"""\
The customer with the address {customer.email} wants {quantity} pieces of the cheapest product \
we sell in the category {category}, instead of their pending order of {old.product_id}. \
Products with fewer than {quantity} pieces in stock do not count.
The price is the price per piece times the pieces, converted to the currency of the pending \
order. The goods are ready the product's lead days and four hours after {ASKED}.
1. Give the pending order the status cancelled.
2. Place the new order in the currency of the old one, delivered when the goods are ready.
3. Put a note on the new order: "replaces <old order>, costs <difference> {unit} more", the \
difference between the two amounts converted to {unit}.
Amounts have two decimals. Tell me the new order's id, its amount and the difference.
task: {id}
"""
    return Task(
        id=id,
        prompt=prompt,
        end=end,
        plan=_plan(customer.email, old.product_id, category, quantity, unit),
        final=lambda seen: (
            f"order {seen.text('new', 'order_id')} over"
            f" {seen.number('money', 'converted'):.2f} {seen.text('order', 'currency')} costs"
            f" {seen.number('more', 'converted'):.2f} {unit} more"
            f" than {seen.text('order', 'order_id')}."
        ),
        sites=(
            Site("get_product", 1),
            Site("get_order", 1),
            Site("convert_currency", 1),
            Site("add_time", 1),
            Site("place_order", 1),
        ),
        live=("unit_price", "amount", "converted", "result", "order_id"),
    )


def _cheapest(quantity: int) -> Pick:
    def number(value: Json) -> float:
        return value if isinstance(value, int | float) else 0.0

    def pick(rows: Sequence[Row]) -> Row:
        enough = [row for row in rows if number(row["stock"]) >= quantity]
        if not enough:
            raise LookupError(f"no product has {quantity} pieces in stock")
        return min(enough, key=lambda row: number(row["unit_price"]))

    return pick


def _plan(email: str, product: str, category: str, quantity: int, unit: str) -> tuple[Step, ...]:
    def price(seen: Seen) -> float:
        return round(seen.number("product", "unit_price") * quantity, 2)

    def more(seen: Seen) -> float:
        return round(seen.number("money", "converted") - seen.number("order", "amount"), 2)

    def currency(seen: Seen) -> str:
        return seen.text("order", "currency")

    return (
        Step(
            name="offer",
            why="find the cheapest product",
            tool="list_products",
            arguments=lambda _: {"category": category},
            rows="products",
            pick=_cheapest(quantity),
        ),
        steps.product(lambda seen: seen.text("offer", "product_id")),
        steps.customer(email),
        steps.listed(lambda rows: first(rows, "product_id", product), status="pending"),
        steps.order(),
        steps.convert("money", price, lambda seen: seen.text("product", "currency"), currency),
        steps.update("status", lambda _: {"status": "cancelled"}),
        steps.convert("more", more, currency, lambda _: unit),
        steps.add_time(
            "ready",
            lambda seen: {
                "start": ASKED,
                "days": seen.whole("product", "lead_days"),
                "hours": 4,
            },
        ),
        steps.place(lambda _: quantity, currency),
        steps.note(
            "last",
            lambda seen: (
                f"replaces {seen.text('order', 'order_id')}, costs"
                f" {seen.number('more', 'converted'):.2f} {unit} more"
            ),
            on="new",
        ),
    )
