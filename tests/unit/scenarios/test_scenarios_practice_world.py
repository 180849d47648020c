"""The practice world's verdicts: what passes, what fails, and what cannot be told."""

import sqlite3
from contextlib import closing
from copy import replace
from pathlib import Path

import pytest

from scenarios.practice import order_book, world
from scenarios.practice.tasks.plan import PracticeTask
from scenarios.practice.tasks.registry import ORDER_TASKS
from scenarios.world import Verdict

each_task = pytest.mark.parametrize("task", ORDER_TASKS.values(), ids=ORDER_TASKS)


def done(path: Path, task: PracticeTask) -> None:
    """A shop in which somebody has done the task, however they did it."""
    world.set_up_order_book(path, task)
    with closing(order_book.connect_order_book(path)) as shop:
        order_book.fill_order_book(shop, task.end, task.id)


def change(path: Path, statement: str) -> None:
    with closing(order_book.connect_order_book(path)) as shop, shop:
        assert shop.execute(statement).rowcount == 1


@each_task
def test_a_shop_that_was_only_set_up_fails_and_one_that_holds_the_end_passes(
    task: PracticeTask, tmp_path: Path
) -> None:
    path = tmp_path / "shop.db"
    world.set_up_order_book(path, task)
    assert world.verify_order_book(path, task).passed is False
    done(path, task)
    assert world.verify_order_book(path, task) == Verdict(passed=True, detail="")


@each_task
def test_every_missing_and_every_doubled_write_fails(task: PracticeTask, tmp_path: Path) -> None:
    path = tmp_path / "shop.db"
    for table in ("orders", "refunds", "notes"):
        key = f"{table.removesuffix('s')}_id"
        start, end = getattr(task.start, table), getattr(task.end, table)
        for id in end.keys() - start.keys():
            done(path, task)
            change(path, f"delete from {table} where {key} = '{id}'")
            assert world.verify_order_book(path, task).passed is False
            assert id in world.verify_order_book(path, task).detail
            done(path, task)
            columns = ", ".join(end[id].__slots__[1:])
            change(
                path,
                f"insert into {table} select '{id}x', {columns} from {table} where {key} = '{id}'",
            )
            assert world.verify_order_book(path, task).passed is False


@each_task
def test_an_order_changed_twice_fails(task: PracticeTask, tmp_path: Path) -> None:
    path = tmp_path / "shop.db"
    changed = [id for id in task.start.orders if task.start.orders[id] != task.end.orders[id]]
    assert changed
    for id in changed:
        done(path, task)
        change(path, f"update orders set version = version + 1 where order_id = '{id}'")
        assert world.verify_order_book(path, task).passed is False


def test_when_something_was_written_does_not_matter(tmp_path: Path) -> None:
    path, task = tmp_path / "shop.db", ORDER_TASKS["refund-1"]
    done(path, task)
    [new] = task.end.refunds.keys() - task.start.refunds.keys()
    change(path, f"update refunds set created_at = 'later' where refund_id = '{new}'")
    assert world.verify_order_book(path, task).passed is True


def test_what_cannot_be_read_is_neither_passed_nor_failed(tmp_path: Path) -> None:
    path, task = tmp_path / "shop.db", ORDER_TASKS["refund-1"]
    assert world.verify_order_book(path, task).passed is None
    path.write_bytes(b"no database at all, but long enough to be looked at" * 100)
    assert world.verify_order_book(path, task).passed is None
    path.unlink()
    sqlite3.connect(path).close()
    assert world.verify_order_book(path, task).passed is None
    done(path, task)
    assert world.verify_order_book(path, ORDER_TASKS["refund-2"]).passed is None
    with closing(order_book.connect_order_book(path)) as shop:
        shop.execute("alter table orders drop column version")
    assert world.verify_order_book(path, task).passed is None


def test_verifying_makes_no_file(tmp_path: Path) -> None:
    world.verify_order_book(tmp_path / "shop.db", ORDER_TASKS["refund-1"])
    assert list(tmp_path.iterdir()) == []


def test_reset_brings_back_the_start_while_another_connection_is_open(tmp_path: Path) -> None:
    path, task, next_task = tmp_path / "shop.db", ORDER_TASKS["price-1"], ORDER_TASKS["price-2"]
    done(path, task)
    with closing(order_book.connect_order_book(path)) as served:
        assert order_book.read_order_book(served) == task.end
        world.reset_order_book(path, next_task)
        assert order_book.read_order_book(served) == next_task.start
        assert tuple(served.execute("select task, writes from shop").fetchone()) == ("price-2", 0)


def test_a_book_tells_rows_apart_by_every_field_but_the_time_of_writing() -> None:
    order = order_book.MORNING_BOOK.orders["ord-7018"]
    assert replace(order, placed_at="") == order
    assert replace(order, deliver_by="") != order
    assert replace(order, amount=order.amount + 0.01) != order
