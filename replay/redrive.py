"""Send recorded requests again to a real service, and record the answers.

Requests are sent one at a time, in recorded order, at no more than a given rate. If a service
answers 429 or 503, the sender waits for its Retry-After, within a limit. The answers are ordinary
exchanges, with the times of their chunks, so they make a tape.
"""

import time
from collections.abc import Callable, Iterator, Mapping
from email.utils import parsedate_to_datetime
from urllib.parse import urlsplit

import httpx
from msgspec import Struct

from traces.model import Chunk, Exchange, Headers, Request, Response, find_header
from traces.redaction.placeholder import PLACEHOLDER

CONNECTION_HEADERS = frozenset(
    ("host", "content-length", "transfer-encoding", "connection", "keep-alive", "upgrade",
     "proxy-connection", "proxy-authorization", "te", "trailer")
)  # fmt: skip
"""Specific to one connection, or set by the client itself: never sent as recorded."""
BUSY_STATUSES = (429, 503)
MAX_ATTEMPTS = 5


def is_redacted_request(request: Request) -> bool:
    """Return whether the URL or body has a redacted secret, so that it cannot be sent again."""
    text = request.url.encode("utf-8", "surrogatepass") + b"\n" + request.body
    return PLACEHOLDER.search(text) is not None


def retarget_request(request: Request, base: str, given: Headers = ()) -> Request:
    """Return the request for the service at `base`: same path below it, same query, these headers.

    Redacted headers are omitted; those in `given` replace headers of the same name.
    """
    parts, root = urlsplit(request.url), base.rstrip("/")
    query = f"?{parts.query}" if parts.query else ""
    replaced = {name.lower() for name, _ in given}
    headers = tuple(
        (name, value)
        for name, value in request.headers
        if name.lower() not in CONNECTION_HEADERS | replaced
        and not PLACEHOLDER.search(value.encode("latin-1"))
    )
    return Request(
        method=request.method,
        url=f"{root}{parts.path}{query}",
        headers=(*headers, *given),
        body=request.body,
    )


class RequestSender(Struct):
    """Sends requests one after the other.

    `rate` is the maximum of requests per second, `patience` the seconds that one request may wait
    for a busy service; `clock` returns seconds since the tape began.
    """

    client: httpx.Client
    clock: Callable[[], float]
    rate: float
    patience: float = 60.0
    _free: float = 0.0

    def send_with_retries(self, request: Request, seqs: Iterator[int]) -> Iterator[Exchange]:
        """Yield each attempt at a request; the last is the answer, even if it is still busy."""
        patience = self.patience
        for attempts_left in range(MAX_ATTEMPTS - 1, -1, -1):
            self._wait_for_rate()
            exchange = self._send_once(request, next(seqs))
            yield exchange
            pause = _parse_retry_after(exchange.response)
            if pause is None or pause > patience or not attempts_left:
                return
            patience -= pause
            time.sleep(pause)

    def _wait_for_rate(self) -> None:
        time.sleep(max(0.0, self._free - time.monotonic()))
        self._free = time.monotonic() + 1 / self.rate

    def _send_once(self, request: Request, seq: int) -> Exchange:
        started, head, chunks = self.clock(), None, list[Chunk]()
        prepared = httpx.Request(
            request.method,
            request.url,
            headers=list(request.headers),
            content=request.body or None,
        )
        answer, error = None, None
        try:
            response = self.client.send(prepared, stream=True)
            try:
                head = _to_response_head(response, self.clock())
                for data in response.iter_raw():
                    chunks.append(Chunk(at=self.clock(), data=data))
            finally:
                response.close()
        except httpx.TransportError as problem:
            error = _to_transport_error(problem)
        if head is not None:
            answer = Response(
                status=head.status,
                headers=head.headers,
                reason=head.reason,
                version=head.version,
                at=head.at,
                chunks=tuple(chunks),
                ended=self.clock() if error is None else None,
            )
        return Exchange(seq=seq, request=request, response=answer, error=error, started=started)


def _to_response_head(response: httpx.Response, at: float) -> Response:
    return Response(
        status=response.status_code,
        reason=response.reason_phrase,
        version=response.http_version,
        headers=tuple((k.decode("latin-1"), v.decode("latin-1")) for k, v in response.headers.raw),
        at=at,
    )


_TRANSPORT_ERRORS: Mapping[type[httpx.TransportError], str] = {
    httpx.ConnectError: "refused",
    httpx.ReadError: "reset",
    httpx.WriteError: "reset",
    httpx.RemoteProtocolError: "eof",
}


def _to_transport_error(problem: httpx.TransportError) -> str:
    if isinstance(problem, httpx.TimeoutException):
        return f"timeout: {type(problem).__name__}"
    return f"{_TRANSPORT_ERRORS.get(type(problem), 'protocol')}: {problem}"


def _parse_retry_after(answer: Response | None) -> float | None:
    """Return the seconds to wait for a busy service (RFC 9110 10.2.3), 1 without Retry-After."""
    if answer is None or answer.status not in BUSY_STATUSES:
        return None
    value = find_header(answer.headers, "retry-after") or "1"
    if value.isdecimal():
        return float(value)
    try:
        return max(0.0, parsedate_to_datetime(value).timestamp() - time.time())
    except ValueError:
        return 1.0
