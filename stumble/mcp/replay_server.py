"""MCP replay server: answers any client with the recorded messages of one server."""

import asyncio
import itertools
import json
import signal
import time
from copy import replace
from urllib.parse import urlsplit

from msgspec import Struct

from recorder.mcp.stdio_replay import replay_stdio_server
from recorder.proxy.server import ProxyServer
from replay.mcp.defaults import McpDefaults
from replay.mcp.servers import (
    McpServerExchanges,
    group_by_mcp_server,
    to_http_server,
    to_stdio_server,
)
from replay.player import PlaybackOptions, TapePlayer
from stumble.errors import UsageError
from stumble.user_data.known_secrets import load_user_secrets
from stumble.user_data.paths import prepare_ca_folder
from traces.conversation.tracker import ConversationTap
from traces.redaction.redactor import Redactor
from traces.tape.reader import Tape
from traces.taps import TapChain

MCP_URL_PATH = "/mcp"
"""URL path of a stdio server replayed over HTTP."""


class RecordedMcpServer(Struct, frozen=True, kw_only=True):
    """One server of a tape: its name, its URL and its exchanges."""

    name: str
    url: str
    exchanges: McpServerExchanges

    @property
    def is_stdio(self) -> bool:
        return self.url.startswith("stdio://")

    @property
    def command(self) -> tuple[str, ...]:
        """The recorded command of a stdio server; the name of an HTTP server."""
        starts = (x.request.body for x in self.exchanges if x.request.method == "START")
        return tuple(json.loads(next(starts, b"null")) or (self.name,))


class ServeResult(Struct, frozen=True, kw_only=True):
    """The result of serving one session."""

    name: str
    answered: int
    diverged: tuple[str, ...]


def find_recorded_server(tape: Tape, name: str | None) -> RecordedMcpServer:
    """Find the server by name, HTTP host or URL.

    Raises UsageError if there is not exactly one match.
    """
    servers = [
        RecordedMcpServer(name=urlsplit(url).netloc, url=url, exchanges=exchanges)
        for url, exchanges in group_by_mcp_server(tape).items()
    ]
    matches = [each for each in servers if name in (None, each.name, each.url)]
    if len(matches) == 1:
        return matches[0]
    urls = ", ".join(each.url for each in servers) or "none"
    if name is not None:
        raise UsageError(f"{tape.path} has not one MCP server {name!r}; there are: {urls}")
    if servers:
        raise UsageError(f"{tape.path} has several MCP servers; say which by --name: {urls}")
    raise UsageError(
        f"{tape.path} has no MCP server on it; see `stumble show {tape.path} --exchanges`"
    )


class McpReplayServer:
    """A replay server in place of a recorded one; each recorded answer is given once."""

    def __init__(self, tape: Tape, server: RecordedMcpServer, *, http: bool, speed: float) -> None:
        self._server, self._http = server, http
        exchanges, self._url = server.exchanges, server.url
        if http and server.is_stdio:
            self._url = f"http://{server.name}{MCP_URL_PATH}"
            exchanges = to_http_server(exchanges, self._url)
        elif not http and not server.is_stdio:
            self._url = f"stdio://{server.name}/"
            exchanges = to_stdio_server(exchanges, self._url)
        tap = ConversationTap()
        redact = None
        if not tape.verbatim:
            redact = Redactor(load_user_secrets(), tape.redactions).redact_request
        self._player = TapePlayer(
            replace(tape, exchanges=exchanges),
            tap,
            options=PlaybackOptions(speed=speed, any_client=True),
            redact=redact or (lambda request: request),
        )
        self._taps = TapChain([tap, McpDefaults(exchanges), self._player])

    async def serve_stdio(self) -> None:
        """Serve over stdio until the client disconnects."""
        server, player = self._server, self._player
        await replay_stdio_server(
            self._taps,
            server.name,
            server.command,
            cues=player.find_message_timings,
            retold=player.rewrite_message,
        )

    async def serve_http(self, port: int) -> None:
        """Serve over HTTP on loopback until SIGINT or SIGTERM; print the URL."""
        stop_signal, loop = asyncio.Event(), asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, stop_signal.set)
        parts = urlsplit(self._url)
        origin = f"{parts.scheme}://{parts.netloc}"
        stage = ProxyServer(confdir=prepare_ca_folder()).create_listener(
            self._taps, began=time.monotonic(), seqs=itertools.count(), origins={origin: port}
        )
        async with stage:
            print(f"listening http://127.0.0.1:{stage.origins[origin]}{parts.path}", flush=True)
            waits = [asyncio.create_task(each.wait()) for each in (stop_signal, stage.failed)]
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
            for each in waits:
                each.cancel()

    @property
    def result(self) -> ServeResult:
        """The result so far."""
        player = self._player
        return ServeResult(
            name=self._server.name,
            answered=len(player.matched),
            diverged=tuple(player.diverged),
        )
