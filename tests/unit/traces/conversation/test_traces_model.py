"""Values, where they do more than hold what they were given."""

from copy import replace

from msgspec.structs import fields

from traces.model import BodyEdit, Exchange, Request, Response


def test_what_an_agent_got_keeps_all_else_of_the_exchange() -> None:
    exchange = Exchange(
        seq=7,
        request=Request(method="GET", url="http://a/"),
        response=Response(status=200),
        error="reset",
        started=1.0,
        connection=2,
        stream=3,
        transport="stdio",
        answered_by="fault",
        edits=(BodyEdit(start=0, stop=0, data=b""),),
        redacted=True,
        unparsed=b"SSH-2.0",
        cascade=True,
        pinned=("a",),
        renamed=("a", "b"),
        substituted=("$.at: 1",),
    )
    untold = [
        field.name for field in fields(Exchange) if getattr(exchange, field.name) == field.default
    ]
    assert untold == []
    response = Response(status=201)
    assert exchange.with_response(response, None) == replace(
        exchange, response=response, error=None
    )
    assert exchange.with_response(None, "eof", "live") == replace(
        exchange, response=None, error="eof", answered_by="live"
    )
