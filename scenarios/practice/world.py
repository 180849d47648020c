"""The world the tools act on: set up, reset, and verify the order book of a task."""

import sqlite3
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

from scenarios.practice.book import SCHEMA, TABLES, Book, connect, fill, read
from scenarios.practice.plan import Task
from scenarios.world import Verdict


def setup(path: Path, task: Task) -> None:
    """Bring a file into the task's start state, making it where there is none."""
    with closing(connect(path)) as book:
        if book.execute("select 1 from sqlite_master where name = 'shop'").fetchone() is None:
            book.executescript(SCHEMA)
        fill(book, task.start, task.id)


def reset(path: Path, task: Task) -> None:
    """Bring an existing file back to the task's start state, also while it is being served."""
    with closing(connect(path)) as book:
        fill(book, task.start, task.id)


def verify(path: Path, task: Task) -> Verdict:
    """Whether the file holds what the task demands: nothing less and nothing more."""
    try:
        with closing(sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True)) as book:
            book.row_factory = sqlite3.Row
            held = str(book.execute("select task from shop").fetchone()["task"])
            found = read(book)
    except sqlite3.Error as error:
        return Verdict(passed=None, detail=f"{path}: {error}")
    if held != task.id:
        return Verdict(passed=None, detail=f"{path} was set up for {held!r}, not for {task.id}")
    differences = tuple(_differences(task.end, found))
    return Verdict(passed=not differences, detail="; ".join(differences))


def _differences(wanted: Book, found: Book) -> Iterator[str]:
    for table in TABLES:
        want = Counter(getattr(wanted, table).values())
        have = Counter(getattr(found, table).values())
        yield from (f"missing: {row}" for row in want - have)
        yield from (f"not asked for: {row}" for row in have - want)
