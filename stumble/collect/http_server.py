"""OTLP over HTTP, on the loopback interface unless asked otherwise."""

import asyncio
import ipaddress
import signal
import socket
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from functools import partial

import uvicorn
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from stumble.collect.collector import SIGNALS, OtlpSignal, SpanCollector
from stumble.collect.otlp_request import (
    JSON,
    MAX_BODY,
    BodyTooLarge,
    RejectedRecords,
    find_body_form,
    make_otlp_answer,
    make_otlp_error,
    read_otlp_body,
)

IMPORT_SECONDS = 1.0
"""Seconds between two looks for idle traces."""
BODY_SECONDS = 30.0
"""Seconds in which a request has to arrive."""
CLOSE_SECONDS = 5
MAX_CONNECTIONS = 64
type Handler = Callable[[Request], Awaitable[Response]]
_INVALID, _EXHAUSTED = 3, 8


class _CollectorServer(uvicorn.Server):
    """A server that leaves signals to its caller, which has work to do after it."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


def serve_otlp(collector: SpanCollector, listener: socket.socket) -> None:
    """Serve until SIGINT or SIGTERM, and import traces that are idle meanwhile."""
    turn = asyncio.Semaphore(1)
    routes = [
        Route(f"/v1/{name}", _make_handler(collector, each, turn), methods=["POST"])
        for name, each in SIGNALS.items()
    ]
    routes.append(Route("/v1/metrics", _drop_metrics, methods=["POST"]))
    hosts = Middleware(TrustedHostMiddleware, allowed_hosts=_list_allowed_hosts(listener))
    config = uvicorn.Config(
        Starlette(routes=routes, middleware=[hosts]),
        log_level="critical",
        access_log=False,
        server_header=False,
        timeout_graceful_shutdown=CLOSE_SECONDS,
        limit_concurrency=MAX_CONNECTIONS,
        lifespan="off",
        ws="none",
    )
    asyncio.run(_serve(_CollectorServer(config), collector, listener))


def _list_allowed_hosts(listener: socket.socket) -> list[str]:
    """Return the names by which a server on loopback may be asked.

    A page whose name was made to lead here (DNS rebinding) would send a name of its own. `[` is
    what TrustedHostMiddleware sees of an IPv6 address.
    """
    address = ipaddress.ip_address(listener.getsockname()[0])
    return ["localhost", "127.0.0.1", str(address), "["] if address.is_loopback else ["*"]


async def _serve(server: uvicorn.Server, collector: SpanCollector, listener: socket.socket) -> None:
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, partial(setattr, server, "should_exit", True))
    imports = asyncio.create_task(_import_idle_traces(server, collector))
    await server.serve(sockets=[listener])
    await imports


async def _import_idle_traces(server: uvicorn.Server, collector: SpanCollector) -> None:
    while not server.should_exit:
        await asyncio.sleep(IMPORT_SECONDS)
        await asyncio.to_thread(collector.import_idle)


def _make_handler(collector: SpanCollector, kind: OtlpSignal, turn: asyncio.Semaphore) -> Handler:
    async def handle(request: Request) -> Response:
        form = find_body_form(request.headers.get("content-type"))
        if form is None:
            why = "OTLP is application/x-protobuf or application/json\n"
            return Response(why, status_code=415)
        encoding = request.headers.get("content-encoding")

        def take(body: bytes) -> bytes:
            rejected = collector.take(read_otlp_body(body, form, encoding, kind.message), kind)
            return make_otlp_answer(form, rejected, kind.rejected)

        try:
            async with turn, asyncio.timeout(BODY_SECONDS):
                answer = await asyncio.to_thread(take, await _read_body(request))
        except TimeoutError:
            return Response(status_code=408)
        except BodyTooLarge as error:
            content = make_otlp_error(form, _EXHAUSTED, str(error))
            return Response(content, status_code=413, media_type=form)
        except (ValueError, RecursionError) as error:
            content = make_otlp_error(form, _INVALID, str(error))
            return Response(content, status_code=400, media_type=form)
        return Response(answer, media_type=form)

    return handle


async def _read_body(request: Request) -> bytes:
    if int(request.headers.get("content-length") or 0) > MAX_BODY:
        raise BodyTooLarge
    body = bytearray()
    async for chunk in request.stream():
        body += chunk
        if len(body) > MAX_BODY:
            raise BodyTooLarge
    return bytes(body)


async def _drop_metrics(request: Request) -> Response:
    """Accept metrics, which hold no runs, so that exporters do not repeat them."""
    form = find_body_form(request.headers.get("content-type")) or JSON
    return Response(make_otlp_answer(form, RejectedRecords(), "DataPoints"), media_type=form)
