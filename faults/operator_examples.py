"""The example on which each operator is shown: a tool's result with an order, and earlier calls."""

import json
from collections.abc import Mapping
from typing import NamedTuple

from faults.operator import Operator
from faults.response_body import NoInjectionSite, decode_response_text, is_bare_result
from faults.seeded_random import make_rng
from faults.targeting.observations import CallObservation, CleanObservations
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


def make_example_exchange(body: str, headers: Headers = _JSON) -> Exchange:
    """Return a tool call over HTTP, answered 200 with this body."""
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


EXAMPLE_EXCHANGE = make_example_exchange(ORDER)
EXAMPLE_OBSERVATIONS = CleanObservations(
    observations=(
        CallObservation(
            call_id="c1", tool="get_order", arguments=ARGUMENTS, ordinal=0, result=EARLIER
        ),
        CallObservation(
            call_id="c2",
            tool="get_order",
            arguments='{"order_id":"ord-7388"}',
            ordinal=0,
            result=OTHER,
        ),
        CallObservation(
            call_id="c3",
            tool="get_order",
            arguments=ARGUMENTS,
            ordinal=1,
            result=ORDER,
            response=EXAMPLE_EXCHANGE.response,
        ),
        CallObservation(
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
    own_index=2,
    writes=True,
    world=True,
)
"""The observations; the call with the fault is the third."""


class OperatorExample(NamedTuple):
    """The example before and after an operator, as text."""

    before: str
    after: str


def run_operator_example(
    operator: Operator, params: Mapping[str, Scalar] | None = None
) -> OperatorExample:
    """Apply an operator to the example.

    Raises NoInjectionSite if these parameters find nothing to change in it.
    """
    exchange = EXAMPLE_EXCHANGE
    if "after_events" in (params or {}):
        exchange = make_example_exchange(EVENTS, (("content-type", "text/event-stream"),))
    if "http" not in operator.places:
        request = Request(method="CALL", url="tool:get_order", body=ARGUMENTS.encode())
        exchange = Exchange(seq=1, request=request, response=exchange.response)
    changed = operator(exchange, make_rng("example"), params or {}, EXAMPLE_OBSERVATIONS)
    return OperatorExample(render_example_answer(exchange), render_example_answer(changed))


def render_example_answer(exchange: Exchange) -> str:
    """Render a response as text: its time and status, its body, and its error."""
    response, lines = exchange.response, list[str]()
    if response is not None:
        if not is_bare_result(exchange):
            delay = f" after {response.at:g} s"
            lines.append(f"{response.status}{delay}")
        lines.append(_render_example_body(exchange))
    if exchange.error is not None:
        lines.append(f"({exchange.error})")
    return "\n".join(lines)


def _render_example_body(exchange: Exchange) -> str:
    try:
        return decode_response_text(exchange)
    except NoInjectionSite:
        return repr(exchange.response.body) if exchange.response else ""
