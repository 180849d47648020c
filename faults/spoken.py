"""A model's own answer, as operators bend it: what it says, and what its provider says instead.

The exchange is the one on the wire. What is not bent keeps its bytes, and its chunks their times.
"""

from dataclasses import replace
from random import Random

from faults.body import NoSite, answer, with_body
from traces.dialects import lens
from traces.dialects.failing import Failing, Spots, failing, streams
from traces.encoding import plain
from traces.model import Edit, Exchange, Response, edited, edited_chunks
from traces.step import Answer, Lens

_REFUSED = "I'm sorry, but I can't help with that."
_EPOCH = 1_789_000_000
"""Seconds since 1970 of the day of a made-up answer; an operator has no clock."""


def is_spoken(exchange: Exchange) -> bool:
    """True for an exchange in which a model is asked."""
    return lens(exchange.request) is not None


def failure(
    exchange: Exchange, status: int, *headers: tuple[str, str], message: str | None = None
) -> Exchange:
    """The exchange answered with an error, in the form of the provider."""
    return answer(exchange, status, _amiss(_dialect(exchange)).failure(status, message), *headers)


def words(exchange: Exchange) -> str:
    """What the answer asks of a tool, the last of several; of an answer without calls its text."""
    body, spots = _spots(exchange)
    return spots.text(body)


def with_words(exchange: Exchange, text: str) -> Exchange:
    """The answer with this text in that place, wherever a stream says it."""
    body, spots = _spots(exchange)
    return _edited(exchange, body, spots.put(body, text))


def silenced(exchange: Exchange) -> Exchange:
    """The answer with neither text nor calls, and otherwise as it was."""
    body = _body(exchange)
    try:
        edits = _amiss(_dialect(exchange)).emptied(body)
    except ValueError as error:
        raise NoSite(f"the answer cannot be read: {error}") from None
    if not edits:
        raise NoSite("the answer is empty already")
    return _edited(exchange, body, edits)


def refused(exchange: Exchange, rng: Random) -> Exchange:
    """The exchange answered with a refusal, whole or as a stream, as it was asked for."""
    dialect = _dialect(exchange)
    amiss, asked = _amiss(dialect), plain(exchange.request.headers, exchange.request.body) or b""
    said = Answer(message=_REFUSED, refused=True, model=dialect.model(asked))
    id, created = f"{amiss.ID}{rng.getrandbits(96):024x}", _EPOCH + rng.randrange(1 << 20)
    stream = exchange.transport == "websocket" or streams(exchange.request)
    headers, chunks = dialect.write(said, stream=stream, id=id, created=created)
    at = exchange.started
    whole = Response(
        status=200,
        headers=headers,
        chunks=tuple(replace(chunk, at=at) for chunk in chunks),
        at=at,
        ended=at,
    )
    return replace(exchange, response=whole, error=None)


def _dialect(exchange: Exchange) -> Lens:
    dialect = lens(exchange.request)
    if dialect is None:
        raise NoSite("this is no model's answer")
    return dialect


def _amiss(dialect: Lens) -> Failing:
    amiss = failing(dialect)
    if amiss is None:
        raise NoSite(f"nobody has said how an answer in {dialect.NAME} goes wrong")
    return amiss


def _body(exchange: Exchange) -> bytes:
    said = exchange.response
    if said is None or said.status >= 400:
        raise NoSite("the model gave no answer that could be bent")
    body = plain(said.headers, said.body)
    if body is None:
        raise NoSite("the answer's content encoding cannot be undone")
    return body


def _spots(exchange: Exchange) -> tuple[bytes, Spots]:
    body = _body(exchange)
    try:
        spots = _amiss(_dialect(exchange)).spots(body)
    except ValueError as error:
        raise NoSite(f"the answer cannot be read: {error}") from None
    if spots is None:
        raise NoSite("the answer has neither text nor calls")
    return body, spots


def _edited(exchange: Exchange, body: bytes, edits: tuple[Edit, ...]) -> Exchange:
    """With edits of the plain body; each event of a stream keeps its time."""
    said = exchange.response
    assert said is not None
    bent = with_body(exchange, edited(body, edits))
    if body != said.body or bent.response is None:
        return bent
    chunks = (chunk for chunk in edited_chunks(said.chunks, edits) if chunk.data)
    return replace(bent, response=replace(bent.response, chunks=tuple(chunks)))
