"""Fixture of `stumble selftest`: a folder, real servers, and an agent that logs its exchanges.

A tool server, a model server and a server of known bytes at a fixed pace listen on free loopback
ports; the last one uses TLS, with a certificate of a separate CA that the system does not trust.
The agent logs all its requests and answers, and the model server keeps the requests it gets, as
evidence independent of tapes.
"""

import asyncio
import os
import secrets
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from ipaddress import ip_address
from pathlib import Path

from aiohttp import web
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509 import IPAddress
from msgspec import Struct

from recorder import ca as certificate_authority
from scenarios.practice import fixed_pace_server, tool_server, world
from scenarios.practice.agents.logging_agent import ExchangeNote, read_exchange_notes
from scenarios.practice.http_listen import listen_on_loopback
from scenarios.practice.model_server import ModelServer
from scenarios.practice.tasks.registry import ORDER_TASKS
from scenarios.practice.world import PracticeWorld
from stumble.errors import signal_to_exit_code
from stumble.runs.launcher import ColdLauncher
from stumble.runs.record import record_run
from stumble.runs.replay import run_replay
from stumble.runs.session import ReplaySession, open_replay_session
from stumble.runs.types import RecordPlan, ReplayPlan, RunResult
from stumble.user_data.paths import new_trajectory_id
from traces.store.trace_store import TraceStore
from traces.tape.reader import Tape, read_tape

type Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]

TASK = "refund-1"
BUDGET = 60.0
"""Time limit of one run in seconds."""


class CanarySecrets(Struct, frozen=True, kw_only=True):
    """Three secrets, each detected by a different rule."""

    header: str
    """Detected only by the name of its header."""
    body: str
    """Detected by the name of its environment variable."""
    split: str
    """Detected by its pattern, once its two chunks are joined."""

    @property
    def all(self) -> tuple[str, str, str]:
        """The header, body and split secrets."""
        return self.header, self.body, self.split

    @property
    def parts(self) -> tuple[str, str, str]:
        """Texts that no file may contain; of the split secret, its first half."""
        return self.header, self.body, self.split[: len(self.split) // 2]


def make_canary_secrets() -> CanarySecrets:
    """Generate random secrets."""
    return CanarySecrets(
        header=secrets.token_hex(20),
        body=secrets.token_urlsafe(30),
        split=f"ghp_{secrets.token_hex(18)}",
    )


class SelftestRun(Struct, frozen=True, kw_only=True):
    """One run: its result and tape, the agent's log and output, and the model's requests."""

    played: RunResult
    tape: Tape
    notes: tuple[ExchangeNote, ...]
    printed: bytes
    heard: tuple[bytes, ...]


class SelftestFixture:
    """A separate folder, and the runs made in it."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.secrets = folder, make_canary_secrets()
        self._notes, self._scratch, self._ca = (folder / n for n in ("agent", "scratch", "ca"))
        self._notes.mkdir()
        self._scratch.mkdir()
        self._theirs = folder / "theirs"
        self.store = TraceStore(folder / "store")
        self.world = PracticeWorld(folder / "shop.db", TASK, {})
        world.set_up_order_book(self.world.path, ORDER_TASKS[TASK])
        self._heard: list[bytes] = []
        self.ports: tuple[int, ...] = ()

    @asynccontextmanager
    async def run_servers(self) -> AsyncIterator[AsyncExitStack]:
        """Start all servers and set the agent's environment; yield a stack that stops the tools."""
        async with AsyncExitStack() as model, AsyncExitStack() as tools:
            self.ports = (
                await model.enter_async_context(listen_on_loopback(_make_model_app(self._heard))),
                await tools.enter_async_context(tool_server.serve_tools(self.world.path)),
                await tools.enter_async_context(
                    listen_on_loopback(
                        fixed_pace_server.build_paced_app(self.secrets.split),
                        tls=_make_loopback_certificate(self._theirs),
                    )
                ),
            )
            with self._set_agent_environment():
                yield tools

    @asynccontextmanager
    async def watch_stopped_ports(self) -> AsyncIterator[list[int]]:
        """Listen on the ports of the stopped servers; yield a list of the ports connected to."""
        with self._set_agent_environment():
            async with AsyncExitStack() as stack:
                connections: list[int] = []

                def take(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
                    connections.append(writer.get_extra_info("sockname")[1])
                    writer.close()

                for port in self.ports:
                    listener = await asyncio.start_server(take, "127.0.0.1", port)
                    await stack.enter_async_context(listener)
                yield connections

    @contextmanager
    def _set_agent_environment(self) -> Iterator[None]:
        """Set the environment of the agent's user, with loopback in NO_PROXY."""
        model, shop, teller = (f"127.0.0.1:{port}" for port in self.ports)
        before = dict(os.environ)
        os.environ |= {"MODEL_URL": f"http://{model}", "TOOLS_URL": f"http://{shop}"}
        os.environ |= {"TELLER_URL": f"https://{teller}"}
        os.environ |= {
            "SSL_CERT_FILE": str(certificate_authority.ensure_ca_certificate(self._theirs))
        }
        os.environ |= {"WITNESS_SAYS": self.secrets.header, "SHOP_TOKEN": self.secrets.body}
        os.environ |= dict.fromkeys(("NO_PROXY", "no_proxy"), "127.0.0.1")
        try:
            yield
        finally:
            os.environ.clear()
            os.environ |= before

    @asynccontextmanager
    async def open_session(self, *, out: bool) -> AsyncIterator[ReplaySession]:
        """Open a replay session, with or without upstream connections."""
        async with open_replay_session(
            ca=self._ca, scratch=self._scratch, hosts={}, out=out
        ) as session:
            yield session

    async def record_agent(self, does: str, *, world: bool = False) -> SelftestRun:
        """Record the agent live."""
        id, first = new_trajectory_id(), len(self._heard)
        result = await record_run(
            self.store.tapes / f"{id}.tape",
            self._make_launcher(does, does),
            RecordPlan(world=self.world if world else None),
            id=id,
            ca=self._ca,
            scratch=self._scratch,
        )
        return self._collect_run(result, does, first)

    async def replay_agent(
        self, session: ReplaySession, name: str, recording: SelftestRun, how: ReplayPlan, does: str
    ) -> SelftestRun:
        """Replay or fork the agent."""
        launch, first = self._make_launcher(name, does), len(self._heard)
        folder = self.store.tapes
        result = await run_replay(session, recording.tape, folder, how, launch)
        return self._collect_run(result, name, first)

    def _make_launcher(self, name: str, does: str) -> ColdLauncher:
        agent = (
            sys.executable,
            "-m",
            "scenarios.practice.agents.logging_agent",
            does,
            "--task",
            TASK,
        )
        command = (*agent, "--notes", str(self._notes / name))
        return ColdLauncher(command=command, budget=BUDGET, output=self.store.log_path(name))

    def _collect_run(self, played: RunResult, name: str, heard: int) -> SelftestRun:
        if played.exit.signal is not None:
            raise SystemExit(signal_to_exit_code(played.exit.signal))
        return SelftestRun(
            played=played,
            tape=read_tape(played.path),
            notes=read_exchange_notes(self._notes / name),
            printed=self.store.log_path(name).read_bytes(),
            heard=tuple(self._heard[heard:]),
        )

    def read_agent_notes(self) -> Iterator[bytes]:
        """Yield headers and bodies from the agent's logs, without redaction."""
        for path in sorted(self._notes.iterdir()):
            for note in read_exchange_notes(path):
                yield from (note.headers.encode(), note.sent, note.body)

    def list_written_files(self) -> Iterator[Path]:
        """Yield the files written by stumble, without the agent's logs."""
        for path in sorted(self.folder.rglob("*")):
            if path.is_file() and not path.is_relative_to(self._notes):
                yield path

    def count_replay_verdicts(self) -> int:
        """Count the verdicts in the store on replays, which should have none."""
        with self.store.open_locked() as connection:
            row = connection.execute(_REPLAY_VERDICTS_SQL).fetchone()
        return int(row[0]) if row else 0


_REPLAY_VERDICTS_SQL = """
    select count(*) from trajectories left join outcomes
        on split_part(injection_id, '/', 1) = trajectory_id
    where source = 'replay' and (trajectories.passed is not null or injection_id is not null)
"""


def _make_loopback_certificate(ca: Path) -> Path:
    """Write a PEM file with key and certificate of 127.0.0.1, issued by the CA in `ca`."""
    entry = certificate_authority.load_ca_store(ca).get_cert(
        "127.0.0.1", [IPAddress(ip_address("127.0.0.1"))]
    )
    key = entry.privatekey.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    path = ca / "loopback.pem"
    path.touch(mode=0o600)
    path.write_bytes(key + entry.cert.to_pem())
    return path


def _make_model_app(heard: list[bytes]) -> web.Application:
    """Build a model server that appends request bodies to a list."""

    @web.middleware
    async def keep(request: web.Request, handler: Handler) -> web.StreamResponse:
        heard.append(await request.read())
        return await handler(request)

    app = ModelServer().build_app()
    app.middlewares.append(keep)
    return app
