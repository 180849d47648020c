"""Scheduler of a campaign: sends one task at a time to each worker process.

First every source gets its run matrix (and is recorded, if it has no tape), then all runs are made,
those of one call in a row with the controls first, and their rows are written once the last of them
has ended. A stop signal discards the runs in progress and keeps all others.
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

from stumble.campaigns.completed_runs import CampaignFolder, CompletedRuns
from stumble.campaigns.spec import Campaign
from stumble.campaigns.worker import (
    JudgeTask,
    PrepareDone,
    PrepareTask,
    RunDone,
    RunTask,
    TaskFailed,
    TaskReport,
    WorkerTask,
    run_worker_process,
)
from stumble.cli.exit_codes import HarnessError, UsageError
from traces.store.trace_store import TraceStore

WORKER_CLOSE_SECONDS = 15.0
"""Seconds that a worker gets to close its resources."""
OFF_RECORDING_ENDINGS = ("diverged", "replay_miss")
"""End reasons of runs that left their recording."""
CLOCK_TICK_SECONDS = 0.2
"""Longest wait for a report, in seconds."""


@dataclass(kw_only=True)
class CampaignProgress:
    """The progress of a campaign."""

    began: float = field(default_factory=time.monotonic)
    sources: int = 0
    laid: int = 0
    wanted: int = 0
    """Runs known so far."""
    before: int = 0
    """Runs of earlier sessions."""
    done: int = 0
    """Runs of this session."""
    recorded: int = 0
    running: int = 0
    cost: float = 0.0
    unpriced: int = 0
    """Runs of unknown cost."""
    conditions: Counter[str] = field(default_factory=Counter)
    ended: Counter[str] = field(default_factory=Counter)
    fired: int = 0
    diverged: list[str] = field(default_factory=list)
    no_site: list[str] = field(default_factory=list)
    capped: bool = False
    """Whether `max_cost` was reached before all runs were done."""

    seconds: float = 0.0
    """Elapsed time of this session."""
    cpu: float = 0.0
    """Processor seconds of this session and its workers."""

    @property
    def runs_left(self) -> int:
        """Runs that are not done."""
        return self.wanted - self.before - self.done

    @property
    def eta(self) -> float | None:
        """Seconds until all runs are done; None if unknown."""
        if not self.done or self.laid < self.sources:
            return None
        return (time.monotonic() - self.began) / self.done * self.runs_left


type ProgressListener = Callable[[CampaignProgress], object]


class WorkerPool:
    """Worker processes, each with at most one task."""

    def __init__(
        self, campaign: Campaign, store: TraceStore, folder: CampaignFolder, ca: Path, jobs: int
    ) -> None:
        self._at: dict[Connection, BaseProcess] = {}
        self.busy: dict[Connection, WorkerTask] = {}
        self._shared = (campaign, store.root, folder, ca)
        self._jobs = jobs

    def start_workers(self) -> None:
        """Start the workers."""
        context = get_context("spawn")
        for number in range(self._jobs):
            parent_end, worker_end = context.Pipe()
            worker = context.Process(
                target=run_worker_process,
                args=(*self._shared, number, worker_end),
                name=f"stumble-worker-{number}",
                daemon=True,
            )
            with _block_interrupt():
                worker.start()
                self._at[parent_end] = worker
            worker_end.close()

    @property
    def idle_workers(self) -> list[Connection]:
        """Connections of the workers without a task."""
        return [connection for connection in self._at if connection not in self.busy]

    def send_task(self, one: Connection, order: WorkerTask) -> None:
        """Send a task to a worker."""
        self.busy[one] = order
        one.send(order)

    def receive_reports(self, timeout: float) -> Iterator[tuple[WorkerTask, TaskReport]]:
        """Yield tasks with their reports. Raises HarnessError if a worker has exited."""
        for connection in wait(list(self.busy), timeout):
            assert isinstance(connection, Connection)
            try:
                report: TaskReport = connection.recv()
            except (EOFError, ConnectionResetError):
                self._at[connection].join(WORKER_CLOSE_SECONDS)
                code = self._at[connection].exitcode
                raise HarnessError(
                    f"a worker ended with {code} while it had "
                    f"{_describe_task(self.busy[connection])}; what is "
                    "finished is kept, the same command goes on from there"
                ) from None
            yield self.busy.pop(connection), report

    def stop_workers(self) -> None:
        """Let workers close their resources; kill one that does not end in time."""
        for connection, worker in self._at.items():
            if connection in self.busy:
                worker.terminate()
            connection.close()
        for worker in self._at.values():
            worker.join(WORKER_CLOSE_SECONDS)
            worker.kill()
            worker.join()


@contextmanager
def _block_interrupt() -> Iterator[None]:
    """Start a worker with SIGINT blocked, until it can handle it (see `run_worker_process`)."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, (signal.SIGINT,))
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _describe_task(order: WorkerTask) -> str:
    match order:
        case PrepareTask(source=number):
            return f"source {number + 1} to lay out"
        case RunTask(cell=cell):
            return cell.address
        case JudgeTask(ids=ids):
            return f"{len(ids)} runs to judge"


@contextmanager
def open_worker_pool(
    campaign: Campaign, store: TraceStore, folder: CampaignFolder, ca: Path, jobs: int
) -> Iterator[WorkerPool]:
    """Start the workers, and stop them all after the block."""
    pool = WorkerPool(campaign, store, folder, ca, jobs)
    try:
        pool.start_workers()
        yield pool
    finally:
        pool.stop_workers()


class CampaignScheduler:
    """The queue of tasks, and the accounting of their reports."""

    def __init__(self, campaign: Campaign, done: CompletedRuns, standing: CampaignProgress) -> None:
        self._campaign, self._done, self.standing = campaign, done, standing
        self._todo: deque[WorkerTask] = deque()
        self._left: Counter[tuple[str, str]] = Counter()
        """Number of unfinished runs by recording and call."""
        self._over: dict[tuple[str, str], list[str]] = {}
        self._usd: dict[Path, float | None] = {}
        """Expected maximum cost of a run, by the tape of its recording."""
        self._recording: dict[Path, str] = {}
        standing.sources, standing.cost = len(campaign.sources), done.cost
        for number, source in enumerate(campaign.sources):
            tape = source.tape or done.recordings.get(source.key)
            self._todo.append(PrepareTask(number, tape))

    def next_task(self, reserved: float) -> WorkerTask | None:
        """Return the next task; None if there is none now, or none within `max_cost`."""
        if not self._todo:
            return None
        if not self._is_affordable(self._todo[0], reserved):
            self.standing.capped = True
            self._todo = deque(each for each in self._todo if not _runs_agent(each))
            return self.next_task(reserved)
        return self._todo.popleft()

    def estimate_price(self, order: WorkerTask) -> float:
        """Return the expected maximum cost of a task in US dollars; 0 if unknown."""
        return (self._usd[order.tape] or 0.0) if isinstance(order, RunTask) else 0.0

    def _is_affordable(self, order: WorkerTask, reserved: float) -> bool:
        max_cost = self._campaign.max_cost
        if max_cost is None or not _runs_agent(order):
            return True
        spent = self.standing.cost + reserved
        # The cost of a recording is unknown: it is started while any money is left.
        return (
            spent + self.estimate_price(order) <= max_cost
            if isinstance(order, RunTask)
            else spent < max_cost
        )

    def handle_report(self, order: WorkerTask, report: TaskReport) -> None:
        """Update the queue and progress. Raises UsageError or HarnessError if the task failed."""
        match report:
            case PrepareDone():
                self._handle_prepared(report)
            case RunDone() if isinstance(order, RunTask):
                self._handle_run(order, report)
            case TaskFailed(why=why, kind=kind):
                raise kind(why)

    def _handle_prepared(self, laid: PrepareDone) -> None:
        now, estimate = self.standing, laid.layout.estimate
        now.laid += 1
        now.recorded += laid.new
        now.cost += laid.cost_usd or 0.0
        if self._campaign.max_cost is not None and estimate.unpriced:
            raise UsageError(
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
                if ended in OFF_RECORDING_ENDINGS:
                    now.diverged.append(f"{cell.address}: in an earlier session")
                continue
            self._left[laid.recording, cell.call] += 1
            self._todo.append(RunTask(laid.source, laid.tape, cell))

    def _handle_run(self, order: RunTask, ran: RunDone) -> None:
        now, cell = self.standing, order.cell
        now.done += 1
        now.ended[ran.ended] += 1
        now.unpriced += ran.cost_usd is None
        now.cost += ran.cost_usd or 0.0
        if cell.condition == "fault":
            now.fired += ran.fired > 0
        if ran.ended in OFF_RECORDING_ENDINGS:
            now.diverged.append(f"{cell.address}: {ran.why}")
        group = self._recording[order.tape], cell.call
        self._over.setdefault(group, []).append(ran.id)
        self._left[group] -= 1
        if not self._left[group]:
            self._todo.append(JudgeTask(tuple(self._over.pop(group))))


def _runs_agent(order: WorkerTask) -> bool:
    """Whether a task starts an agent."""
    return isinstance(order, RunTask) or (isinstance(order, PrepareTask) and order.tape is None)


def schedule_campaign(
    campaign: Campaign,
    store: TraceStore,
    folder: CampaignFolder,
    done: CompletedRuns,
    *,
    ca: Path,
    jobs: int,
    standing: CampaignProgress,
    tell: ProgressListener,
) -> None:
    """Make all remaining runs; `standing` has the progress, even if an error is raised."""
    scheduler = CampaignScheduler(campaign, done, standing)
    with _time_campaign(standing), open_worker_pool(campaign, store, folder, ca, jobs) as workers:
        while True:
            for connection in workers.idle_workers:
                reserved = sum(scheduler.estimate_price(order) for order in workers.busy.values())
                order = scheduler.next_task(reserved)
                if order is None:
                    break
                workers.send_task(connection, order)
            if not workers.busy:
                return
            standing.running = sum(isinstance(order, RunTask) for order in workers.busy.values())
            for order, report in workers.receive_reports(CLOCK_TICK_SECONDS):
                scheduler.handle_report(order, report)
            tell(standing)


@contextmanager
def _time_campaign(standing: CampaignProgress) -> Iterator[None]:
    """Measure elapsed and processor time of the block, with child processes that ended in it."""
    before = os.times()
    try:
        yield
    finally:
        now = os.times()
        standing.seconds = now.elapsed - before.elapsed
        standing.cpu = sum(now[:4]) - sum(before[:4])
