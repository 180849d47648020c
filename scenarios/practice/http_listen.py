"""Serve aiohttp applications on loopback, in-process or as a program that prints its port."""

import asyncio
import os
import signal
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from aiohttp import web


@asynccontextmanager
async def listen_on_loopback(
    app: web.Application, port: int = 0, *, tls: Path | None = None
) -> AsyncIterator[int]:
    """Serve on 127.0.0.1 for the duration of the block and yield the port; 0 picks a free one.

    `tls` is a PEM file with a key and its certificate; without it the server speaks plain HTTP.
    """
    context = None
    if tls is not None:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(tls)
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
    await runner.setup()
    try:
        site = web.TCPSite(runner, "127.0.0.1", port, backlog=1024, ssl_context=context)
        await site.start()
        yield runner.addresses[0][1]
    finally:
        await runner.cleanup()


async def serve_app_until_stopped(
    app: web.Application, port: int, *, tls: Path | None = None
) -> None:
    """Serve, print `listening PORT`, and stop on SIGTERM, SIGINT or the end of stdin."""
    stopped, loop = asyncio.Event(), asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stopped.set)
    async with listen_on_loopback(app, port, tls=tls) as chosen, _watch_stdin(stopped):
        print(f"listening {chosen}", flush=True)
        await stopped.wait()


@asynccontextmanager
async def _watch_stdin(told: asyncio.Event) -> AsyncIterator[None]:
    """Set the event when stdin ends. /dev/null and files cannot be watched and never set it."""
    loop = asyncio.get_running_loop()

    def readable() -> None:
        if not os.read(0, 4096):
            told.set()

    try:
        loop.add_reader(0, readable)
    except (OSError, ValueError):
        yield
        return
    try:
        yield
    finally:
        loop.remove_reader(0)
