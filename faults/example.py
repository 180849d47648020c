"""An order, as a tool told of it, and what was seen before: on it each operator is shown."""

import json
from collections.abc import Mapping
from typing import NamedTuple

from faults.address import rng
from faults.body import NoSite, is_call, text
from faults.operator import Operator
from faults.seen import Observation, Seen
from traces.model import Chunk, Exchange, Headers, Request, Response, Scalar

_LINES = [
    {"sku": "p-101", "name": "Lamp", "quantity": 2, "unit_price": 312.6, "in_stock": True},
    {"sku": "p-207", "name": "Desk", "quantity": 1, "unit_price": 625.2, "in_stock": False},
    {"sku": "p-330", "name": "Chair", "quantity": 4, "unit_price": 87.25, "in_stock": True},
]
_ORDER = {
    "order_id": "ord-7314",
    "customer_id": "cus-0093",
    "status": "shipped",
    "currency": "EUR",
    "paid": True,
    "placed_on": "2026-11-03",
    "deliver_by": "2026-12-08",
    "subtotal": 1599.4,
    "total": 1686.65,
    "count": 3,
    "lines": _LINES,
}
ORDER = json.dumps(_ORDER)
EARLIER = json.dumps(_ORDER | {"status": "open", "paid": False, "total": 1711.9})
OTHER = json.dumps(
    _ORDER
    | {"order_id": "ord-7388", "customer_id": "cus-0041", "status": "cancelled", "total": 402.15}
)
EVENTS = "".join(f"event: row\ndata: {json.dumps(line)}\n\n" for line in _LINES)
ARGUMENTS = '{"order_id":"ord-7314"}'
_JSON: Headers = (("content-type", "application/json"),)


def answered(body: str, headers: Headers = _JSON) -> Exchange:
    """A call of a tool over HTTP, answered 200 with this."""
    data = body.encode()
    answer = Response(
        status=200,
        reason="OK",
        headers=(*headers, ("content-length", str(len(data)))),
        chunks=(Chunk(at=0.2, data=data),),
        at=0.2,
        ended=0.2,
    )
    request = Request(method="POST", url="http://shop/get_order", body=ARGUMENTS.encode())
    return Exchange(seq=1, request=request, response=answer)


CALL = answered(ORDER)
SEEN = Seen(
    observations=(
        Observation(call_id="c1", tool="get_order", arguments=ARGUMENTS, ordinal=0, result=EARLIER),
        Observation(
            call_id="c2",
            tool="get_order",
            arguments='{"order_id":"ord-7388"}',
            ordinal=0,
            result=OTHER,
        ),
        Observation(
            call_id="c3",
            tool="get_order",
            arguments=ARGUMENTS,
            ordinal=1,
            result=ORDER,
            response=CALL.response,
        ),
        Observation(
            call_id="c4",
            tool="issue_refund",
            arguments='{"amount":1686.65,"order_id":"ord-7314","sku":"p-330"}',
            ordinal=0,
            result='{"refund_id": "ref-0001", "amount": 1686.65}',
        ),
    ),
    final="I refunded 1686.65 EUR.",
    tool="get_order",
    arguments=ARGUMENTS,
    at=2,
    writes=True,
    world=True,
)
"""The struck call is the third."""


class Shown(NamedTuple):
    """An operator's effect on the example, in words."""

    before: str
    after: str


def show(operator: Operator, params: Mapping[str, Scalar] | None = None) -> Shown:
    """What an operator makes of the example; NoSite where these parameters have none."""
    exchange = CALL
    if "after_events" in (params or {}):
        exchange = answered(EVENTS, (("content-type", "text/event-stream"),))
    if "http" not in operator.places:
        request = Request(method="CALL", url="tool:get_order", body=ARGUMENTS.encode())
        exchange = Exchange(seq=1, request=request, response=exchange.response)
    bent = operator(exchange, rng("example"), params or {}, SEEN)
    return Shown(said(exchange), said(bent))


def said(exchange: Exchange) -> str:
    """An answer in words: when, its status, its body, and how it broke off."""
    answer, lines = exchange.response, list[str]()
    if answer is not None:
        if not is_call(exchange):
            late = f" after {answer.at:g} s"
            lines.append(f"{answer.status}{late}")
        lines.append(_body(exchange))
    if exchange.error is not None:
        lines.append(f"({exchange.error})")
    return "\n".join(lines)


def _body(exchange: Exchange) -> str:
    try:
        return text(exchange)
    except NoSite:
        return repr(exchange.response.body) if exchange.response else ""
