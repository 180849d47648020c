"""The expected end state of a task, computed from the task's data alone.

It uses decimals and dates, the tools floats and texts: a verifier that shared the tools' arithmetic
would share their errors.
"""

from collections.abc import Mapping
from copy import replace
from datetime import datetime, timedelta
from decimal import ROUND_HALF_EVEN, Decimal

from scenarios.practice.order_book import (
    MORNING_BOOK,
    NoteRecord,
    OrderBook,
    OrderRecord,
    ProductRecord,
    RefundRecord,
)
from scenarios.practice.tools.calculator import RATES

WRITTEN_DURING_RUN = "written during the run"
"""Placeholder for the time of a write, which is never compared."""


def to_decimal(number: float) -> Decimal:
    """Return the decimal number that a float represents in its shortest form."""
    return Decimal(str(number))


def round_to_cents(amount: Decimal) -> float:
    """Round an amount to two decimals."""
    return float(amount.quantize(Decimal("0.01"), ROUND_HALF_EVEN))


def convert_to_currency(amount: float, source: str, target: str) -> float:
    """Convert an amount to another currency."""
    return round_to_cents(
        to_decimal(amount) * to_decimal(RATES[target]) / to_decimal(RATES[source])
    )


def add_to_moment(start: str, *, days: int = 0, hours: int = 0) -> str:
    """Return the moment some days and hours after `start`."""
    moment = datetime.fromisoformat(start) + timedelta(days=days, hours=hours)
    return moment.isoformat().replace("+00:00", "Z")


def count_seconds_between(start: str, end: str) -> int:
    """Return the seconds from one moment to another."""
    return round((datetime.fromisoformat(end) - datetime.fromisoformat(start)).total_seconds())


def make_new_row_id(rows: Mapping[str, object], nth: int = 1) -> str:
    """Return the id of the nth row added to a table."""
    prefix, number = max(rows).split("-")
    return f"{prefix}-{int(number) + nth}"


def build_expected_book(
    *rows: ProductRecord | OrderRecord | RefundRecord | NoteRecord,
) -> OrderBook:
    """Return the morning's book with these rows added, or replaced if their id exists."""
    book = MORNING_BOOK
    for row in rows:
        match row:
            case ProductRecord():
                book = replace(book, products={**book.products, row.product_id: row})
            case OrderRecord():
                book = replace(book, orders={**book.orders, row.order_id: row})
            case RefundRecord():
                book = replace(book, refunds={**book.refunds, row.refund_id: row})
            case NoteRecord():
                book = replace(book, notes={**book.notes, row.note_id: row})
    return book


def build_expected_note(nth: int, order_id: str, text: str) -> NoteRecord:
    """Return the nth note of the run."""
    key = make_new_row_id(MORNING_BOOK.notes, nth)
    return NoteRecord(note_id=key, order_id=order_id, text=text, created_at=WRITTEN_DURING_RUN)
