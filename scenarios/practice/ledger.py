"""The shop's ledger: what was done in it, one entry for each row that a tool wrote.

The key of an entry is all that the customer asked for. The shop's own ids and times are left out,
so that a refund that is paid twice is two entries with one key.
"""

import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

from scenarios.effect_ledger import EffectReading, count_effects
from scenarios.practice.order_book import OrderBook, read_order_book
from scenarios.practice.tasks.plan import PracticeTask

LEDGER_NAME = "practice"


def list_shop_effects(path: Path, task: PracticeTask) -> list[dict[str, str]]:
    """Return the entries beyond the start state of a task. Raises sqlite3.Error."""
    with closing(sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True)) as connection:
        connection.row_factory = sqlite3.Row
        book = read_order_book(connection)
    return [{"key": key} for key in _list_keys(book, task.start)]


def read_shop_effects(path: Path, task: PracticeTask) -> EffectReading:
    """Return the shop's effects as the reading of a ledger."""
    try:
        entries = list_shop_effects(path, task)
    except sqlite3.Error as error:
        return EffectReading(of=LEDGER_NAME, why=f"{path}: {error}")
    counts, names = count_effects(json.dumps(entries).encode())
    return EffectReading(counts=counts, names=names, of=LEDGER_NAME)


def _list_keys(book: OrderBook, start: OrderBook) -> Iterator[str]:
    for id, order in book.orders.items():
        if id not in start.orders:
            what = f"{order.quantity} x {order.product_id} for {order.customer_id}"
            yield f"order {what} to {order.address}"
        elif order.status != start.orders[id].status:
            yield f"{id} is {order.status}"
    for id, refund in book.refunds.items():
        if id not in start.refunds:
            yield f"refund {refund.amount:g} {refund.currency} for {refund.order_id}"
    for id, note in book.notes.items():
        if id not in start.notes:
            yield f"note on {note.order_id}"
