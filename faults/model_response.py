"""Model responses, as operators change them: edited output, provider errors and refusals.

The exchange is the one on the wire. Unchanged parts keep their bytes, and their chunks' times.
"""

from copy import replace
from random import Random

from faults.response_body import NoInjectionSite, replace_response_body, respond_with_status
from traces.bodies.aws_event_stream import (
    edit_shown_stream,
    is_aws_event_stream,
    show_as_sse,
)
from traces.bodies.content_encoding import decode_content
from traces.dialects import find_dialect
from traces.dialects.errors import (
    DialectErrors,
    TextSpans,
    find_dialect_errors,
    is_streaming_request,
)
from traces.dialects.types import DialectLens, ModelAnswer
from traces.model import BodyEdit, Exchange, Response, apply_body_edits, apply_edits_to_chunks

_REFUSED = "I'm sorry, but I can't help with that."
_EPOCH = 1_789_000_000
"""Unix time of fabricated responses, in seconds; operators have no clock."""


def is_model_exchange(exchange: Exchange) -> bool:
    """Return whether the exchange is a model request."""
    return find_dialect(exchange.request) is not None


def respond_with_model_error(
    exchange: Exchange, status: int, *headers: tuple[str, str], message: str | None = None
) -> Exchange:
    """Return the exchange with an error response, in the provider's format."""
    return respond_with_status(
        exchange,
        status,
        _require_error_format(_require_dialect(exchange)).make_model_error_body(status, message),
        *headers,
    )


def read_model_output(exchange: Exchange) -> str:
    """Return the arguments of the response's last tool call; its text if it has no calls."""
    body, spots = _find_output_spans(exchange)
    return spots.read_text(body)


def replace_model_output(exchange: Exchange, text: str) -> Exchange:
    """Replace that text in the response, in each event of a stream that carries it."""
    body, spots = _find_output_spans(exchange)
    return _edit_model_output(exchange, body, spots.replace_text(body, text))


def empty_model_output(exchange: Exchange) -> Exchange:
    """Return the exchange with neither text nor calls in the response, otherwise unchanged."""
    body = _require_model_body(exchange)
    try:
        edits = _require_error_format(_require_dialect(exchange)).empty_answer(body)
    except ValueError as error:
        raise NoInjectionSite(f"the answer cannot be read: {error}") from None
    if not edits:
        raise NoInjectionSite("the answer is empty already")
    return _edit_model_output(exchange, body, edits)


def respond_with_refusal(exchange: Exchange, rng: Random) -> Exchange:
    """Return the exchange with a refusal, as one body or as a stream, as requested."""
    dialect = _require_dialect(exchange)
    errors, request_body = (
        _require_error_format(dialect),
        decode_content(exchange.request.headers, exchange.request.body) or b"",
    )
    refusal = ModelAnswer(
        message=_REFUSED, refused=True, model=dialect.read_model_name(request_body)
    )
    id, created = f"{errors.ID_PREFIX}{rng.getrandbits(96):024x}", _EPOCH + rng.randrange(1 << 20)
    stream = exchange.transport == "websocket" or is_streaming_request(exchange.request)
    headers, chunks = dialect.write_model_answer(refusal, stream=stream, id=id, created=created)
    at = exchange.started
    response = Response(
        status=200,
        headers=headers,
        chunks=tuple(replace(chunk, at=at) for chunk in chunks),
        at=at,
        ended=at,
    )
    return replace(exchange, response=response, error=None)


def _require_dialect(exchange: Exchange) -> DialectLens:
    dialect = find_dialect(exchange.request)
    if dialect is None:
        raise NoInjectionSite("this is no model's answer")
    return dialect


def _require_error_format(dialect: DialectLens) -> DialectErrors:
    errors = find_dialect_errors(dialect)
    if errors is None:
        raise NoInjectionSite(f"nobody has said how an answer in {dialect.NAME} goes wrong")
    return errors


def _require_model_body(exchange: Exchange) -> bytes:
    response = exchange.response
    if response is None or response.status >= 400:
        raise NoInjectionSite("the model gave no answer that could be changed")
    body = decode_content(response.headers, response.body)
    if body is None:
        raise NoInjectionSite("the answer's content encoding cannot be undone")
    if not is_aws_event_stream(response.headers):
        return body
    if body != response.body:
        raise NoInjectionSite("the answer is a compressed stream of messages with checksums")
    return show_as_sse(body)


def _find_output_spans(exchange: Exchange) -> tuple[bytes, TextSpans]:
    body = _require_model_body(exchange)
    try:
        spots = _require_error_format(_require_dialect(exchange)).find_text_spans(body)
    except ValueError as error:
        raise NoInjectionSite(f"the answer cannot be read: {error}") from None
    if spots is None:
        raise NoInjectionSite("the answer has neither text nor calls")
    return body, spots


def _edit_model_output(exchange: Exchange, body: bytes, edits: tuple[BodyEdit, ...]) -> Exchange:
    """Apply edits of the decoded body; each event of a stream keeps its time."""
    response = exchange.response
    assert response is not None
    is_counted = is_aws_event_stream(response.headers)
    if is_counted:
        body, edits = response.body, edit_shown_stream(response.body, edits)
    changed = replace_response_body(
        exchange, apply_body_edits(body, edits), keeps_counts=is_counted
    )
    if body != response.body or changed.response is None:
        return changed
    chunks = (chunk for chunk in apply_edits_to_chunks(response.chunks, edits) if chunk.data)
    return replace(changed, response=replace(changed.response, chunks=tuple(chunks)))
