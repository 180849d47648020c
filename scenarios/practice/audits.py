"""Read many orders and their products, and add them up: sixty steps, for what comes late."""

from collections.abc import Iterator
from decimal import Decimal

from scenarios.practice import steps
from scenarios.practice.book import MORNING
from scenarios.practice.ends import after, exact, exchanged, note
from scenarios.practice.plan import Seen, Site, Step, Task

ORDERS = 18


def audits() -> Iterator[Task]:
    """One audit of the first orders of the book."""
    yield _audit("audit-1", tuple(MORNING.orders)[:ORDERS])


def _audit(id: str, those: tuple[str, ...]) -> Task:
    orders = [MORNING.orders[one] for one in those]
    worth = sum((exact(exchanged(o.amount, o.currency, "EUR")) for o in orders), Decimal(0))
    grams = sum(MORNING.products[o.product_id].weight_g * o.quantity for o in orders)
    pieces = sum(o.quantity for o in orders)
    texts = (f"worth {worth:.2f} EUR", f"weight {grams} g", f"{pieces} pieces")
    end = after(*(note(nth, those[0], text) for nth, text in enumerate(texts, start=1)))
    prompt = f"""\
Audit these orders: {", ".join(those)}.
For each of them, in this order: read the order, read its product, and convert its amount to EUR.
Then put three notes on {those[0]}:
1. "worth <amount> EUR", the sum of the converted amounts, with two decimals,
2. "weight <grams> g", the sum of weight times quantity,
3. "<count> pieces", the sum of the quantities.
Tell me all three.
task: {id}
"""
    return Task(
        id=id,
        prompt=prompt,
        end=end,
        plan=(*(step for one in those for step in _reading(one)), *_notes(those)),
        final=lambda seen: f"the audit of {len(those)} orders: {', '.join(_sums(seen, those))}.",
        sites=(Site("get_order", 9), Site("get_product", 9), Site("convert_currency", 9)),
        live=("amount", "weight_g", "converted"),
    )


def _reading(one: str) -> Iterator[Step]:
    yield Step(
        name=f"order {one}",
        why="read the order",
        tool="get_order",
        arguments=lambda _: {"order_id": one},
    )
    yield Step(
        name=f"product {one}",
        why="read its product",
        tool="get_product",
        arguments=lambda seen: {"product_id": seen.text(f"order {one}", "product_id")},
    )
    yield steps.convert(
        f"euros {one}",
        lambda seen: seen.number(f"order {one}", "amount"),
        lambda seen: seen.text(f"order {one}", "currency"),
        lambda _: "EUR",
    )


def _notes(those: tuple[str, ...]) -> Iterator[Step]:
    def text(nth: int) -> Step:
        return steps.note(
            f"note {nth}", lambda seen: _sums(seen, those)[nth], on=f"order {those[0]}"
        )

    return (text(nth) for nth in range(3))


def _sums(seen: Seen, those: tuple[str, ...]) -> tuple[str, str, str]:
    worth = sum(seen.number(f"euros {one}", "converted") for one in those)
    grams = sum(
        seen.whole(f"product {one}", "weight_g") * seen.whole(f"order {one}", "quantity")
        for one in those
    )
    pieces = sum(seen.whole(f"order {one}", "quantity") for one in those)
    return f"worth {worth:.2f} EUR", f"weight {grams} g", f"{pieces} pieces"
