"""The text of an answer, read and replaced, with all that its headers say of it kept true.

The one place that knows: length, content encoding, character set, checksums, and which answers
cannot be bent because somebody would find out by a signature.
"""

import codecs
import re
from collections.abc import Callable
from dataclasses import replace

from faults.checksums import resealed
from faults.nosite import NoSite
from traces import recode
from traces.encoding import plain
from traces.model import (
    Chunk,
    Edit,
    Exchange,
    Headers,
    Request,
    Response,
    edited_chunks,
    header,
)

__all__ = ["NoSite", "answer", "is_call", "rewritable", "text", "with_body", "with_text"]

_SIGNATURE = re.compile(r"(?i)(?:.*-)?signature(?:-.+)?\Z|x-hub-signature.*|x-ms-content-crc64\Z")
_SIGNED_BODY = re.compile(rb"eyJ[\w-]+\.[\w-]*\.[\w-]+\s*\Z")
_COUNTED = ("application/grpc", "application/vnd.amazon.eventstream")
"""Types whose messages carry their own lengths or checksums."""
_SUMS = ("content-md5", "digest", "content-digest", "repr-digest", "x-amz-content-sha256")


def is_call(exchange: Exchange) -> bool:
    """True where the exchange stands for a tool's result itself, not for HTTP around it."""
    return exchange.request.method == "CALL"


def text(exchange: Exchange) -> str:
    """The answer as text, its content encoding undone. NoSite where there is none."""
    answer = _answer(exchange)
    data = plain(answer.headers, answer.body)
    if data is None:
        raise NoSite("the answer's content encoding cannot be undone")
    try:
        return data.decode(_charset(answer.headers))
    except UnicodeDecodeError as error:
        raise NoSite("the answer is not text") from error


def with_text(exchange: Exchange, text: str) -> Exchange:
    """The exchange with this text as answer, in the character set and encoding it came in.

    NoSite where the text cannot be written so, or the answer cannot be kept valid.
    """
    answer = _answer(exchange)
    try:
        data = text.encode(_charset(answer.headers))
    except UnicodeEncodeError as error:
        raise NoSite("the bent text cannot be said in the answer's character set") from error
    return with_body(exchange, data)


def with_body(exchange: Exchange, data: bytes) -> Exchange:
    """The exchange with these bytes as answer, before content encoding.

    What is not encoded keeps its chunks and their times; what is encoded comes in one chunk at
    the time of the last. NoSite where a signature or a length inside would tell.
    """
    answer = _answer(exchange)
    if data == plain(answer.headers, answer.body):
        return exchange
    _bendable(answer)
    applied = recode.names(answer.headers)
    if applied:
        encoder = recode.encoding(applied)
        body = encoder.feed(data) + encoder.finish()
        at = answer.chunks[-1].at if answer.chunks else answer.at
        chunks: tuple[Chunk, ...] = (Chunk(at=at, data=body),)
    else:
        body = data
        chunks = edited_chunks(answer.chunks, _edits(answer.body, body))
        chunks = chunks or (Chunk(at=answer.at, data=body),)
    if answer.status == 206 and len(body) != len(answer.body):
        raise NoSite("the answer is a range of a length that is said elsewhere")
    seal = resealed(answer.headers, answer.body, body)
    bent = replace(
        answer,
        headers=_lengths(seal(answer.headers), len(body)),
        chunks=chunks,
        trailers=seal(answer.trailers),
    )
    return replace(exchange, response=bent)


def answer(
    exchange: Exchange,
    status: int,
    body: bytes,
    *headers: tuple[str, str],
    kind: str = "application/json",
) -> Exchange:
    """The exchange answered at once with this status and body."""
    at = exchange.started
    typed = (("content-type", kind),) if body else ()
    fields = (*typed, ("content-length", str(len(body))), *headers)
    chunks = (Chunk(at=at, data=body),) if body else ()
    whole = Response(status=status, headers=fields, chunks=chunks, at=at, ended=at)
    return replace(exchange, response=whole, error=None)


def rewritable(request: Request) -> None:
    """NoSite for a request whose body must stay as it is: compressed, signed or with a checksum."""
    said = header(request.headers, "authorization") or ""
    if said.startswith("AWS4-") or "X-Amz-Signature=" in request.url:
        raise NoSite("the request is signed (AWS SigV4)")
    if header(request.headers, "content-encoding") not in (None, "identity"):
        raise NoSite("the model request is compressed")
    for name, _ in request.headers:
        if _SIGNATURE.match(name) or name.lower() in _SUMS:
            raise NoSite(f"the request's {name.lower()} could not be kept valid")


def _answer(exchange: Exchange) -> Response:
    if exchange.response is None:
        raise NoSite("there is no answer to bend")
    return exchange.response


def _bendable(answer: Response) -> None:
    for name, _ in (*answer.headers, *answer.trailers):
        if _SIGNATURE.match(name):
            raise NoSite(f"the answer is signed ({name.lower()})")
    kind = (header(answer.headers, "content-type") or "").partition(";")[0].strip().lower()
    if kind.startswith(_COUNTED):
        raise NoSite(f"{kind} counts its own bytes")
    if kind in ("application/jwt", "application/jose") or _SIGNED_BODY.match(answer.body):
        raise NoSite("the answer is a signed token")


def _charset(headers: Headers) -> str:
    kind = header(headers, "content-type") or ""
    found = re.search(r'(?i)charset="?([\w\-]+)', kind)
    try:
        return codecs.lookup(found[1]).name if found else "utf-8"
    except LookupError:
        raise NoSite(f"no character set is called {found[1] if found else ''}") from None


def _edits(was: bytes, now: bytes) -> tuple[Edit, ...]:
    """One edit that makes `now` of `was`, as small as it can be."""
    most = min(len(was), len(now))
    head = _common(most, lambda size: was[:size] == now[:size])
    tail = _common(most - head, lambda size: was[len(was) - size :] == now[len(now) - size :])
    return (Edit(start=head, stop=len(was) - tail, data=now[head : len(now) - tail]),)


def _common(most: int, same: Callable[[int], bool]) -> int:
    """The greatest size up to `most` that is still the same."""
    least = 0
    while least < most:
        middle = (least + most + 1) // 2
        least, most = (middle, most) if same(middle) else (least, middle - 1)
    return least


def _lengths(headers: Headers, length: int) -> Headers:
    return tuple((k, str(length) if k.lower() == "content-length" else v) for k, v in headers)
