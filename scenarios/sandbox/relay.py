"""The only way out of a sandbox: a proxy that passes on to another what an allow list lets through.

It asks for no credentials, as design.md wanted: who can reach its socket is in the sandbox, Node
programs led by our hook would not send any, and a secret that differs from run to run would be
told to the model by an agent that prints its environment.
"""

import asyncio
import socket
import struct
from collections import Counter
from contextlib import suppress

from scenarios.sandbox.allow import Allow
from scenarios.sandbox.passage import Passage, Refused, Streams

CONNECTING = 10.0
"""Seconds in which the proxy outside has to answer."""
TELLING = 5.0


class Relay:
    """Serves listening sockets, from when they are given to it until it is closed."""

    def __init__(self, allow: Allow, proxy: tuple[str, int] | None) -> None:
        self._allow, self._proxy = allow, proxy
        self._servers: list[asyncio.Server] = []
        self._writers: set[asyncio.StreamWriter] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self.refused: Counter[str] = Counter()

    async def serve(self, listening: socket.socket) -> None:
        """Take the connections of this socket, which is ours from here on."""
        unix = listening.family == socket.AF_UNIX
        start = asyncio.start_unix_server if unix else asyncio.start_server
        self._servers.append(await start(self._taken, sock=listening))

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

    def _taken(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.create_task(self._served((reader, writer)))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _served(self, client: Streams) -> None:
        self._writers.add(client[1])
        passage = Passage(client, self._allow, self._reach)
        try:
            await passage.run()
        except Refused as refusal:
            if refusal.whom:
                self.refused[f"{refusal.whom}: {refusal}"] += 1
            await _told(client[1], refusal)
        except ConnectionError:
            reset(client[1])
            if passage.upstream:
                reset(passage.upstream[1])
        finally:
            for _, writer in filter(None, (client, passage.upstream)):
                writer.close()
                self._writers.discard(writer)

    async def _reach(self) -> Streams:
        if self._proxy is None:
            raise Refused("502 Bad Gateway", "the environment names no proxy that this can go to")
        try:
            async with asyncio.timeout(CONNECTING):
                reader, writer = await asyncio.open_connection(*self._proxy)
        except OSError as error:
            raise Refused("502 Bad Gateway", f"the proxy outside: {error}") from None
        self._writers.add(writer)
        return reader, writer


def reset(writer: asyncio.StreamWriter) -> None:
    """End a connection by a reset instead of an end; on a Unix socket there is none."""
    with suppress(OSError):  # it is closed
        linger = struct.pack("ii", 1, 0)
        writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
    writer.transport.abort()


async def _told(writer: asyncio.StreamWriter, refusal: Refused) -> None:
    said = f"stumble sandbox: {refusal.whom or 'this request'}: {refusal}\n".encode()
    head = f"HTTP/1.1 {refusal.status}\r\nContent-Type: text/plain\r\nConnection: close\r\n"
    with suppress(ConnectionError, TimeoutError):  # whoever asked is gone, or does not listen
        async with asyncio.timeout(TELLING):
            writer.write(f"{head}Content-Length: {len(said)}\r\n\r\n".encode() + said)
            await writer.drain()
