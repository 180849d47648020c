"""The daemon: one recording proxy for many agents, with metrics, reload and graceful restart.

Signals: SIGHUP reads the rules again, SIGUSR2 starts a successor on the same sockets, SIGTERM and
SIGINT end it when open connections are done, within the grace of the rules. A successor tells its
predecessor to end as soon as it accepts connections itself; a connection that waits in the shared
socket is accepted by one of the two, so none is refused. The predecessor then ends each connection
with its next answer (`Connection: close`, RFC 9112 9.6), and has longer for answers under way.
"""

import asyncio
import itertools
import os
import resource
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

from aiohttp import web
from msgspec import Struct

from recorder.proxy.recording import RecordingProxy, start_recording_proxy
from recorder.proxy.route import UpstreamRoute
from recorder.proxy.server import RunListener
from scenarios.toml_reader import ScenarioError
from stumble.daemon.conversation_tape import recover_tapes
from stumble.daemon.metrics import DaemonMetrics
from stumble.daemon.retention import TapeBudget
from stumble.daemon.router import ConversationRouter
from stumble.daemon.rules import DaemonRules, read_rules
from stumble.user_data.known_secrets import load_user_secrets
from stumble.user_data.paths import publish_ca_certificate
from traces.taps import TapChain

SOCKETS_VARIABLE = "STUMBLE_DAEMON_SOCKETS"
"""File descriptors of the sockets that a predecessor hands over, and its process id."""
TICK_SECONDS = 0.5
SETTLE_SECONDS = 0.1
"""Connections accepted just before the daemon stopped accepting are known after so long."""
HEAD_SECONDS = 30.0
"""Seconds in which the head of a request has to be complete."""
MAX_IDLE_CONNECTIONS = 2000
"""Most connections that are held while nothing is asked on them."""
IDLE_CONNECTION_SECONDS = 20.0
"""When the daemon ends, connections idle for so long are closed; clients reuse them for 15 s."""


class DaemonOptions(Struct, frozen=True, kw_only=True):
    """Where a daemon listens, records and reads its rules."""

    listen: tuple[str, int]
    metrics: tuple[str, int] | None
    rules: Path | None
    root: Path
    ca: Path
    route: UpstreamRoute


class DaemonSockets(Struct, frozen=True):
    """The listening sockets; `predecessor` is told to end once they are served."""

    proxy: socket.socket
    metrics: socket.socket | None
    predecessor: int | None = None


def open_sockets(options: DaemonOptions) -> DaemonSockets:
    """Take over the sockets of a predecessor, or bind new ones. Raises OSError."""
    if handed := os.environ.pop(SOCKETS_VARIABLE, None):
        proxy, metrics, predecessor = map(int, handed.split(","))
        return DaemonSockets(
            socket.socket(fileno=proxy),
            socket.socket(fileno=metrics) if metrics >= 0 else None,
            predecessor,
        )
    return DaemonSockets(_bind(options.listen), _bind(options.metrics) if options.metrics else None)


def _bind(address: tuple[str, int]) -> socket.socket:
    family = socket.AF_INET6 if ":" in address[0] else socket.AF_INET
    bound = socket.socket(family, socket.SOCK_STREAM)
    bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    bound.bind(address)
    bound.listen(1024)
    return bound


class RecordingDaemon:
    """One daemon, from its start to its end."""

    def __init__(self, options: DaemonOptions, say: Callable[[str], object]) -> None:
        self._options, self._say = options, say
        self._metrics = DaemonMetrics()
        self._budget = TapeBudget(options.root, self._metrics)
        self._ending = asyncio.Event()
        self._ready = False
        self._successor: subprocess.Popen[bytes] | None = None
        self._hurried = False
        """Told to end twice: a handover has no more time than any other end."""
        self._listener: RunListener | None = None
        rules = read_rules(options.rules) if options.rules else DaemonRules()
        self._router = ConversationRouter(
            options.root,
            rules,
            load_user_secrets(),
            self._metrics,
            say=say,
            budget=self._budget,
        )

    async def run(self, sockets: DaemonSockets) -> None:
        """Serve until told to end."""
        _raise_file_limit()
        for path in await asyncio.to_thread(recover_tapes, self._options.root, self._say):
            self._budget.announce(path)
            self._budget.add(path, path.stat().st_size)
            self._say(f"kept what another daemon left: {path.name}")
        began = time.monotonic()
        async with start_recording_proxy(
            TapChain((self._router,)),
            confdir=self._options.ca,
            began=began,
            seqs=itertools.count(),
            upstream=self._options.route,
        ) as proxy:
            self._listener = proxy.listener
            await proxy.listener.serve_socket(sockets.proxy)
            pages = await self._serve_metrics(sockets.metrics)
            self._install_signals(sockets)
            self._ready = True
            host, port = sockets.proxy.getsockname()[:2]
            certificate = publish_ca_certificate(proxy.certificate)
            self._say(f"recording on {host}:{port}, CA certificate {certificate}")
            if sockets.predecessor is not None and sockets.predecessor == os.getppid():
                os.kill(sockets.predecessor, signal.SIGTERM)
            await self._serve(proxy)
            proxy.listener.drain()
            if pages is not None and self._is_succeeded():
                await pages.cleanup()  # the successor answers for both
            await self._drain(proxy.listener)
            if pages is not None:
                await pages.cleanup()
        await self._router.close()
        self._budget.enforce(self._router.rules)
        self._say("ended; all conversations are on their tapes")

    async def _serve(self, proxy: RecordingProxy) -> None:
        while not self._ending.is_set():
            self._tick(proxy.listener)
            try:
                await asyncio.wait_for(self._ending.wait(), TICK_SECONDS)
            except TimeoutError:
                continue

    def _tick(self, listener: RunListener) -> None:
        if self._successor is not None and (code := self._successor.poll()) is not None:
            self._successor = None
            self._say(f"the successor ended with exit code {code}; this daemon goes on")
        listener.close_stale(HEAD_SECONDS, MAX_IDLE_CONNECTIONS)
        self._router.close_idle(listener.now())
        self._budget.enforce(self._router.rules)

    async def _drain(self, listener: RunListener) -> None:
        """Serve what is open, and close connections that are idle."""
        self._metrics.gauges["draining"] = 1
        rules, began = self._router.rules, time.monotonic()
        idle = IDLE_CONNECTION_SECONDS if self._is_succeeded() else rules.grace
        await asyncio.sleep(SETTLE_SECONDS)
        while listener.connections:
            longest = rules.handover if self._is_succeeded() and not self._hurried else rules.grace
            if time.monotonic() - began >= longest:
                break
            for connection in tuple(listener.connections):
                if connection.idle_seconds() >= min(idle, IDLE_CONNECTION_SECONDS):
                    connection.close_idle()
            self._tick(listener)
            await asyncio.sleep(0.1)

    # Signals.

    def _install_signals(self, sockets: DaemonSockets) -> None:
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self._end)
        loop.add_signal_handler(signal.SIGHUP, self._reload)
        loop.add_signal_handler(signal.SIGUSR2, self._start_successor, sockets)

    def _is_succeeded(self) -> bool:
        return self._successor is not None and self._successor.poll() is None

    def _end(self) -> None:
        self._hurried = self._ending.is_set()
        self._ending.set()

    def _reload(self) -> None:
        """Read the rules again; a file that is broken changes nothing."""
        if self._options.rules is None:
            self._say("no --daemon-rules: nothing to reload")
            return
        try:
            self._router.rules = read_rules(self._options.rules)
        except ScenarioError as error:
            self._metrics.add("rule_reloads_total", 'result="refused"')
            self._say(f"the old rules stay: {error}")
            return
        self._metrics.add("rule_reloads_total", 'result="ok"')
        self._say(f"rules of {self._options.rules} are in force")

    def _start_successor(self, sockets: DaemonSockets) -> None:
        if self._successor is not None or self._ending.is_set():
            self._say("this daemon is being replaced, or ends: no other successor is started")
            return
        numbers = [each.fileno() for each in (sockets.proxy, sockets.metrics) if each is not None]
        metrics = sockets.metrics.fileno() if sockets.metrics is not None else -1
        handed = f"{sockets.proxy.fileno()},{metrics},{os.getpid()}"
        self._successor = subprocess.Popen(
            (sys.executable, "-m", "stumble", *sys.argv[1:]),
            env=os.environ | {SOCKETS_VARIABLE: handed},
            pass_fds=numbers,
        )
        self._say(f"successor started, process {self._successor.pid}")

    # Metrics and health.

    async def _serve_metrics(self, bound: socket.socket | None) -> web.AppRunner | None:
        if bound is None:
            return None
        app = web.Application()
        app.add_routes(
            [
                web.get("/metrics", self._answer_metrics),
                web.get("/healthz", self._answer_health),
                web.get("/readyz", self._answer_ready),
            ]
        )
        runner = web.AppRunner(app, access_log=None)
        await runner.setup()
        await web.SockSite(runner, bound).start()
        return runner

    async def _answer_metrics(self, _: web.Request) -> web.Response:
        if self._listener is not None:
            self._metrics.gauges["connections_open"] = len(self._listener.connections)
        self._metrics.gauges["conversations_open"] = self._router.open_count
        return web.Response(
            text=self._metrics.render(), headers={"content-type": "text/plain; version=0.0.4"}
        )

    async def _answer_health(self, _: web.Request) -> web.Response:
        return web.Response(text="alive\n")

    async def _answer_ready(self, _: web.Request) -> web.Response:
        ready = self._ready and not self._ending.is_set()
        return web.Response(text="ready\n" if ready else "ending\n", status=200 if ready else 503)


def _raise_file_limit() -> None:
    """Allow as many open files as the system does: each conversation has a tape and sockets."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
