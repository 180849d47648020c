"""Who conducts a campaign: hands out one order at a time to each worker, until all is done.

First every source is laid out (and recorded, where it is not yet), then all runs are made, those
of one call after one another with the controls first, and their rows are written as soon as the
last of them is over. A run that is under way when we are told to end is not kept, all others are.
"""

import os
import signal
import time
from collections import Counter, deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from multiprocessing import get_context
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from pathlib import Path

from stumble.campaigns.asked import Campaign
from stumble.campaigns.ledger import Folder, Ledger
from stumble.campaigns.worker import Broke, Judge, Laid, Lay, Order, Play, Ran, Report, process
from stumble.exits import Failed, Wrong
from traces.store import Store

GRACE = 15.0
"""Seconds that a worker gets to close what it opened."""
LEFT = ("diverged", "replay_miss")
"""How runs end that left their recording."""
TICK = 0.2
"""Seconds between two looks at the clock."""


@dataclass(kw_only=True)
class Standing:
    """How far a campaign is."""

    began: float = field(default_factory=time.monotonic)
    sources: int = 0
    laid: int = 0
    wanted: int = 0
    """Runs, as far as they are known."""
    before: int = 0
    """Those that an earlier session made."""
    done: int = 0
    """Those that were made now."""
    recorded: int = 0
    running: int = 0
    cost: float = 0.0
    unpriced: int = 0
    """Runs whose cost is not known."""
    conditions: Counter[str] = field(default_factory=Counter)
    ended: Counter[str] = field(default_factory=Counter)
    fired: int = 0
    diverged: list[str] = field(default_factory=list)
    no_site: list[str] = field(default_factory=list)
    capped: bool = False
    """Whether `max_cost` was reached before all was done."""

    seconds: float = 0.0
    """How long it took, and how much time of processors."""
    cpu: float = 0.0

    @property
    def left(self) -> int:
        """Runs that are neither done nor were before."""
        return self.wanted - self.before - self.done

    @property
    def eta(self) -> float | None:
        """Seconds until all is done; None where nothing is known yet."""
        if not self.done or self.laid < self.sources:
            return None
        return (time.monotonic() - self.began) / self.done * self.left


type Tell = Callable[[Standing], object]


class Crew:
    """Worker processes, each of which has at most one order."""

    def __init__(
        self, campaign: Campaign, store: Store, folder: Folder, ca: Path, jobs: int
    ) -> None:
        self._at: dict[Connection, BaseProcess] = {}
        self.busy: dict[Connection, Order] = {}
        self._shared = (campaign, store.root, folder, ca)
        self._jobs = jobs

    def hire(self) -> None:
        """Start the workers."""
        context = get_context("spawn")
        for number in range(self._jobs):
            ours, theirs = context.Pipe()
            one = context.Process(
                target=process,
                args=(*self._shared, number, theirs),
                name=f"stumble-worker-{number}",
                daemon=True,
            )
            with _blocked():
                one.start()
                self._at[ours] = one
            theirs.close()

    @property
    def idle(self) -> list[Connection]:
        """Those that have nothing to do."""
        return [one for one in self._at if one not in self.busy]

    def give(self, one: Connection, order: Order) -> None:
        """Let a worker do something."""
        self.busy[one] = order
        one.send(order)

    def reports(self, timeout: float) -> Iterator[tuple[Order, Report]]:
        """What workers have to say of their orders; Failed where one has ended."""
        for one in wait(list(self.busy), timeout):
            assert isinstance(one, Connection)
            try:
                report: Report = one.recv()
            except (EOFError, ConnectionResetError):
                self._at[one].join(GRACE)
                code = self._at[one].exitcode
                raise Failed(
                    f"a worker ended with {code} while it had {_named(self.busy[one])}; what is "
                    "finished is kept, the same command goes on from there"
                ) from None
            yield self.busy.pop(one), report

    def end(self) -> None:
        """Have workers close what they opened; one that does not is killed."""
        for one, worker in self._at.items():
            if one in self.busy:
                worker.terminate()
            one.close()
        for worker in self._at.values():
            worker.join(GRACE)
            worker.kill()
            worker.join()


@contextmanager
def _blocked() -> Iterator[None]:
    """A worker begins deaf to Ctrl-C, until it can end in order (see `process`)."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, (signal.SIGINT,))
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _named(order: Order) -> str:
    match order:
        case Lay(source=number):
            return f"source {number + 1} to lay out"
        case Play(cell=cell):
            return cell.address
        case Judge(ids=ids):
            return f"{len(ids)} runs to judge"


@contextmanager
def crew(campaign: Campaign, store: Store, folder: Folder, ca: Path, jobs: int) -> Iterator[Crew]:
    """Workers, which are all ended with the block."""
    found = Crew(campaign, store, folder, ca, jobs)
    try:
        found.hire()
        yield found
    finally:
        found.end()


class Conductor:
    """What is to be done, and what comes of it."""

    def __init__(self, campaign: Campaign, done: Ledger, standing: Standing) -> None:
        self._campaign, self._done, self.standing = campaign, done, standing
        self._todo: deque[Order] = deque()
        self._left: Counter[tuple[str, str]] = Counter()
        """Runs that are not over, by recording and call."""
        self._over: dict[tuple[str, str], list[str]] = {}
        self._usd: dict[Path, float | None] = {}
        """What a run of a recording should cost at most."""
        self._recording: dict[Path, str] = {}
        standing.sources, standing.cost = len(campaign.sources), done.cost
        for number, source in enumerate(campaign.sources):
            tape = source.tape or done.recordings.get(source.key)
            self._todo.append(Lay(number, tape))

    def next(self, reserved: float) -> Order | None:
        """The next order; None where there is none now, or none that can be paid for."""
        if not self._todo:
            return None
        if not self._affordable(self._todo[0], reserved):
            self.standing.capped = True
            self._todo = deque(each for each in self._todo if not _costs(each))
            return self.next(reserved)
        return self._todo.popleft()

    def price(self, order: Order) -> float:
        """What an order should cost at most, as far as is known."""
        return (self._usd[order.tape] or 0.0) if isinstance(order, Play) else 0.0

    def _affordable(self, order: Order, reserved: float) -> bool:
        most = self._campaign.max_cost
        if most is None or not _costs(order):
            return True
        spent = self.standing.cost + reserved
        # What a recording will cost is not known: it is begun while anything is left.
        return spent + self.price(order) <= most if isinstance(order, Play) else spent < most

    def took(self, order: Order, report: Report) -> None:
        """What a report means for the rest; Wrong or Failed where a worker could not do it."""
        match report:
            case Laid():
                self._laid(report)
            case Ran() if isinstance(order, Play):
                self._ran(order, report)
            case Broke(why=why, kind=kind):
                raise kind(why)

    def _laid(self, laid: Laid) -> None:
        now, estimate = self.standing, laid.layout.estimate
        now.laid += 1
        now.recorded += laid.new
        now.cost += laid.cost_usd or 0.0
        if self._campaign.max_cost is not None and estimate.unpriced:
            raise Wrong(
                f"no price is known of {estimate.unpriced[0]}, so max_cost cannot be kept; "
                "leave it out"
            )
        self._usd[laid.tape], self._recording[laid.tape] = estimate.usd, laid.recording
        name = self._campaign.sources[laid.source].name
        now.no_site += [f"{name}: {why}" for why in laid.layout.no_site]
        now.wanted += len(laid.layout.cells)
        for cell in laid.layout.cells:
            now.conditions[cell.condition] += 1
            ended = self._done.runs.get((laid.recording, cell.address))
            if ended is not None:
                now.before += 1
                if ended in LEFT:
                    now.diverged.append(f"{cell.address}: in an earlier session")
                continue
            self._left[laid.recording, cell.call] += 1
            self._todo.append(Play(laid.source, laid.tape, cell))

    def _ran(self, order: Play, ran: Ran) -> None:
        now, cell = self.standing, order.cell
        now.done += 1
        now.ended[ran.ended] += 1
        now.unpriced += ran.cost_usd is None
        now.cost += ran.cost_usd or 0.0
        if cell.condition == "fault":
            now.fired += ran.fired > 0
        if ran.ended in LEFT:
            now.diverged.append(f"{cell.address}: {ran.why}")
        group = self._recording[order.tape], cell.call
        self._over.setdefault(group, []).append(ran.id)
        self._left[group] -= 1
        if not self._left[group]:
            self._todo.append(Judge(tuple(self._over.pop(group))))


def _costs(order: Order) -> bool:
    """Whether it lets an agent work."""
    return isinstance(order, Play) or (isinstance(order, Lay) and order.tape is None)


def conduct(
    campaign: Campaign,
    store: Store,
    folder: Folder,
    done: Ledger,
    *,
    ca: Path,
    jobs: int,
    standing: Standing,
    tell: Tell,
) -> None:
    """Do all that is wanted and not done; `standing` says how far it came, whatever happens."""
    conductor = Conductor(campaign, done, standing)
    with _timed(standing), crew(campaign, store, folder, ca, jobs) as workers:
        while True:
            for one in workers.idle:
                reserved = sum(conductor.price(order) for order in workers.busy.values())
                order = conductor.next(reserved)
                if order is None:
                    break
                workers.give(one, order)
            if not workers.busy:
                return
            standing.running = sum(isinstance(order, Play) for order in workers.busy.values())
            for order, report in workers.reports(TICK):
                conductor.took(order, report)
            tell(standing)


@contextmanager
def _timed(standing: Standing) -> Iterator[None]:
    """Take the time of the block, with that of processors, for all that ended in it."""
    before = os.times()
    try:
        yield
    finally:
        now = os.times()
        standing.seconds = now.elapsed - before.elapsed
        standing.cpu = sum(now[:4]) - sum(before[:4])
