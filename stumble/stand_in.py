"""An MCP server from a tape, for any client: what was recorded with one answers again."""

import asyncio
import itertools
import json
import os
import signal
import time
from dataclasses import dataclass, replace
from urllib.parse import urlsplit

from recorder.stand_in import stand_in
from replay.courtesies import Courtesies
from replay.performer import Performer
from replay.player import Player
from replay.servers import Server, over_http, over_stdio, servers
from stumble.exits import Wrong
from stumble.home import authority
from traces.conversation import Watch
from traces.redact import Redactor, secrets
from traces.tape import Tape
from traces.taps import Taps

PATH = "/mcp"
"""Where a server of stdio is over HTTP."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cast:
    """One server of a tape: its name, its URL, and all that was said with it."""

    name: str
    url: str
    said: Server

    @property
    def stdio(self) -> bool:
        return self.url.startswith("stdio://")

    @property
    def command(self) -> tuple[str, ...]:
        """What was started for it; of HTTP its name."""
        starts = (x.request.body for x in self.said if x.request.method == "START")
        return tuple(json.loads(next(starts, b"null")) or (self.name,))


@dataclass(frozen=True, slots=True, kw_only=True)
class Given:
    """What became of a performance."""

    name: str
    answered: int
    diverged: tuple[str, ...]


def cast(tape: Tape, name: str | None) -> Cast:
    """The server of this name (of HTTP its host, or its URL); Wrong where that is not one."""
    found = [
        Cast(name=urlsplit(url).netloc, url=url, said=said) for url, said in servers(tape).items()
    ]
    meant = [each for each in found if name in (None, each.name, each.url)]
    if len(meant) == 1:
        return meant[0]
    there = ", ".join(each.url for each in found) or "none"
    if name is not None:
        raise Wrong(f"{tape.path} has not one MCP server {name!r}; there are: {there}")
    if found:
        raise Wrong(f"{tape.path} has several MCP servers; say which by --name: {there}")
    raise Wrong(f"{tape.path} has no MCP server on it; see `stumble show {tape.path} --exchanges`")


class Play:
    """A server that stands for a recorded one, once: each recorded answer is given once."""

    def __init__(self, tape: Tape, server: Cast, *, http: bool, speed: float) -> None:
        self._server, self._http = server, http
        said, self._url = server.said, server.url
        if http and server.stdio:
            self._url = f"http://{server.name}{PATH}"
            said = over_http(said, self._url)
        elif not http and not server.stdio:
            self._url = f"stdio://{server.name}/"
            said = over_stdio(said, self._url)
        watch = Watch()
        redact = None if tape.verbatim else Redactor(secrets(os.environ)).request
        self._player = Player(
            replace(tape, exchanges=said),
            watch,
            speed=speed,
            redact=redact or (lambda request: request),
        )
        self._taps = Taps([watch, Courtesies(said), self._player])

    async def on_stdio(self) -> None:
        """Until the client leaves."""
        server, player = self._server, self._player
        await stand_in(
            self._taps, server.name, server.command, cues=player.cues, retold=player.retold
        )

    async def on_port(self, port: int) -> None:
        """Over HTTP on loopback, until we are told to end; says where on stdout."""
        told, loop = asyncio.Event(), asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, told.set)
        parts = urlsplit(self._url)
        origin = f"{parts.scheme}://{parts.netloc}"
        stage = Performer(confdir=authority()).stage(
            self._taps, began=time.monotonic(), seqs=itertools.count(), origins={origin: port}
        )
        async with stage:
            print(f"listening http://127.0.0.1:{stage.origins[origin]}{parts.path}", flush=True)
            ends = [asyncio.create_task(each.wait()) for each in (told, stage.failed)]
            await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
            for each in ends:
                each.cancel()

    @property
    def given(self) -> Given:
        """What was asked of it so far."""
        player = self._player
        return Given(
            name=self._server.name,
            answered=len(player.matched),
            diverged=tuple(player.diverged),
        )
