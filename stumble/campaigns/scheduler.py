"""Scheduler of a campaign: hands its tasks to a task runner, and takes each result once.

First every source gets its run matrix (and is recorded, if it has no tape), then all runs are made,
those of one call in a row with the controls first, and their rows are written once the last of them
has ended. A stop signal discards the runs in progress and keeps all others.
"""

import os
import time
from collections import Counter, deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from stumble.campaigns.completed_runs import CampaignFolder, CompletedRuns
from stumble.campaigns.spec import Campaign
from stumble.campaigns.task_runner import TaskRunner
from stumble.campaigns.worker import (
    JudgeTask,
    PrepareDone,
    PrepareTask,
    RunDone,
    RunTask,
    TaskFailed,
    TaskLost,
    TaskReport,
    WorkerTask,
)
from stumble.campaigns.worker_plan import WorkerPlan, open_task_runner
from stumble.errors import HarnessError, UsageError
from traces.store.trace_store import TraceStore

MAX_TRIES = 3
"""How often a task is handed out before the campaign gives up."""
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
    retried: int = 0
    """Tasks of this session that were lost, by a worker or a machine, and handed out again."""
    diverged: list[str] = field(default_factory=list)
    no_site: list[str] = field(default_factory=list)
    agent_seconds: float = 0.0
    """Time of all runs, added up."""
    capped: bool = False
    """Whether `max_cost` or `max_time` was reached before all runs were done."""
    timed_out: bool = False
    """Whether it was `max_time`."""

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


def _describe_task(order: WorkerTask) -> str:
    match order:
        case PrepareTask(source=number):
            return f"source {number + 1} to lay out"
        case RunTask(cell=cell):
            return cell.address
        case JudgeTask(ids=ids):
            return f"{len(ids)} runs to judge"


def _name_task(order: WorkerTask) -> tuple[str, ...]:
    """Return what is equal for one task handed out twice."""
    match order:
        case PrepareTask(source=number):
            return ("source", str(number))
        case RunTask(tape=tape, cell=cell):
            return ("run", str(tape), cell.address)
        case JudgeTask(ids=ids):
            return ("judge", *ids)


class CampaignScheduler:
    """The queue of tasks, and the accounting of their reports."""

    def __init__(
        self,
        campaign: Campaign,
        done: CompletedRuns,
        standing: CampaignProgress,
        tapes: Path,
    ) -> None:
        self._campaign, self._done, self.standing = campaign, done, standing
        self._tapes, self._shard = tapes, campaign.shard
        self._tries: Counter[tuple[str, ...]] = Counter()
        self._ended: set[tuple[str, str]] = set()
        """The runs of this session, by recording and address of the cell."""
        self._laid: set[int] = set()
        self._todo: deque[WorkerTask] = deque()
        self._left: Counter[tuple[str, str]] = Counter()
        """Number of unfinished runs by recording and call."""
        self._over: dict[tuple[str, str], list[str]] = {}
        self._usd: dict[Path, float | None] = {}
        """Expected maximum cost of a run, by the tape of its recording."""
        self._recording: dict[Path, str] = {}
        standing.cost, standing.agent_seconds = done.cost, done.seconds
        for number, source in enumerate(campaign.sources):
            if campaign.shard is None or source.tape or campaign.shard.has_source(number):
                tape = source.tape or done.recordings.get(source.key)
                self._todo.append(PrepareTask(number, tape))
        standing.sources = len(self._todo)

    def next_task(self, reserved: float) -> WorkerTask | None:
        """Return the next task; None if there is none now, or none within the limits."""
        if not self._todo:
            return None
        late = self._is_late(self._todo[0])
        if late or not self._is_affordable(self._todo[0], reserved):
            self.standing.capped, self.standing.timed_out = True, late
            self._todo = deque(each for each in self._todo if not _runs_agent(each))
            return self.next_task(reserved)
        return self._todo.popleft()

    def estimate_price(self, order: WorkerTask) -> float:
        """Return the expected maximum cost of a task in US dollars; 0 if unknown."""
        return (self._usd[order.tape] or 0.0) if isinstance(order, RunTask) else 0.0

    def _is_late(self, order: WorkerTask) -> bool:
        """Whether an agent may no longer be started: how long it will run is unknown."""
        max_time = self._campaign.own_max_time
        return (
            _runs_agent(order)
            and max_time is not None
            and (self.standing.agent_seconds >= max_time)
        )

    def _is_affordable(self, order: WorkerTask, reserved: float) -> bool:
        max_cost = self._campaign.own_max_cost
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
            case TaskLost(why=why):
                self._hand_out_again(order, why)

    def _hand_out_again(self, order: WorkerTask, why: str) -> None:
        if isinstance(order, RunTask) and self._find_key(order) in self._ended:
            return
        self._tries[_name_task(order)] += 1
        if self._tries[_name_task(order)] >= MAX_TRIES:
            raise HarnessError(
                f"{why} while it had {_describe_task(order)}, {MAX_TRIES} times; what is finished "
                "is kept, the same command goes on from there"
            )
        self.standing.retried += 1
        self._todo.appendleft(order)

    def _find_key(self, order: RunTask) -> tuple[str, str]:
        return self._recording[order.tape], order.cell.address

    def _handle_prepared(self, laid: PrepareDone) -> None:
        if laid.source in self._laid:
            return
        self._laid.add(laid.source)
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
        cells = laid.layout.cells
        if self._shard is not None and self._campaign.sources[laid.source].tape is not None:
            cells = self._shard.select_cells(laid.source, cells)
        now.wanted += len(cells)
        for cell in cells:
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
        key = self._find_key(order)
        if key in self._ended:  # made twice: the first result stays
            ran.path.unlink(missing_ok=True)
            return
        self._ended.add(key)
        ran.path.rename(self._tapes / ran.path.name)
        now, cell = self.standing, order.cell
        now.done += 1
        now.ended[ran.ended] += 1
        now.unpriced += ran.cost_usd is None
        now.cost += ran.cost_usd or 0.0
        now.agent_seconds += ran.seconds
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
    workers: WorkerPlan,
    standing: CampaignProgress,
    tell: ProgressListener,
) -> None:
    """Make all remaining runs; `standing` has the progress, even if an error is raised."""
    scheduler = CampaignScheduler(campaign, done, standing, store.tapes)
    with (
        _time_campaign(standing),
        open_task_runner(campaign, store, folder, ca, workers) as runner,
    ):
        run_all_tasks(scheduler, runner, tell)


def run_all_tasks(scheduler: CampaignScheduler, runner: TaskRunner, tell: ProgressListener) -> None:
    """Hand out tasks until none is left."""
    standing = scheduler.standing
    while True:
        while runner.free:
            order = scheduler.next_task(sum(map(scheduler.estimate_price, runner.running)))
            if order is None:
                break
            runner.submit(order)
        if not runner.running:
            return
        standing.running = sum(isinstance(order, RunTask) for order in runner.running)
        for order, report in runner.results(CLOCK_TICK_SECONDS):
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
