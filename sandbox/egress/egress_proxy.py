"""The only way out of a sandbox: a proxy that forwards allowed requests to another proxy.

It requires no credentials: only programs in the sandbox can reach its socket, Node programs with
the recorder's hook would not send any, and a secret that differs per run would reach the model
through an agent that prints its environment.
"""

import asyncio
import socket
import struct
from collections import Counter
from contextlib import suppress

from sandbox.egress.allowlist import EgressAllowlist
from sandbox.egress.egress_connection import EgressConnection, EgressRefused, Streams

CONNECT_TIMEOUT = 10.0
"""Seconds in which the proxy outside has to answer."""
REFUSAL_TIMEOUT = 5.0


class EgressProxy:
    """Serves listening sockets, from `serve` until it is closed."""

    def __init__(self, allow: EgressAllowlist, proxy: tuple[str, int] | None) -> None:
        self._allow, self._proxy = allow, proxy
        self._servers: list[asyncio.Server] = []
        self._writers: set[asyncio.StreamWriter] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self.refused: Counter[str] = Counter()

    async def serve(self, listening: socket.socket) -> None:
        """Accept connections on this socket, which the proxy owns from here on."""
        unix = listening.family == socket.AF_UNIX
        start = asyncio.start_unix_server if unix else asyncio.start_server
        self._servers.append(await start(self._accept, sock=listening))

    async def close(self) -> None:
        """End all connections."""
        for server in self._servers:
            server.close()
        for task in self._tasks:
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks)
        for writer in self._writers:
            writer.transport.abort()

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.create_task(self._serve_client((reader, writer)))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _serve_client(self, client: Streams) -> None:
        self._writers.add(client[1])
        connection = EgressConnection(client, self._allow, self._connect_upstream)
        try:
            await connection.serve()
        except EgressRefused as refusal:
            if refusal.whom:
                self.refused[f"{refusal.whom}: {refusal}"] += 1
            await _send_refusal(client[1], refusal)
        except ConnectionError:
            reset_egress_stream(client[1])
            if connection.upstream:
                reset_egress_stream(connection.upstream[1])
        finally:
            for _, writer in filter(None, (client, connection.upstream)):
                writer.close()
                self._writers.discard(writer)

    async def _connect_upstream(self) -> Streams:
        if self._proxy is None:
            raise EgressRefused(
                "502 Bad Gateway", "the environment names no proxy that this can go to"
            )
        try:
            async with asyncio.timeout(CONNECT_TIMEOUT):
                reader, writer = await asyncio.open_connection(*self._proxy)
        except OSError as error:
            raise EgressRefused("502 Bad Gateway", f"the proxy outside: {error}") from None
        self._writers.add(writer)
        return reader, writer


def reset_egress_stream(writer: asyncio.StreamWriter) -> None:
    """Reset a connection instead of ending it; a Unix socket only ends."""
    with suppress(OSError):  # already closed
        linger = struct.pack("ii", 1, 0)
        writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
    writer.transport.abort()


async def _send_refusal(writer: asyncio.StreamWriter, refusal: EgressRefused) -> None:
    body = f"stumble sandbox: {refusal.whom or 'this request'}: {refusal}\n".encode()
    head = f"HTTP/1.1 {refusal.status}\r\nContent-Type: text/plain\r\nConnection: close\r\n"
    with suppress(ConnectionError, TimeoutError):  # the client is gone, or does not read
        async with asyncio.timeout(REFUSAL_TIMEOUT):
            writer.write(f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body)
            await writer.drain()
