"""The text of an answer, read and replaced, with its headers kept true."""

from dataclasses import replace

from traces.encoding import plain
from traces.model import Chunk, Exchange, Headers, Response


class NoSite(Exception):
    """The fault has nothing to bend here; a fact about the site, not an error."""


def text(exchange: Exchange) -> str:
    """The answer as text, its content encoding undone. NoSite where there is none."""
    answer = exchange.response
    if answer is None:
        raise NoSite("there is no answer to bend")
    data = plain(answer.headers, answer.body)
    if data is None:
        raise NoSite("the answer's content encoding cannot be undone")
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise NoSite("the answer is not text") from error


def with_text(exchange: Exchange, text: str) -> Exchange:
    """The exchange with this text as answer, in one chunk at the time of the last.

    The text goes out with no content encoding, which any client accepts, and the length and
    encoding headers say so.
    """
    answer = exchange.response
    if answer is None:
        raise NoSite("there is no answer to bend")
    data = text.encode()
    at = answer.chunks[-1].at if answer.chunks else answer.at
    bent = replace(
        answer,
        headers=_headers(answer.headers, len(data)),
        chunks=(Chunk(at=at, data=data),),
    )
    return replace(exchange, response=bent)


def _headers(headers: Headers, length: int) -> Headers:
    kept = [(k, v) for k, v in headers if k.lower() not in ("content-encoding", "content-md5")]
    return tuple((k, str(length) if k.lower() == "content-length" else v) for k, v in kept)


def answer(exchange: Exchange, status: int, body: bytes, *headers: tuple[str, str]) -> Exchange:
    """The exchange answered at once with this status and JSON body."""
    at = exchange.started
    fields = (("content-type", "application/json"), ("content-length", str(len(body))), *headers)
    whole = Response(
        status=status, headers=fields, chunks=(Chunk(at=at, data=body),), at=at, ended=at
    )
    return replace(exchange, response=whole, error=None)
