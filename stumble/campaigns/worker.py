"""A worker: a process that records, plays and judges runs of a campaign, one after the other.

It has a performer of its own and, where the campaign practises, a shop, a model server and a warm
agent. Recording and playing both need mitmproxy, of which a process has one at a time: all
recordings come first.
"""

import asyncio
import os
import signal
from collections import OrderedDict
from collections.abc import Coroutine
from contextlib import AsyncExitStack
from dataclasses import dataclass, replace
from multiprocessing.connection import Connection
from pathlib import Path
from tempfile import TemporaryDirectory

from recorder import loop
from scenarios.practice import KEY
from stumble import indexing
from stumble.campaigns.asked import Campaign, Source
from stumble.campaigns.cells import Cell, Layout, layout
from stumble.campaigns.ground import Ground, Practising, own, practising
from stumble.campaigns.ledger import Folder
from stumble.exits import Failed, Missing, Wrong, interrupted
from stumble.forks import branch, plan
from stumble.home import new_id
from stumble.playing import play
from stumble.prices import price
from stumble.recording import record
from stumble.runs import Hosts, Labels, Played
from stumble.theatre import Theatre, theatre
from traces.model import Ended
from traces.store import Store
from traces.story import Story, tell
from traces.tape import Tape, read

KEPT = 8
"""Recordings that a worker remembers."""


@dataclass(frozen=True, slots=True)
class Lay:
    """Find all runs of a source; record it first where no tape is named."""

    source: int
    tape: Path | None


@dataclass(frozen=True, slots=True)
class Play:
    """Make one run."""

    source: int
    tape: Path
    cell: Cell


@dataclass(frozen=True, slots=True)
class Judge:
    """Write the rows of these runs, which are all of one call."""

    ids: tuple[str, ...]


type Order = Lay | Play | Judge


@dataclass(frozen=True, slots=True, kw_only=True)
class Laid:
    """The runs of a source."""

    source: int
    tape: Path
    recording: str
    layout: Layout
    cost_usd: float | None
    """Of recording it, where it was recorded."""
    new: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Ran:
    """A run that is over."""

    id: str
    cell: Cell
    ended: Ended
    fired: int
    why: str | None
    """Why it left the recording, or could not be struck."""
    cost_usd: float | None


@dataclass(frozen=True, slots=True)
class Judged:
    """Runs whose rows are written."""

    ids: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Broke:
    """What was asked for cannot be done."""

    why: str
    kind: type[Wrong] = Failed


type Report = Laid | Ran | Judged | Broke


class Told(Exception):
    """A run was ended by a signal to us."""


def process(
    campaign: Campaign, root: Path, folder: Folder, ca: Path, number: int, orders: Connection
) -> None:
    """The life of a worker process: until it is told no more, or to end."""
    if campaign.practises:
        os.environ.setdefault("OPENAI_API_KEY", KEY)
    try:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, (signal.SIGINT,))
        with folder.working():
            loop.run(_work(campaign, root, folder, ca, number, orders))
    except loop.Interrupted as error:
        os._exit(interrupted(error.number))
    except KeyboardInterrupt:
        os._exit(interrupted(signal.SIGINT))


async def _work(
    campaign: Campaign, root: Path, folder: Folder, ca: Path, number: int, orders: Connection
) -> None:
    with TemporaryDirectory(prefix="stumble-") as scratch:
        async with AsyncExitStack() as stack:
            worker = Worker(campaign, Store(root), folder, ca, number, Path(scratch), stack)
            while await _heard(orders):
                try:
                    order: Order = orders.recv()
                except EOFError:
                    return
                try:
                    report = await _unless_alone(orders, worker.obey(order))
                except Wrong as wrong:
                    report = Broke(wrong.message, type(wrong))
                except ChildProcessError as error:
                    report = Broke(str(error))
                except (FileNotFoundError, PermissionError) as error:
                    report = Broke(f"{error.filename} could not be used: {error.strerror}", Missing)
                except Told:
                    return
                if report is None:
                    return
                orders.send(report)


async def _heard(orders: Connection) -> bool:
    """Wait until there is an order, or nobody left to give one."""
    running, ready = asyncio.get_running_loop(), asyncio.Event()
    running.add_reader(orders.fileno(), ready.set)
    try:
        return await ready.wait()
    finally:
        running.remove_reader(orders.fileno())


async def _unless_alone(
    orders: Connection, doing: Coroutine[None, None, "Report"]
) -> "Report | None":
    """What comes of an order; None, and nothing goes on, where who gave it is gone."""
    work, gone = asyncio.create_task(doing), asyncio.create_task(_heard(orders))
    try:
        await asyncio.wait((work, gone), return_when=asyncio.FIRST_COMPLETED)
        return work.result() if work.done() else None
    finally:
        gone.cancel()
        work.cancel()
        await asyncio.wait((work, gone))


class Worker:
    """Obeys orders; what it opened is closed with `stack`."""

    def __init__(
        self,
        campaign: Campaign,
        store: Store,
        folder: Folder,
        ca: Path,
        number: int,
        scratch: Path,
        stack: AsyncExitStack,
    ) -> None:
        self._campaign, self._store, self._runs, self._ca = campaign, store, folder.runs, ca
        self._experiment = folder.experiment
        self._number, self._scratch, self._stack = number, scratch, stack
        self._practice: Practising | None = None
        self._house: Theatre | None = None
        self._known: OrderedDict[Path, tuple[Tape, Story]] = OrderedDict()

    async def obey(self, order: Order) -> Report:
        """Do what is asked for, and say what came of it."""
        match order:
            case Lay(source=number, tape=tape):
                return await self._lay(number, tape)
            case Play(source=number, tape=tape, cell=cell):
                return await self._play(self._campaign.sources[number], tape, cell)
            case Judge(ids=ids):
                indexing.write(self._store, ids)
                return Judged(ids)

    async def _lay(self, number: int, tape: Path | None) -> Laid:
        source, new = self._campaign.sources[number], tape is None
        tape = tape or await self._record(source)
        recording, told = self._tape(tape)
        world = self._campaign.reset is not None or source.practice is not None
        return Laid(
            source=number,
            tape=tape,
            recording=recording.trajectory.id,
            layout=layout(self._campaign, recording, told, world=world),
            cost_usd=_spent(recording, told) if new else 0.0,
            new=new,
        )

    async def _record(self, source: Source) -> Path:
        ground, id = await self._ground(source), new_id()
        played = await record(
            self._runs / f"{id}.tape",
            ground.launch,
            id=id,
            ca=self._ca,
            scratch=self._scratch,
            hosts=ground.hosts,
            world=ground.world,
            labels=replace(ground.labels, cell="record"),
            tools=source.tools,
            rules=source.rules,
        )
        path = self._whole(played)
        indexing.write(self._store, (id,))
        return path

    async def _play(self, source: Source, tape: Path, cell: Cell) -> Ran:
        recording, told = self._tape(tape)
        ground = await self._ground(source, recording)
        found = branch(recording, cell.fault, told, seed=cell.seed, rep=cell.rep)
        played = await play(
            await self._theatre(ground.hosts),
            recording,
            self._runs,
            plan(
                found,
                cell.condition,
                world=ground.world,
                seed=cell.seed,
                rep=cell.rep,
                pin=self._campaign.pin,
                labels=replace(ground.labels, cell=cell.address, controls=cell.controls),
                workspace=ground.workspace,
            ),
            ground.launch,
        )
        path = self._whole(played)
        return Ran(
            id=played.id,
            cell=cell,
            ended=played.ending.ended,
            fired=played.fired,
            why=next(iter((*played.diverged, *played.missed, *played.no_site)), None),
            cost_usd=_spent(of := read(path), tell(of)),
        )

    def _whole(self, played: Played) -> Path:
        """Put a finished run among the tapes; one that was ended by a signal to us is none."""
        if played.exit.signal is not None:
            played.path.unlink()
            raise Told
        path = self._store.tapes / played.path.name
        return played.path.rename(path)

    def _tape(self, path: Path) -> tuple[Tape, Story]:
        if path not in self._known:
            tape = read(path)
            self._known[path] = tape, tell(tape)
            if len(self._known) > KEPT:
                self._known.popitem(last=False)
        return self._known[path]

    async def _theatre(self, hosts: Hosts) -> Theatre:
        if self._house is None:
            house = theatre(ca=self._ca, scratch=self._scratch, hosts=hosts, out=True)
            self._house = await self._stack.enter_async_context(house)
        return self._house

    async def _ground(self, source: Source, recording: Tape | None = None) -> Ground:
        """Whose agent works, and where."""
        labels = Labels(
            agent=self._campaign.agent,
            scenario=source.scenario,
            campaign=self._campaign.name,
            experiment=self._experiment,
        )
        if source.practice is not None:
            if self._practice is None:
                at = practising(self._campaign, self._scratch)
                self._practice = await self._stack.enter_async_context(at)
            return self._practice.ground(source, source.practice, labels)
        log = self._store.log(f"{self._campaign.name}-{self._number}")
        slot = self._number % self._campaign.instances
        return own(self._campaign, source, recording, self._store, labels, log, slot)


def _spent(tape: Tape, told: Story) -> float | None:
    """US dollars for the live answers of a run; None where the price of one is not known."""
    total = 0.0
    for exchange in tape.exchanges:
        answer = told.answers.get(exchange.seq)
        if answer is None or exchange.answered_by != "live":
            continue
        usd = price(answer.model, answer.usage) if answer.model and answer.usage else None
        if usd is None:
            return None
        total += usd
    return total
