"""Tools with short arguments and short results, for small models: one number or one write each."""

from sqlite3 import Connection, IntegrityError
from typing import Annotated, TypedDict

from scenarios.practice.tools import calculator, orders
from scenarios.practice.tools.calculator import Currency

ShortOrderId = Annotated[str, "like ord-7018", "^ord-[0-9]{4}$"]
ShortProductId = Annotated[str, "like sku-4411", "^sku-[0-9]{4}$"]
ShortRefundId = Annotated[str, "like ref-5012", "^ref-[0-9]{4}$"]


class StockResult(TypedDict):
    stock: int


class PriceResult(TypedDict):
    price: float


class WeightResult(TypedDict):
    weight: int


class AmountResult(TypedDict):
    amount: float


class ItemResult(TypedDict):
    product_id: str


class ConvertedResult(TypedDict):
    converted: float


class WrittenResult(TypedDict):
    written: str


def get_stock(book: Connection, *, product_id: ShortProductId) -> StockResult:
    """Pieces of a product in stock."""
    return {"stock": orders.get_product(book, product_id=product_id)["stock"]}


def get_price(book: Connection, *, product_id: ShortProductId) -> PriceResult:
    """Price of one piece of a product."""
    return {"price": orders.get_product(book, product_id=product_id)["unit_price"]}


def get_weight(book: Connection, *, product_id: ShortProductId) -> WeightResult:
    """Weight of one piece of a product in grams."""
    return {"weight": orders.get_product(book, product_id=product_id)["weight_g"]}


def get_amount(book: Connection, *, order_id: ShortOrderId) -> AmountResult:
    """What an order costs."""
    return {"amount": orders.get_order(book, order_id=order_id)["amount"]}


def get_refunded(book: Connection, *, refund_id: ShortRefundId) -> AmountResult:
    """What a refund paid back."""
    return {"amount": orders.get_refund(book, refund_id=refund_id)["amount"]}


def get_item(book: Connection, *, order_id: ShortOrderId) -> ItemResult:
    """The product of an order."""
    return {"product_id": orders.get_order(book, order_id=order_id)["product_id"]}


def convert(
    book: Connection, *, amount: float, source: Currency, target: Currency
) -> ConvertedResult:
    """Convert an amount of money to another currency."""
    found = calculator.convert_currency(book, amount=amount, source=source, target=target)
    return {"converted": found["converted"]}


def write_note(book: Connection, *, order_id: ShortOrderId, text: str) -> WrittenResult:
    """Write a note on an order."""
    return {"written": orders.add_note(book, order_id=order_id, text=text)["note_id"]}


def set_price(book: Connection, *, product_id: ShortProductId, price: float) -> WrittenResult:
    """Set the price of a product."""
    if price <= 0:
        raise IntegrityError(f"{price} is no price")
    with book:
        orders.get_product(book, product_id=product_id)
        change = "update products set unit_price = ? where product_id = ?"
        book.execute(change, (price, product_id))
    return {"written": product_id}
