"""A relay between an agent and the proxy that logs the bytes in both directions.

It is a reference independent of the tape: traffic without TLS is read as it crossed the wire.
"""

import asyncio
import re
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

from recorder.agent.isolation import AgentIsolation
from recorder.agent.process import AgentExit
from stumble.runs.types import AgentLauncher

_CLOCK = re.compile(rb"(?i)(\r\ndate: )[^\r]+")


@dataclass(slots=True)
class Overheard:
    """One connection of the agent."""

    sent: bytearray = field(default_factory=bytearray)
    got: bytearray = field(default_factory=bytearray)

    @property
    def apart_from_the_clock(self) -> tuple[bytes, bytes]:
        """Return both directions, without the date header of a live server."""
        return bytes(self.sent), _CLOCK.sub(rb"\1", bytes(self.got))


@dataclass(frozen=True, slots=True, kw_only=True)
class Overhearing:
    """Starts an agent as `launch` does, with a relay in front of each port that it is given."""

    launch: AgentLauncher
    connections: list[Overheard] = field(default_factory=list)
    environments: list[Mapping[str, str]] = field(default_factory=list)

    @property
    def command(self) -> tuple[str, ...]:
        return self.launch.command

    @property
    def warm(self) -> bool:
        return self.launch.warm

    @property
    def cwd(self) -> Path | None:
        return self.launch.cwd

    async def __call__(
        self,
        env: Mapping[str, str],
        *,
        command: tuple[str, ...] | None = None,
        cage: AgentIsolation | None = None,
        cwd: Path | None = None,
    ) -> AgentExit:
        self.environments.append(dict(env))
        ours = urlsplit(env["HTTP_PROXY"]).port
        assert ours is not None
        async with self._relay(ours) as port:
            env = {k: v.replace(f"127.0.0.1:{ours}", f"127.0.0.1:{port}") for k, v in env.items()}
            return await self.launch(env, command=command, cage=cage, cwd=cwd)

    @asynccontextmanager
    async def _relay(self, port: int) -> AsyncIterator[int]:
        async def carry(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            heard = Overheard()
            self.connections.append(heard)
            up, down = await asyncio.open_connection("127.0.0.1", port)
            async with asyncio.TaskGroup() as both:
                both.create_task(_copy(reader, down, heard.sent))
                both.create_task(_copy(up, writer, heard.got))

        server = await asyncio.start_server(carry, "127.0.0.1", 0)
        async with server:
            yield server.sockets[0].getsockname()[1]


async def _copy(source: asyncio.StreamReader, drain: asyncio.StreamWriter, kept: bytearray) -> None:
    """Copy until the end of the stream; pass a reset on as a reset."""
    try:
        while data := await source.read(1 << 16):
            kept += data
            drain.write(data)
            await drain.drain()
        drain.close()
    except (ConnectionResetError, BrokenPipeError):
        drain.transport.abort()
