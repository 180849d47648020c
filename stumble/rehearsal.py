"""Where `stumble selftest` makes its runs: a folder, real servers, an agent that takes notes.

A shop, a model and a teller of known bytes serve on loopback, at ports that the system chooses;
the teller speaks TLS, by a certificate of an authority that is neither ours nor the system's.
The agent writes down all that it says and hears, and the model keeps what it was sent, so that
nobody has to believe a tape.
"""

import asyncio
import os
import secrets
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass
from ipaddress import ip_address
from pathlib import Path

from aiohttp import web
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509 import IPAddress

from recorder import authority
from scenarios.practice import server, teller, world
from scenarios.practice.provider import Provider
from scenarios.practice.serving import listening
from scenarios.practice.tasks import TASKS
from scenarios.practice.witness import Note, noted
from stumble.demo import PracticeWorld
from stumble.exits import interrupted
from stumble.home import new_id
from stumble.launch import Cold
from stumble.playing import play
from stumble.recording import record
from stumble.runs import Plan, Played
from stumble.theatre import Theatre, theatre
from traces.store import Store
from traces.tape import Tape, read

type Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]

TASK = "refund-1"
BUDGET = 60.0
"""Seconds that the agent gets for one run."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Planted:
    """Three secrets, each of which is to be found by another rule."""

    header: str
    """Known to be one by the header that it stands in, and by nothing else."""
    body: str
    """Known by the name of the variable that holds it."""
    split: str
    """Known by what it looks like, when its two chunks are joined."""

    @property
    def all(self) -> tuple[str, str, str]:
        """The three."""
        return self.header, self.body, self.split

    @property
    def parts(self) -> tuple[str, str, str]:
        """What must lie nowhere: of the one that comes in two chunks half is too much."""
        return self.header, self.body, self.split[: len(self.split) // 2]


def planted() -> Planted:
    """Secrets that nobody has ever seen."""
    return Planted(
        header=secrets.token_hex(20),
        body=secrets.token_urlsafe(30),
        split=f"ghp_{secrets.token_hex(18)}",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One run: what we say of it, what the agent noted, and what the model was sent."""

    played: Played
    tape: Tape
    notes: tuple[Note, ...]
    printed: bytes
    heard: tuple[bytes, ...]


class Rehearsal:
    """A folder of its own, and the runs that are made in it."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.secrets = folder, planted()
        self._notes, self._scratch, self._ca = (folder / n for n in ("agent", "scratch", "ca"))
        self._notes.mkdir()
        self._scratch.mkdir()
        self._theirs = folder / "theirs"
        self.store = Store(folder / "store")
        self.world = PracticeWorld(folder / "shop.db", TASK, {})
        world.setup(self.world.path, TASKS[TASK])
        self._heard: list[bytes] = []
        self.ports: tuple[int, ...] = ()

    @asynccontextmanager
    async def served(self) -> AsyncIterator[AsyncExitStack]:
        """All servers, and an agent that finds them; gives a stack that ends the tools alone."""
        async with AsyncExitStack() as model, AsyncExitStack() as tools:
            self.ports = (
                await model.enter_async_context(listening(_model(self._heard))),
                await tools.enter_async_context(server.serving(self.world.path)),
                await tools.enter_async_context(
                    listening(teller.app(self.secrets.split), tls=_for_loopback(self._theirs))
                ),
            )
            with self._told():
                yield tools

    @asynccontextmanager
    async def stopped(self) -> AsyncIterator[list[int]]:
        """No server, but the agent is told of them; gives a list of who comes to their ports."""
        with self._told():
            async with AsyncExitStack() as stack:
                came: list[int] = []

                def take(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
                    came.append(writer.get_extra_info("sockname")[1])
                    writer.close()

                for port in self.ports:
                    at = await asyncio.start_server(take, "127.0.0.1", port)
                    await stack.enter_async_context(at)
                yield came

    @contextmanager
    def _told(self) -> Iterator[None]:
        """What the agent's user has set; they want loopback to be reached past any proxy."""
        model, shop, teller = (f"127.0.0.1:{port}" for port in self.ports)
        before = dict(os.environ)
        os.environ |= {"MODEL_URL": f"http://{model}", "TOOLS_URL": f"http://{shop}"}
        os.environ |= {"TELLER_URL": f"https://{teller}"}
        os.environ |= {"SSL_CERT_FILE": str(authority.certificate(self._theirs))}
        os.environ |= {"WITNESS_SAYS": self.secrets.header, "SHOP_TOKEN": self.secrets.body}
        os.environ |= dict.fromkeys(("NO_PROXY", "no_proxy"), "127.0.0.1")
        try:
            yield
        finally:
            os.environ.clear()
            os.environ |= before

    @asynccontextmanager
    async def theatre(self, *, out: bool) -> AsyncIterator[Theatre]:
        """Where runs are played, with or without a way out."""
        async with theatre(ca=self._ca, scratch=self._scratch, hosts={}, out=out) as house:
            yield house

    async def record(self, does: str, *, world: bool = False) -> Run:
        """The agent, live."""
        id, heard = new_id(), len(self._heard)
        played = await record(
            self.store.tapes / f"{id}.tape",
            self._launch(does, does),
            id=id,
            ca=self._ca,
            scratch=self._scratch,
            world=self.world if world else None,
        )
        return self._run(played, does, heard)

    async def play(self, house: Theatre, name: str, recording: Run, how: Plan, does: str) -> Run:
        """The agent, played to."""
        launch, heard = self._launch(name, does), len(self._heard)
        folder = self.store.tapes
        played = await play(house, recording.tape, folder, how, launch)
        return self._run(played, name, heard)

    def _launch(self, name: str, does: str) -> Cold:
        agent = (sys.executable, "-m", "scenarios.practice.witness", does, "--task", TASK)
        command = (*agent, "--notes", str(self._notes / name))
        return Cold(command=command, budget=BUDGET, output=self.store.log(name))

    def _run(self, played: Played, name: str, heard: int) -> Run:
        if played.exit.signal is not None:
            raise SystemExit(interrupted(played.exit.signal))
        return Run(
            played=played,
            tape=read(played.path),
            notes=noted(self._notes / name),
            printed=self.store.log(name).read_bytes(),
            heard=tuple(self._heard[heard:]),
        )

    def noted(self) -> Iterator[bytes]:
        """All that the agent has noted, in the clear."""
        for path in sorted(self._notes.iterdir()):
            for note in noted(path):
                yield from (note.headers.encode(), note.sent, note.body)

    def written(self) -> Iterator[Path]:
        """The files that we have written, which the agent's notes are not."""
        for path in sorted(self.folder.rglob("*")):
            if path.is_file() and not path.is_relative_to(self._notes):
                yield path

    def judged(self) -> int:
        """How many verdicts the store holds of runs that are no forks."""
        with self.store.reading() as connection:
            found = connection.execute(_JUDGED).fetchone()
        return int(found[0]) if found else 0


_JUDGED = """
    select count(*) from trajectories left join outcomes
        on split_part(injection_id, '/', 1) = trajectory_id
    where source = 'replay' and (trajectories.passed is not null or injection_id is not null)
"""


def _for_loopback(ca: Path) -> Path:
    """A PEM file with a key and a certificate of 127.0.0.1, by the authority in the folder `ca`."""
    entry = authority.store(ca).get_cert("127.0.0.1", [IPAddress(ip_address("127.0.0.1"))])
    key = entry.privatekey.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    path = ca / "loopback.pem"
    path.touch(mode=0o600)
    path.write_bytes(key + entry.cert.to_pem())
    return path


def _model(heard: list[bytes]) -> web.Application:
    """A model server that keeps the bodies it was sent."""

    @web.middleware
    async def keep(request: web.Request, handler: Handler) -> web.StreamResponse:
        heard.append(await request.read())
        return await handler(request)

    app = Provider().app()
    app.middlewares.append(keep)
    return app
