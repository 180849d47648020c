"""The order book as values: the rows of the SQLite file."""

import sqlite3
from collections.abc import Mapping
from contextlib import closing
from dataclasses import astuple, dataclass, field, fields
from pathlib import Path

BOOK_SCHEMA = Path(__file__).with_name("book.sql").read_text("utf-8")


@dataclass(frozen=True, slots=True, kw_only=True)
class CustomerRecord:
    customer_id: str
    name: str
    email: str
    country: str
    currency: str
    address: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ProductRecord:
    product_id: str
    name: str
    category: str
    unit_price: float
    currency: str
    stock: int
    lead_days: int
    weight_g: int


@dataclass(frozen=True, slots=True, kw_only=True)
class OrderRecord:
    order_id: str
    customer_id: str
    product_id: str
    quantity: int
    amount: float
    currency: str
    status: str
    placed_at: str = field(compare=False)
    """Time of the write, which no task determines, so it is never compared."""
    deliver_by: str
    address: str
    version: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RefundRecord:
    refund_id: str
    order_id: str
    amount: float
    currency: str
    reason: str
    created_at: str = field(compare=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class NoteRecord:
    note_id: str
    order_id: str
    text: str
    created_at: str = field(compare=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class OrderBook:
    """All tables of the shop, each keyed by the id of its rows."""

    customers: Mapping[str, CustomerRecord]
    products: Mapping[str, ProductRecord]
    orders: Mapping[str, OrderRecord]
    refunds: Mapping[str, RefundRecord]
    notes: Mapping[str, NoteRecord]


BOOK_TABLES = ("customers", "products", "orders", "refunds", "notes")


def connect_order_book(path: Path | str) -> sqlite3.Connection:
    """Open the shop's file without fsync, since a practice file need not survive a power
    failure.
    """
    connection = sqlite3.connect(path, timeout=5)
    connection.row_factory = sqlite3.Row
    connection.execute("pragma synchronous = off")
    return connection


def read_order_book(connection: sqlite3.Connection) -> OrderBook:
    """Read the book in a file. Raises sqlite3.Error if it is not an order book."""
    return OrderBook(
        customers=_read_book_table(connection, CustomerRecord, "customers"),
        products=_read_book_table(connection, ProductRecord, "products"),
        orders=_read_book_table(connection, OrderRecord, "orders"),
        refunds=_read_book_table(connection, RefundRecord, "refunds"),
        notes=_read_book_table(connection, NoteRecord, "notes"),
    )


def _read_book_table[R: (CustomerRecord, ProductRecord, OrderRecord, RefundRecord, NoteRecord)](
    connection: sqlite3.Connection, kind: type[R], table: str
) -> dict[str, R]:
    columns = ", ".join(field.name for field in fields(kind))
    rows = connection.execute(f"select {columns} from {table}")
    return {row[0]: kind(**dict(row)) for row in rows}


def fill_order_book(connection: sqlite3.Connection, book: OrderBook, task: str) -> None:
    """Replace the file's contents with this book, in one transaction."""
    with connection:
        for table in BOOK_TABLES:
            values = [astuple(row) for row in getattr(book, table).values()]
            connection.execute(f"delete from {table}")
            if values:
                marks = ", ".join("?" * len(values[0]))
                connection.executemany(f"insert into {table} values ({marks})", values)
        connection.execute("update shop set task = ?, writes = 0", (task,))


def _load_morning_book() -> OrderBook:
    with closing(connect_order_book(":memory:")) as connection:
        connection.executescript(BOOK_SCHEMA)
        return read_order_book(connection)


MORNING_BOOK = _load_morning_book()
"""The book every task starts from."""
