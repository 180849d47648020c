"""A worker: a process that records, replays and judges runs of a campaign, one after the other.

Each worker has a replay server and, for practice tasks, a tool server, a model server and a warm
agent. Recording and replaying both need mitmproxy, which runs once per process: all recordings come
first.
"""

import asyncio
import os
import signal
from collections import OrderedDict
from collections.abc import Coroutine
from contextlib import AsyncExitStack
from copy import replace
from functools import partial
from multiprocessing.connection import Connection
from pathlib import Path
from tempfile import TemporaryDirectory

from msgspec import Struct

from recorder import ending_signals, event_loop
from replay.live_prefix import AnswerControls
from scenarios.practice import PRACTICE_KEY
from scenarios.practice.pipeline_model import serve_recorded_model
from stumble.campaigns.completed_runs import CampaignFolder
from stumble.campaigns.environment import (
    PracticeEnvironment,
    build_own_environment,
    find_own_workspace,
    open_practice_environment,
)
from stumble.campaigns.run_matrix import RunCell, RunMatrix, build_run_matrix
from stumble.campaigns.spec import Campaign, TraceSource
from stumble.errors import CommandNotFound, HarnessError, UsageError, signal_to_exit_code
from stumble.llm.prices import compute_token_cost
from stumble.runs.environment.workspaces import snapshot_current_folder
from stumble.runs.fork import (
    find_fork_point,
    label_other_model,
    plan_fork_run,
)
from stumble.runs.prefix_uses import RecordedUses
from stumble.runs.record import record_run
from stumble.runs.replay import run_until_it_follows
from stumble.runs.session import ReplaySession, open_replay_session
from stumble.runs.types import RecordPlan, RunEnvironment, RunLabels, RunResult
from stumble.store.tape_rows import write_run_rows
from stumble.user_data.paths import new_trajectory_id
from traces.conversation.derived_steps import DerivedSteps, derive_tape_steps
from traces.model import EndReason
from traces.store.trace_store import TraceStore
from traces.tape.reader import Tape, read_tape

CACHED_RECORDINGS = 8
"""Recordings that a worker keeps parsed."""


class PrepareTask(Struct, frozen=True):
    """Build the run matrix of a source; record it first if it has no tape."""

    source: int
    tape: Path | None


class RunTask(Struct, frozen=True):
    """Make one run."""

    source: int
    tape: Path
    cell: RunCell


class JudgeTask(Struct, frozen=True):
    """Write the rows of these runs, all of one call."""

    ids: tuple[str, ...]


type WorkerTask = PrepareTask | RunTask | JudgeTask


class PrepareDone(Struct, frozen=True, kw_only=True):
    """The run matrix of a source."""

    source: int
    tape: Path
    recording: str
    layout: RunMatrix
    cost_usd: float | None
    """Cost of the recording in US dollars; 0 if it existed, None if unknown."""
    new: bool


class RunDone(Struct, frozen=True, kw_only=True):
    """A run that has ended."""

    id: str
    path: Path
    """Its sealed tape, not yet among those of the store."""
    cell: RunCell
    ended: EndReason
    fired: int
    why: str | None
    """Why it left the recording, or why nothing was injected."""
    cost_usd: float | None
    seconds: float = 0.0
    """From the start of its agent to the end."""


class JudgeDone(Struct, frozen=True):
    """Runs whose rows are written."""

    ids: tuple[str, ...]


class TaskFailed(Struct, frozen=True):
    """A task that failed, and the error to raise."""

    why: str
    kind: type[UsageError] = HarnessError


class TaskLost(Struct, frozen=True):
    """A task that nobody does any more, as its worker or machine has gone."""

    why: str


type TaskReport = PrepareDone | RunDone | JudgeDone | TaskFailed | TaskLost


class RunInterrupted(Exception):
    """A run was ended by a signal to this process."""


def run_worker_process(
    campaign: Campaign,
    root: Path,
    folder: CampaignFolder,
    ca: Path,
    number: int,
    orders: Connection,
) -> None:
    """Serve tasks until the connection closes or a signal arrives."""
    if campaign.uses_practice_world:
        os.environ.setdefault("OPENAI_API_KEY", PRACTICE_KEY)
    try:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, (signal.SIGINT,))
        with folder.lock_worker():
            event_loop.run_event_loop(_serve_tasks(campaign, root, folder, ca, number, orders))
    except ending_signals.SignalInterrupt as error:
        os._exit(signal_to_exit_code(error.number))
    except KeyboardInterrupt:
        os._exit(signal_to_exit_code(signal.SIGINT))


async def _serve_tasks(
    campaign: Campaign,
    root: Path,
    folder: CampaignFolder,
    ca: Path,
    number: int,
    orders: Connection,
) -> None:
    with TemporaryDirectory(prefix="stumble-") as scratch:
        async with AsyncExitStack() as stack:
            worker = CampaignWorker(
                campaign, TraceStore(root), folder, ca, number, Path(scratch), stack
            )
            while await _wait_for_task(orders):
                try:
                    order: WorkerTask = orders.recv()
                except EOFError:
                    return
                try:
                    report = await _run_unless_orphaned(orders, worker.execute_task(order))
                except UsageError as wrong:
                    report = TaskFailed(wrong.message, type(wrong))
                except ChildProcessError as error:
                    report = TaskFailed(str(error))
                except (FileNotFoundError, PermissionError) as error:
                    report = TaskFailed(
                        f"{error.filename} could not be used: {error.strerror}", CommandNotFound
                    )
                except RunInterrupted:
                    return
                if report is None:
                    return
                orders.send(report)


async def _wait_for_task(orders: Connection) -> bool:
    """Wait until there is a task, or the connection is closed."""
    loop, ready = asyncio.get_running_loop(), asyncio.Event()
    loop.add_reader(orders.fileno(), ready.set)
    try:
        return await ready.wait()
    finally:
        loop.remove_reader(orders.fileno())


async def _run_unless_orphaned(
    orders: Connection, doing: Coroutine[None, None, "TaskReport"]
) -> "TaskReport | None":
    """Return the report of a task; None, with the task cancelled, if the scheduler is gone."""
    work, orphaned = asyncio.create_task(doing), asyncio.create_task(_wait_for_task(orders))
    try:
        await asyncio.wait((work, orphaned), return_when=asyncio.FIRST_COMPLETED)
        return work.result() if work.done() else None
    finally:
        orphaned.cancel()
        work.cancel()
        await asyncio.wait((work, orphaned))


class CampaignWorker:
    """Executes tasks; its resources are closed with `stack`."""

    def __init__(
        self,
        campaign: Campaign,
        store: TraceStore,
        folder: CampaignFolder,
        ca: Path,
        number: int,
        scratch: Path,
        stack: AsyncExitStack,
    ) -> None:
        self._campaign, self._store, self._runs, self._ca = campaign, store, folder.runs, ca
        self._experiment = folder.experiment
        self._number, self._scratch, self._stack = number, scratch, stack
        self._practice: PracticeEnvironment | None = None
        self._house: ReplaySession | None = None
        self._known: OrderedDict[Path, tuple[Tape, DerivedSteps, AnswerControls]] = OrderedDict()

    async def execute_task(self, order: WorkerTask) -> TaskReport:
        """Execute a task and return its report."""
        match order:
            case PrepareTask(source=number, tape=tape):
                return await self._prepare_source(number, tape)
            case RunTask(source=number, tape=tape, cell=cell):
                return await self._run_cell(self._campaign.sources[number], tape, cell)
            case JudgeTask(ids=ids):
                write_run_rows(self._store, ids)
                return JudgeDone(ids)

    async def _prepare_source(self, number: int, tape: Path | None) -> PrepareDone:
        source, new = self._campaign.sources[number], tape is None
        tape = tape or await self._record(source)
        recording, steps, _ = self._load_recording(tape)
        campaign = self._campaign
        world = bool(campaign.reset or campaign.observed or source.practice or recording.marks)
        return PrepareDone(
            source=number,
            tape=tape,
            recording=recording.trajectory.id,
            layout=build_run_matrix(self._campaign, recording, steps, world=world),
            cost_usd=_price_live_answers(recording, steps) if new else 0.0,
            new=new,
        )

    async def _record(self, source: TraceSource) -> Path:
        environment, id = await self._build_environment(source), new_trajectory_id()
        is_user_agent = bool(source.command)
        result = await record_run(
            self._runs / f"{id}.tape",
            environment.launch(id),
            RecordPlan(
                hosts=environment.hosts,
                world=environment.world,
                labels=replace(environment.labels, cell="record"),
                tools=source.tools,
                rules=source.rules,
                workspace=Path.cwd() if is_user_agent else None,
                snapshot=snapshot_current_folder(self._store) if is_user_agent else None,
                store=self._store,
                trust=environment.trust,
            ),
            id=id,
            ca=self._ca,
            scratch=self._scratch,
        )
        path = self._keep_finished_run(result)
        write_run_rows(self._store, (id,))
        return path

    async def _run_cell(self, source: TraceSource, tape: Path, cell: RunCell) -> RunDone:
        recording, steps, controls = self._load_recording(tape)
        environment = await self._build_environment(source, recording)
        point = find_fork_point(recording, cell.fault, steps, seed=cell.seed, rep=cell.rep)
        labels = replace(environment.labels, cell=cell.address, controls=cell.controls)
        result = await run_until_it_follows(
            await self._open_session(recording, environment),
            recording,
            self._runs,
            replace(
                plan_fork_run(
                    point,
                    cell.condition,
                    world=environment.world,
                    seed=cell.seed,
                    rep=cell.rep,
                    pin=self._campaign.pin,
                    labels=label_other_model(labels, cell.model),
                    workspace=environment.workspace,
                    controls=controls,
                ),
                other_model=cell.model,
                observed=self._campaign.observed,
            ),
            partial(environment.launch, cell.address),
        )
        path = _require_finished_run(result)
        return RunDone(
            id=result.id,
            path=path,
            cell=cell,
            ended=result.ending.ended,
            fired=result.fired,
            why=next(iter((*result.diverged, *result.missed, *result.no_site)), None),
            cost_usd=_price_live_answers(finished := read_tape(path), derive_tape_steps(finished)),
            seconds=result.ending.at,
        )

    def _keep_finished_run(self, played: RunResult) -> Path:
        """Move a finished run to the tapes; discard it if a signal to this process ended it."""
        finished = _require_finished_run(played)
        return finished.rename(self._store.tapes / finished.name)

    def _load_recording(self, path: Path) -> tuple[Tape, DerivedSteps, AnswerControls]:
        if path not in self._known:
            tape = read_tape(path)
            steps = derive_tape_steps(tape)
            controls = AnswerControls(RecordedUses(tape, steps))
            self._known[path] = tape, steps, controls
            if len(self._known) > CACHED_RECORDINGS:
                self._known.popitem(last=False)
        return self._known[path]

    async def _open_session(self, recording: Tape, environment: RunEnvironment) -> ReplaySession:
        if self._house is None:
            serving = serve_recorded_model(recording, environment.hosts)
            served = await self._stack.enter_async_context(serving)
            opening = open_replay_session(
                ca=self._ca,
                scratch=self._scratch,
                hosts=served,
                out=True,
                trust=environment.trust,
            )
            self._house = await self._stack.enter_async_context(opening)
        return self._house

    async def _build_environment(
        self, source: TraceSource, recording: Tape | None = None
    ) -> RunEnvironment:
        """Build the environment of a run."""
        labels = RunLabels(
            agent=self._campaign.agent,
            scenario=source.scenario,
            campaign=self._campaign.name,
            experiment=self._experiment,
            seal=self._campaign.seal,
        )
        if source.practice is not None:
            if self._practice is None:
                opening = open_practice_environment(self._campaign, self._scratch)
                self._practice = await self._stack.enter_async_context(opening)
            environment = self._practice.make_environment(source, source.practice, labels)
            return replace(
                environment,
                workspace=find_own_workspace(self._campaign, source, recording, self._store),
            )
        log = self._store.log_path(f"{self._campaign.name}-{self._number}")
        slot = self._number % self._campaign.instances
        return build_own_environment(
            self._campaign, source, recording, self._store, labels, log, slot
        )


def _require_finished_run(played: RunResult) -> Path:
    """Return the tape of a run; discard it if a signal to this process ended the run."""
    if played.exit.signal is not None:
        played.path.unlink()
        raise RunInterrupted
    return played.path


def _price_live_answers(tape: Tape, derived_steps: DerivedSteps) -> float | None:
    """Return US dollars for the live answers of a run; None if the price of one is unknown."""
    total = 0.0
    for exchange in tape.exchanges:
        answer = derived_steps.answers.get(exchange.seq)
        if answer is None or exchange.answered_by != "live":
            continue
        usd = (
            compute_token_cost(answer.model, answer.usage)
            if answer.model and answer.usage
            else None
        )
        if usd is None:
            return None
        total += usd
    return total
