"""The order book as values: what stands in the file, row by row."""

import sqlite3
from collections.abc import Mapping
from contextlib import closing
from dataclasses import astuple, dataclass, field, fields
from pathlib import Path

SCHEMA = Path(__file__).with_name("book.sql").read_text("utf-8")


@dataclass(frozen=True, slots=True, kw_only=True)
class Customer:
    customer_id: str
    name: str
    email: str
    country: str
    currency: str
    address: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Product:
    product_id: str
    name: str
    category: str
    unit_price: float
    currency: str
    stock: int
    lead_days: int
    weight_g: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    order_id: str
    customer_id: str
    product_id: str
    quantity: int
    amount: float
    currency: str
    status: str
    placed_at: str = field(compare=False)
    """When the write happened says nothing about what was asked, so it is never compared."""
    deliver_by: str
    address: str
    version: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Refund:
    refund_id: str
    order_id: str
    amount: float
    currency: str
    reason: str
    created_at: str = field(compare=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Note:
    note_id: str
    order_id: str
    text: str
    created_at: str = field(compare=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Book:
    """Everything the shop knows, each table by the id of its rows."""

    customers: Mapping[str, Customer]
    products: Mapping[str, Product]
    orders: Mapping[str, Order]
    refunds: Mapping[str, Refund]
    notes: Mapping[str, Note]


TABLES = ("customers", "products", "orders", "refunds", "notes")


def connect(path: Path | str) -> sqlite3.Connection:
    """A connection for the shop: no fsync, since a practice file outlives no power cut."""
    connection = sqlite3.connect(path, timeout=5)
    connection.row_factory = sqlite3.Row
    connection.execute("pragma synchronous = off")
    return connection


def read(connection: sqlite3.Connection) -> Book:
    """The book in this file; sqlite3.Error where the file is none."""
    return Book(
        customers=_table(connection, Customer, "customers"),
        products=_table(connection, Product, "products"),
        orders=_table(connection, Order, "orders"),
        refunds=_table(connection, Refund, "refunds"),
        notes=_table(connection, Note, "notes"),
    )


def _table[R: (Customer, Product, Order, Refund, Note)](
    connection: sqlite3.Connection, kind: type[R], table: str
) -> dict[str, R]:
    columns = ", ".join(field.name for field in fields(kind))
    rows = connection.execute(f"select {columns} from {table}")
    return {row[0]: kind(**dict(row)) for row in rows}


def fill(connection: sqlite3.Connection, book: Book, task: str) -> None:
    """Make the file hold exactly this book, in one transaction."""
    with connection:
        for table in TABLES:
            values = [astuple(row) for row in getattr(book, table).values()]
            connection.execute(f"delete from {table}")
            if values:
                marks = ", ".join("?" * len(values[0]))
                connection.executemany(f"insert into {table} values ({marks})", values)
        connection.execute("update shop set task = ?, writes = 0", (task,))


def _morning() -> Book:
    with closing(connect(":memory:")) as connection:
        connection.executescript(SCHEMA)
        return read(connection)


MORNING = _morning()
"""The book every task starts from."""
