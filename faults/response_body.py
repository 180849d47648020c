"""Read and replace the text of a response, and keep its headers consistent.

The only module that handles length, content encoding, character set, checksums, and the responses
that cannot be changed because a signature would reveal it.
"""

import codecs
import re
from collections.abc import Callable
from copy import replace

from faults.body_checksums import make_checksum_updater
from faults.errors import NoInjectionSite
from traces.bodies import streaming_encoding
from traces.bodies.content_encoding import decode_content
from traces.model import (
    BodyEdit,
    Chunk,
    Exchange,
    Headers,
    Request,
    Response,
    apply_edits_to_chunks,
    find_header,
)

__all__ = [
    "NoInjectionSite",
    "respond_with_status",
    "respond_with_unknown_session",
    "is_bare_result",
    "check_rewritable_request",
    "decode_response_text",
    "replace_response_body",
    "replace_response_text",
]

_SIGNATURE = re.compile(r"(?i)(?:.*-)?signature(?:-.+)?\Z|x-hub-signature.*|x-ms-content-crc64\Z")
_SIGNED_BODY = re.compile(rb"eyJ[\w-]+\.[\w-]*\.[\w-]+\s*\Z")
_COUNTED = ("application/grpc", "application/vnd.amazon.eventstream")
"""Content types whose messages carry their own lengths or checksums."""
_UNKNOWN_SESSION = (
    b'{"jsonrpc":"2.0","id":null,"error":{"code":-32001,"message":"Session not found"}}'
)
_SUMS = ("content-md5", "digest", "content-digest", "repr-digest", "x-amz-content-sha256")


def is_bare_result(exchange: Exchange) -> bool:
    """Return whether the exchange represents a tool's result alone, not HTTP around it."""
    return exchange.request.method == "CALL"


def decode_response_text(exchange: Exchange) -> str:
    """Return the response body as text, with content encoding removed.

    Raises NoInjectionSite if there is no response or it is not text.
    """
    answer = _require_response(exchange)
    data = decode_content(answer.headers, answer.body)
    if data is None:
        raise NoInjectionSite("the answer's content encoding cannot be undone")
    try:
        return data.decode(_find_charset(answer.headers))
    except UnicodeDecodeError as error:
        raise NoInjectionSite("the answer is not text") from error


def replace_response_text(exchange: Exchange, text: str) -> Exchange:
    """Return the exchange with this response text, in the original character set and encoding.

    Raises NoInjectionSite if the text cannot be encoded or the response cannot be kept valid.
    """
    answer = _require_response(exchange)
    try:
        data = text.encode(_find_charset(answer.headers))
    except UnicodeEncodeError as error:
        raise NoInjectionSite(
            "the changed text cannot be encoded in the answer's character set"
        ) from error
    return replace_response_body(exchange, data)


def replace_response_body(
    exchange: Exchange, data: bytes, *, keeps_counts: bool = False
) -> Exchange:
    """Return the exchange with these bytes as response body, before content encoding.

    An unencoded body keeps its chunks and their times; an encoded body becomes one chunk at the
    time of the last. Raises NoInjectionSite if a signature or an embedded length would reveal the
    change. `keeps_counts`: the lengths and checksums within the new body are right.
    """
    answer = _require_response(exchange)
    if data == decode_content(answer.headers, answer.body):
        return exchange
    _check_editable_response(answer, keeps_counts=keeps_counts)
    applied = streaming_encoding.parse_content_encodings(answer.headers)
    if applied:
        encoder = streaming_encoding.make_stream_encoder(applied)
        body = encoder.feed(data) + encoder.finish()
        at = answer.chunks[-1].at if answer.chunks else answer.at
        chunks: tuple[Chunk, ...] = (Chunk(at=at, data=body),)
    else:
        body = data
        chunks = apply_edits_to_chunks(answer.chunks, _make_minimal_edits(answer.body, body))
        chunks = chunks or (Chunk(at=answer.at, data=body),)
    if answer.status == 206 and len(body) != len(answer.body):
        raise NoInjectionSite("the answer is a range of a length that is said elsewhere")
    seal = make_checksum_updater(answer.headers, answer.body, body)
    changed = replace(
        answer,
        headers=_set_length_headers(seal(answer.headers), len(body)),
        chunks=chunks,
        trailers=seal(answer.trailers),
    )
    return replace(exchange, response=changed)


def respond_with_status(
    exchange: Exchange,
    status: int,
    body: bytes,
    *headers: tuple[str, str],
    kind: str = "application/json",
) -> Exchange:
    """Return the exchange with this status and body as an immediate response."""
    at = exchange.started
    type_header = (("content-type", kind),) if body else ()
    fields = (*type_header, ("content-length", str(len(body))), *headers)
    chunks = (Chunk(at=at, data=body),) if body else ()
    response = Response(status=status, headers=fields, chunks=chunks, at=at, ended=at)
    return replace(exchange, response=response, error=None)


def respond_with_unknown_session(exchange: Exchange) -> Exchange:
    """Return the exchange as a server answers that does not know its MCP session."""
    return respond_with_status(exchange, 404, _UNKNOWN_SESSION)


def check_rewritable_request(request: Request) -> None:
    """Raise NoInjectionSite if a request body is compressed, signed or has a checksum."""
    authorization = find_header(request.headers, "authorization") or ""
    if authorization.startswith("AWS4-") or "X-Amz-Signature=" in request.url:
        raise NoInjectionSite("the request is signed (AWS SigV4)")
    if find_header(request.headers, "content-encoding") not in (None, "identity"):
        raise NoInjectionSite("the model request is compressed")
    for name, _ in request.headers:
        if _SIGNATURE.match(name) or name.lower() in _SUMS:
            raise NoInjectionSite(f"the request's {name.lower()} could not be kept valid")


def _require_response(exchange: Exchange) -> Response:
    if exchange.response is None:
        raise NoInjectionSite("there is no answer to bend")
    return exchange.response


def _check_editable_response(answer: Response, *, keeps_counts: bool) -> None:
    for name, _ in (*answer.headers, *answer.trailers):
        if _SIGNATURE.match(name):
            raise NoInjectionSite(f"the answer is signed ({name.lower()})")
    kind = (find_header(answer.headers, "content-type") or "").partition(";")[0].strip().lower()
    if kind.startswith(_COUNTED) and not keeps_counts:
        raise NoInjectionSite(f"{kind} counts its own bytes")
    if kind in ("application/jwt", "application/jose") or _SIGNED_BODY.match(answer.body):
        raise NoInjectionSite("the answer is a signed token")


def _find_charset(headers: Headers) -> str:
    kind = find_header(headers, "content-type") or ""
    match = re.search(r'(?i)charset="?([\w\-]+)', kind)
    try:
        return codecs.lookup(match[1]).name if match else "utf-8"
    except LookupError:
        raise NoInjectionSite(f"no character set is called {match[1] if match else ''}") from None


def _make_minimal_edits(was: bytes, now: bytes) -> tuple[BodyEdit, ...]:
    """Return the smallest single edit that turns `was` into `now`."""
    most = min(len(was), len(now))
    head = _find_common_length(most, lambda size: was[:size] == now[:size])
    tail = _find_common_length(
        most - head, lambda size: was[len(was) - size :] == now[len(now) - size :]
    )
    return (BodyEdit(start=head, stop=len(was) - tail, data=now[head : len(now) - tail]),)


def _find_common_length(most: int, same: Callable[[int], bool]) -> int:
    """Return the greatest size up to `most` for which `same` holds."""
    minimum = 0
    while minimum < most:
        middle = (minimum + most + 1) // 2
        minimum, most = (middle, most) if same(middle) else (minimum, middle - 1)
    return minimum


def _set_length_headers(headers: Headers, length: int) -> Headers:
    return tuple((k, str(length) if k.lower() == "content-length" else v) for k, v in headers)


def keep_first_bytes(chunks: tuple[Chunk, ...], keep: int) -> tuple[Chunk, ...]:
    """Return the chunks with the first `keep` bytes of a body."""
    selected = []
    for chunk in chunks:
        if keep <= 0:
            break
        selected.append(replace(chunk, data=chunk.data[:keep]))
        keep -= len(chunk.data)
    return tuple(selected)
