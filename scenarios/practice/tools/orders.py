"""Tools on the order book: reads, and writes that each move the shop's clock by a second.

LookupError: there is no such row. sqlite3.IntegrityError: the write contradicts the book.
"""

from datetime import timedelta
from sqlite3 import Connection, IntegrityError
from typing import Annotated, Literal, TypedDict, cast

from scenarios.practice.tools import calculator
from scenarios.practice.tools.calculator import RATES, Currency, Moment

CustomerId = Annotated[str, "like cus-2047"]
OrderId = Annotated[str, "like ord-7018"]
ProductId = Annotated[str, "like sku-4411"]
RefundId = Annotated[str, "like ref-5012"]
Status = Annotated[
    Literal["pending", "delivered", "cancelled", "refunded", "reordered"], "where the order stands"
]


class CustomerResult(TypedDict):
    customer_id: str
    name: str
    email: str
    currency: str
    address: str


class CustomerList(TypedDict):
    query: str
    count: int
    customers: list[CustomerResult]


class ProductOffer(TypedDict):
    product_id: str
    name: str
    unit_price: float
    stock: int


class OfferList(TypedDict):
    category: str
    count: int
    products: list[ProductOffer]


class ProductResult(TypedDict):
    product_id: str
    name: str
    unit_price: float
    currency: str
    stock: int
    lead_days: int
    weight_g: int


class OrderRow(TypedDict):
    order_id: str
    product_id: str
    quantity: int
    amount: float
    status: Status
    placed_at: str
    deliver_by: str


class OrderList(TypedDict):
    customer_id: str
    count: int
    orders: list[OrderRow]


class OrderResult(TypedDict):
    order_id: str
    customer_id: str
    product_id: str
    quantity: int
    amount: float
    currency: str
    status: Status
    placed_at: str
    deliver_by: str
    address: str
    version: int


class RefundResult(TypedDict):
    refund_id: str
    order_id: str
    amount: float
    currency: str
    reason: str
    created_at: str


class RefundList(TypedDict):
    order_id: str
    count: int
    refunds: list[RefundResult]


class NoteResult(TypedDict):
    note_id: str
    order_id: str
    text: str
    created_at: str


class NoteList(TypedDict):
    order_id: str
    count: int
    notes: list[NoteResult]


def search_customer(
    book: Connection, *, query: Annotated[str, "part of a name or of an e-mail address"]
) -> CustomerList:
    """Customers whose name or e-mail address contains the query."""
    match = "instr(lower(name || ' ' || email), lower(?))"
    found = _select_rows(book, CustomerResult, "customers", match, query)
    return {"query": query, "count": len(found), "customers": found}


def list_products(book: Connection, *, category: Annotated[str, "like lighting"]) -> OfferList:
    """What the shop sells in a category, with price per piece and pieces in stock."""
    found = _select_rows(book, ProductOffer, "products", "category = ?", category)
    return {"category": category, "count": len(found), "products": found}


def get_product(book: Connection, *, product_id: ProductId) -> ProductResult:
    """One product: price and its currency, stock, days until it can leave, weight."""
    return _select_row(book, ProductResult, "products", product_id)


def list_orders(
    book: Connection, *, customer_id: CustomerId, status: Status | None = None
) -> OrderList:
    """The orders of a customer, all or those of one status."""
    _select_row(book, CustomerResult, "customers", customer_id)
    match = "customer_id = ? and status = ifnull(?, status)"
    found = _select_rows(book, OrderRow, "orders", match, customer_id, status)
    return {"customer_id": customer_id, "count": len(found), "orders": found}


def get_order(book: Connection, *, order_id: OrderId) -> OrderResult:
    """One order with everything the shop knows of it."""
    return _select_row(book, OrderResult, "orders", order_id)


def get_refund(book: Connection, *, refund_id: RefundId) -> RefundResult:
    """One refund."""
    return _select_row(book, RefundResult, "refunds", refund_id)


def list_refunds(book: Connection, *, order_id: OrderId) -> RefundList:
    """All refunds of an order."""
    get_order(book, order_id=order_id)
    found = _select_rows(book, RefundResult, "refunds", "order_id = ?", order_id)
    return {"order_id": order_id, "count": len(found), "refunds": found}


def list_notes(book: Connection, *, order_id: OrderId) -> NoteList:
    """All notes on an order."""
    get_order(book, order_id=order_id)
    found = _select_rows(book, NoteResult, "notes", "order_id = ?", order_id)
    return {"order_id": order_id, "count": len(found), "notes": found}


def issue_refund(
    book: Connection, *, order_id: OrderId, amount: float, currency: Currency, reason: str
) -> RefundResult:
    """Pay back part of an order, in any currency; never more in all than the order cost."""
    with book:
        order = get_order(book, order_id=order_id)
        paid = list_refunds(book, order_id=order_id)["refunds"]
        total = sum(refund["amount"] / RATES[refund["currency"]] for refund in paid)
        if total + amount / RATES[currency] > order["amount"] / RATES[order["currency"]]:
            raise IntegrityError(f"refunds of {order_id} would exceed its amount")
        key = _make_next_id(book, "refunds")
        row = (key, order_id, amount, currency, reason, _advance_shop_clock(book))
        book.execute("insert into refunds values (?, ?, ?, ?, ?, ?)", row)
    return get_refund(book, refund_id=key)


def update_order(
    book: Connection,
    *,
    order_id: OrderId,
    version: Annotated[int, "the version this change is meant for"],
    status: Status | None = None,
    deliver_by: Moment | None = None,
    address: str | None = None,
) -> OrderResult:
    """Change an order that is still at the given version; what is not named stays."""
    with book:
        found = get_order(book, order_id=order_id)["version"]
        if found != version:
            raise IntegrityError(f"{order_id} is at version {found}, not {version}")
        book.execute(
            "update orders set status = ifnull(?, status), deliver_by = ifnull(?, deliver_by),"
            " address = ifnull(?, address), version = version + 1 where order_id = ?",
            (status, deliver_by, address, order_id),
        )
        _advance_shop_clock(book)
    return get_order(book, order_id=order_id)


def add_note(book: Connection, *, order_id: OrderId, text: str) -> NoteResult:
    """Put a note on an order."""
    with book:
        get_order(book, order_id=order_id)
        key = _make_next_id(book, "notes")
        row = (key, order_id, text, _advance_shop_clock(book))
        book.execute("insert into notes values (?, ?, ?, ?)", row)
    return _select_row(book, NoteResult, "notes", key)


def place_order(
    book: Connection,
    *,
    customer_id: CustomerId,
    product_id: ProductId,
    quantity: Annotated[int, "pieces, taken from stock"],
    amount: Annotated[float, "price of all pieces"],
    currency: Currency,
    deliver_by: Moment,
) -> OrderResult:
    """Order a product for a customer, to be delivered to the address in the customer's file."""
    with book:
        customer = _select_row(book, CustomerResult, "customers", customer_id)
        stock = get_product(book, product_id=product_id)["stock"]
        if quantity > stock:
            raise IntegrityError(f"{product_id} has {stock} pieces in stock, not {quantity}")
        taken = "update products set stock = stock - ? where product_id = ?"
        book.execute(taken, (quantity, product_id))
        key = _make_next_id(book, "orders")
        what = (
            product_id,
            quantity,
            amount,
            currency,
            "pending",
            _advance_shop_clock(book),
            deliver_by,
        )
        row = (key, customer_id, *what, customer["address"])
        book.execute("insert into orders values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 1)", row)
    return get_order(book, order_id=key)


_KEY_COLUMNS = {
    "customers": "customer_id",
    "products": "product_id",
    "orders": "order_id",
    "refunds": "refund_id",
    "notes": "note_id",
}


def _select_rows[R](
    book: Connection, kind: type[R], table: str, match: str, *values: str | None
) -> list[R]:
    columns = ", ".join(kind.__annotations__)
    query = f"select {columns} from {table} where {match} order by {_KEY_COLUMNS[table]}"
    return [cast("R", dict(row)) for row in book.execute(query, values)]


def _select_row[R](book: Connection, kind: type[R], table: str, key: str) -> R:
    found = _select_rows(book, kind, table, f"{_KEY_COLUMNS[table]} = ?", key)
    if not found:
        raise LookupError(f"no {_KEY_COLUMNS[table]} {key}")
    return found[0]


def _make_next_id(book: Connection, table: str) -> str:
    """The id after the highest one: the same writes in the same order get the same ids."""
    last: str = book.execute(f"select max({_KEY_COLUMNS[table]}) from {table}").fetchone()[0]
    prefix, number = last.rsplit("-", 1)
    return f"{prefix}-{int(number) + 1}"


def _advance_shop_clock(book: Connection) -> str:
    """The shop's fixed clock, one second on per write, so that a rerun writes the same rows."""
    book.execute("update shop set writes = writes + 1")
    now, writes = book.execute("select now, writes from shop").fetchone()
    return calculator.format_moment(calculator.parse_moment(now) + timedelta(seconds=writes))
