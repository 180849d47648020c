"""What must stand in the book after a task, reckoned from the task's data alone.

Decimals and dates here, floats and texts in the tools: a verifier that shared the tools'
arithmetic would share their mistakes.
"""

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from decimal import ROUND_HALF_EVEN, Decimal

from scenarios.practice.book import MORNING, Book, Note, Order, Product, Refund
from scenarios.practice.reckoning import RATES

LATER = "written during the run"
"""Stands for moments of writing, which are never compared."""


def exact(number: float) -> Decimal:
    """The decimal number that was meant by a float."""
    return Decimal(str(number))


def cents(amount: Decimal) -> float:
    """An amount to two decimals."""
    return float(amount.quantize(Decimal("0.01"), ROUND_HALF_EVEN))


def exchanged(amount: float, source: str, target: str) -> float:
    """An amount in another currency."""
    return cents(exact(amount) * exact(RATES[target]) / exact(RATES[source]))


def later(start: str, *, days: int = 0, hours: int = 0) -> str:
    """The moment some days and hours after `start`."""
    moment = datetime.fromisoformat(start) + timedelta(days=days, hours=hours)
    return moment.isoformat().replace("+00:00", "Z")


def seconds(start: str, end: str) -> int:
    """The seconds from one moment to another."""
    return round((datetime.fromisoformat(end) - datetime.fromisoformat(start)).total_seconds())


def new_id(rows: Mapping[str, object], nth: int = 1) -> str:
    """The id of the nth row added to a table."""
    prefix, number = max(rows).split("-")
    return f"{prefix}-{int(number) + nth}"


def after(*rows: Product | Order | Refund | Note) -> Book:
    """The morning's book with these rows added or, where their id stands in it, replaced."""
    book = MORNING
    for row in rows:
        match row:
            case Product():
                book = replace(book, products={**book.products, row.product_id: row})
            case Order():
                book = replace(book, orders={**book.orders, row.order_id: row})
            case Refund():
                book = replace(book, refunds={**book.refunds, row.refund_id: row})
            case Note():
                book = replace(book, notes={**book.notes, row.note_id: row})
    return book


def note(nth: int, order_id: str, text: str) -> Note:
    """The nth note of the run."""
    key = new_id(MORNING.notes, nth)
    return Note(note_id=key, order_id=order_id, text=text, created_at=LATER)
