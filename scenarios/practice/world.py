"""The practice world: set up, reset, and verify the order book of a task."""

import sqlite3
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from pathlib import Path

from msgspec import Struct

from scenarios.effect_ledger import EffectReading
from scenarios.practice.ledger import read_shop_effects
from scenarios.practice.order_book import (
    BOOK_SCHEMA,
    BOOK_TABLES,
    OrderBook,
    connect_order_book,
    fill_order_book,
    read_order_book,
)
from scenarios.practice.tasks.plan import PracticeTask
from scenarios.practice.tasks.registry import ALL_TASKS
from scenarios.world import Verdict


def set_up_order_book(path: Path, task: PracticeTask) -> None:
    """Put a file into the task's start state, creating it if it does not exist."""
    with closing(connect_order_book(path)) as book:
        if book.execute("select 1 from sqlite_master where name = 'shop'").fetchone() is None:
            book.executescript(BOOK_SCHEMA)
        fill_order_book(book, task.start, task.id)


def reset_order_book(path: Path, task: PracticeTask) -> None:
    """Restore the task's start state of an existing file, even while it is being served."""
    with closing(connect_order_book(path)) as book:
        fill_order_book(book, task.start, task.id)


def verify_order_book(path: Path, task: PracticeTask) -> Verdict:
    """Return whether the file is in exactly the task's end state."""
    try:
        with closing(sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True)) as book:
            book.row_factory = sqlite3.Row
            task_id = str(book.execute("select task from shop").fetchone()["task"])
            actual = read_order_book(book)
    except sqlite3.Error as error:
        return Verdict(passed=None, detail=f"{path}: {error}")
    if task_id != task.id:
        return Verdict(passed=None, detail=f"{path} was set up for {task_id!r}, not for {task.id}")
    differences = tuple(_compare_order_books(task.end, actual))
    return Verdict(passed=not differences, detail="; ".join(differences))


def _compare_order_books(wanted: OrderBook, found: OrderBook) -> Iterator[str]:
    for table in BOOK_TABLES:
        want = Counter(getattr(wanted, table).values())
        have = Counter(getattr(found, table).values())
        yield from (f"missing: {row}" for row in want - have)
        yield from (f"not asked for: {row}" for row in have - want)


class PracticeWorld(Struct, frozen=True):
    """The order book of one task, served at `hosts`."""

    path: Path
    task: str
    hosts: Mapping[str, tuple[str, int]]

    async def reset(self) -> None:
        """Bring the book into the task's start state."""
        reset_order_book(self.path, ALL_TASKS[self.task])

    async def verify(self, said: Sequence[str] = ()) -> Verdict:
        """Compare the book with the state that the task demands."""
        return verify_order_book(self.path, ALL_TASKS[self.task])

    async def read_effects(self) -> EffectReading:
        """Return what was done in the shop."""
        return read_shop_effects(self.path, ALL_TASKS[self.task])
