"""Sending recorded requests again, to a real service: what is sent, and what comes back.

One request at a time, in the order of the recording, at no more than a given rate. A service that
says 429 or 503 is waited for as long as its Retry-After says, within a bound. The answers are
exchanges like any others, with the times of their chunks, so they make a tape.
"""

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from urllib.parse import urlsplit

import httpx

from traces.model import Chunk, Exchange, Headers, Request, Response, header
from traces.redact import PLACEHOLDER

OWN = frozenset(
    ("host", "content-length", "transfer-encoding", "connection", "keep-alive", "upgrade",
     "proxy-connection", "proxy-authorization", "te", "trailer")
)  # fmt: skip
"""Said of one connection, or by the client itself: never sent as recorded."""
BUSY = (429, 503)
ATTEMPTS = 5


def redacted(request: Request) -> bool:
    """True for a request whose URL or body lost a secret, so that it cannot be asked again."""
    said = request.url.encode("utf-8", "surrogatepass") + b"\n" + request.body
    return PLACEHOLDER.search(said) is not None


def retarget(request: Request, base: str, given: Headers = ()) -> Request:
    """The request for the service at `base`: same path below it, same query, and these headers.

    Headers that lost a secret are left out, those given take the place of their namesakes.
    """
    parts, root = urlsplit(request.url), base.rstrip("/")
    query = f"?{parts.query}" if parts.query else ""
    named = {name.lower() for name, _ in given}
    headers = tuple(
        (name, value)
        for name, value in request.headers
        if name.lower() not in OWN | named and not PLACEHOLDER.search(value.encode("latin-1"))
    )
    return Request(
        method=request.method,
        url=f"{root}{parts.path}{query}",
        headers=(*headers, *given),
        body=request.body,
    )


@dataclass(slots=True)
class Sender:
    """Sends requests one after the other.

    `rate` is requests a second at most, `patience` how many seconds one request may wait for a
    busy service; `clock` counts seconds since the tape began.
    """

    client: httpx.Client
    clock: Callable[[], float]
    rate: float
    patience: float = 60.0
    _free: float = 0.0

    def attempts(self, request: Request, seqs: Iterator[int]) -> Iterator[Exchange]:
        """Each attempt at a request; the last is the answer, also where it still says busy."""
        patience = self.patience
        for left in range(ATTEMPTS - 1, -1, -1):
            self._pace()
            exchange = self._send(request, next(seqs))
            yield exchange
            pause = _asked_to_wait(exchange.response)
            if pause is None or pause > patience or not left:
                return
            patience -= pause
            time.sleep(pause)

    def _pace(self) -> None:
        time.sleep(max(0.0, self._free - time.monotonic()))
        self._free = time.monotonic() + 1 / self.rate

    def _send(self, request: Request, seq: int) -> Exchange:
        started, head, chunks = self.clock(), None, list[Chunk]()
        asked = httpx.Request(
            request.method,
            request.url,
            headers=list(request.headers),
            content=request.body or None,
        )
        answer, error = None, None
        try:
            response = self.client.send(asked, stream=True)
            try:
                head = _head(response, self.clock())
                for data in response.iter_raw():
                    chunks.append(Chunk(at=self.clock(), data=data))
            finally:
                response.close()
        except httpx.TransportError as problem:
            error = _error(problem)
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


def _head(response: httpx.Response, at: float) -> Response:
    return Response(
        status=response.status_code,
        reason=response.reason_phrase,
        version=response.http_version,
        headers=tuple((k.decode("latin-1"), v.decode("latin-1")) for k, v in response.headers.raw),
        at=at,
    )


_ERRORS: Mapping[type[httpx.TransportError], str] = {
    httpx.ConnectError: "refused",
    httpx.ReadError: "reset",
    httpx.WriteError: "reset",
    httpx.RemoteProtocolError: "eof",
}


def _error(problem: httpx.TransportError) -> str:
    if isinstance(problem, httpx.TimeoutException):
        return f"timeout: {type(problem).__name__}"
    return f"{_ERRORS.get(type(problem), 'protocol')}: {problem}"


def _asked_to_wait(answer: Response | None) -> float | None:
    """Seconds to wait, as a busy service says (RFC 9110 10.2.3), 1 where it does not say."""
    if answer is None or answer.status not in BUSY:
        return None
    said = header(answer.headers, "retry-after") or "1"
    if said.isdecimal():
        return float(said)
    try:
        return max(0.0, parsedate_to_datetime(said).timestamp() - time.time())
    except ValueError:
        return 1.0
