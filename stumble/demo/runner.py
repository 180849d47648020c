"""The demo in the practice world: 12 tasks, 3 skills, every fault with its controls.

Two worker processes, each with its own world, model server, warm agent and replay server. A worker
records its share of tasks, replays each strictly, and forks each at one call: three clean
twins, one sham, five faults. Only the choice of faults is special to the demo; its runs, tapes and
rows are like any others.
"""

import json
import os
from collections.abc import AsyncIterator, Callable, Sequence
from concurrent.futures import ProcessPoolExecutor, wait
from contextlib import asynccontextmanager
from copy import replace
from multiprocessing import active_children, get_context
from multiprocessing.process import BaseProcess
from multiprocessing.queues import Queue
from pathlib import Path
from queue import Empty
from tempfile import TemporaryDirectory

from msgspec import Struct

from recorder import ending_signals, event_loop
from scenarios.practice import PRACTICE_KEY, world
from scenarios.practice.served_world import serve_practice_world
from scenarios.practice.tasks.registry import ORDER_TASKS
from scenarios.practice.world import PracticeWorld
from stumble.errors import signal_to_exit_code
from stumble.runs.fork import ForkPoint, find_fork_point, plan_fork_run
from stumble.runs.launcher import WarmAgentProcess, WarmLauncher, start_warm_agent
from stumble.runs.record import record_run
from stumble.runs.replay import run_replay
from stumble.runs.session import ReplaySession, open_replay_session
from stumble.runs.types import Hosts, RecordPlan, ReplayPlan, RunLabels, RunResult
from stumble.store.tape_rows import write_batch
from stumble.user_data.paths import new_experiment_id, new_trajectory_id
from traces.conversation.derived_steps import DerivedSteps, derive_tape_steps
from traces.model import Condition, Fault
from traces.store.trace_store import TraceStore
from traces.tape.reader import Tape, read_tape

SKILLS = ("naive", "retries", "verifies")
TWINS = 3
WORKERS = 2
WORKER_EXIT_GRACE = 15.0
"""Seconds that a worker gets to close its resources."""


def build_demo_faults(field: str) -> tuple[Fault, ...]:
    """Return the five faults of the demo; `field` is a number that decides the end state."""
    return (
        Fault(name="http_status", params={"code": 503}),
        Fault(name="delay", params={"ms": 250}),
        Fault(name="truncate", params={"keep": 0.6}),
        Fault(name="digit", params={"field": field}),
        Fault(name="digit", params={"field": field}, persist="same_args"),
    )


RUNS_PER_JOB = 1 + 1 + TWINS + 1 + len(build_demo_faults(""))


class DemoJob(Struct, frozen=True):
    """One task with a model of one skill."""

    task: str
    skill: str


def list_demo_jobs() -> tuple[DemoJob, ...]:
    """Return all tasks with all skills."""
    return tuple(DemoJob(task, skill) for task in ORDER_TASKS for skill in SKILLS)


class DemoWorker:
    """Runs jobs one after the other in a world of its own."""

    def __init__(
        self,
        store: TraceStore,
        folder: Path,
        agent: WarmAgentProcess,
        hosts: Hosts,
        ran: Callable[[], None],
    ) -> None:
        self._store, self._folder, self._agent = store, folder, agent
        self._hosts, self._ran = hosts, ran
        self._tapes = store.tapes

    def make_world(self, job: DemoJob) -> PracticeWorld:
        """Return the order book with the task of a job."""
        return PracticeWorld(self._folder / "shop.db", job.task, self._hosts)

    def make_launcher(self, job: DemoJob) -> WarmLauncher:
        """Return the launcher of the warm agent with the task and skill of a job."""
        argv = (job.task, "--model", f"practice/{job.skill}")
        return WarmLauncher(
            process=self._agent,
            command=("python", "-m", "scenarios.practice.agents.openai_agent", *argv),
            argv=argv,
            output=self._folder / "agent.log",
        )

    def make_labels(self, job: DemoJob) -> RunLabels:
        """Return the labels of the runs of a job."""
        return RunLabels(
            agent="practice", model=f"practice/{job.skill}", scenario="demo", task=job.task
        )

    async def record(self, job: DemoJob, ca: Path) -> Tape:
        """Record a job against the live world."""
        id = new_trajectory_id()
        path = self._tapes / f"{id}.tape"
        await record_run(
            path,
            self.make_launcher(job),
            RecordPlan(hosts=self._hosts, world=self.make_world(job), labels=self.make_labels(job)),
            id=id,
            ca=ca,
            scratch=self._folder,
        )
        self._ran()
        return read_tape(path)

    async def replay(self, session: ReplaySession, job: DemoJob, recording: Tape) -> RunResult:
        """Replay a job, every answer from the tape."""
        plan = ReplayPlan(labels=self.make_labels(job))
        return await self._play_run(session, recording, plan, job)

    async def fork(self, session: ReplaySession, job: DemoJob, recording: Tape) -> list[RunResult]:
        """Make clean twins, a sham and all faults at one call of the recording."""
        steps = derive_tape_steps(recording)
        tool, nth, field = select_demo_call(job, steps)
        placed = [
            replace(fault, where={"tool": tool}, nth=nth, at="http")
            for fault in build_demo_faults(field)
        ]
        conditions: list[tuple[Condition, ForkPoint, int]] = []
        first = find_fork_point(recording, placed[0], steps)
        conditions += [("clean", first, rep) for rep in range(TWINS)]
        conditions += [("sham", first, 0)]
        conditions += [("fault", find_fork_point(recording, fault, steps), 0) for fault in placed]
        results = []
        labels = replace(self.make_labels(job), experiment=new_experiment_id())
        for condition, point, rep in conditions:
            each = plan_fork_run(
                point, condition, world=self.make_world(job), seed=7, rep=rep, labels=labels
            )
            results.append(await self._play_run(session, recording, each, job))
        return results

    async def _play_run(
        self, session: ReplaySession, recording: Tape, plan: ReplayPlan, job: DemoJob
    ) -> RunResult:
        result = await run_replay(session, recording, self._tapes, plan, self.make_launcher(job))
        self._ran()
        return result

    def index(self, job: DemoJob, recording: Tape, runs: Sequence[RunResult]) -> None:
        """Write the rows of all runs of a job as one segment."""
        tapes = [recording, *(read_tape(run.path) for run in runs)]
        write_batch(self._store, f"{job.task}-{job.skill}-runs", tapes)


def select_demo_call(job: DemoJob, derived_steps: DerivedSteps) -> tuple[str, int, str]:
    """Return tool, nth and field of a call whose number decides the end state.

    Raises LookupError if there is no such call.
    """
    task = ORDER_TASKS[job.task]
    candidates = list(zip(task.sites, task.decisive_fields, strict=True))
    turn = list(ORDER_TASKS).index(job.task) % len(candidates)
    for (tool, nth), field in candidates[turn:] + candidates[:turn]:
        uses = [use for use in derived_steps.tool_uses if use.tool == tool]
        if field and len(uses) >= nth and _has_number_field(uses[nth - 1].result, field):
            return tool, nth, field
    raise LookupError(f"{job.task} has no number to change")


def _has_number_field(result: str | None, field: str) -> bool:
    value = json.loads(result or "{}").get(field)
    digits = str(value).replace(".", "").strip("0")
    return isinstance(value, int | float) and len(digits) >= 3


@asynccontextmanager
async def open_demo_worker(
    store: TraceStore, folder: Path, ran: Callable[[], None]
) -> AsyncIterator[DemoWorker]:
    """Start a worker with its servers and its warm agent; stop all after the block."""
    book = folder / "shop.db"
    world.set_up_order_book(book, next(iter(ORDER_TASKS.values())))
    async with (
        serve_practice_world(book) as hosts,
        start_warm_agent("scenarios.practice.agents.openai_agent") as agent,
    ):
        yield DemoWorker(store, folder, agent, hosts, ran)


async def run_demo_share(
    share: Sequence[DemoJob], root: Path, ca: Path, ran: Callable[[], None]
) -> list[str]:
    """Do a share of the jobs; return the divergences, of which there should be none."""
    store, divergences = TraceStore(root), []
    with TemporaryDirectory(prefix="stumble-") as scratch:
        folder = Path(scratch)
        async with open_demo_worker(store, folder, ran) as worker:
            tapes = {job: await worker.record(job, ca) for job in share}
            async with open_replay_session(
                ca=ca, scratch=folder, hosts=worker._hosts, out=True
            ) as session:
                for job, recording in tapes.items():
                    runs = [await worker.replay(session, job, recording)]
                    runs += await worker.fork(session, job, recording)
                    divergences += [why for run in runs for why in (*run.diverged, *run.missed)]
                    worker.index(job, recording, runs)
    return divergences


_progress_queue: "Queue[int] | None" = None


def _set_progress_queue(told: "Queue[int]") -> None:
    """Set the progress queue of a worker process, before its first job."""
    global _progress_queue
    _progress_queue = told


def _run_demo_process(share: Sequence[DemoJob], root: Path, ca: Path) -> list[str]:
    assert _progress_queue is not None
    queue = _progress_queue
    os.environ["OPENAI_API_KEY"] = PRACTICE_KEY
    try:
        return event_loop.run_event_loop(run_demo_share(share, root, ca, lambda: queue.put(1)))
    except ending_signals.SignalInterrupt as error:
        os._exit(signal_to_exit_code(error.number))  # all is closed; a pool worker would continue


def run_demo(root: Path, ca: Path, ran: Callable[[int], object]) -> list[str]:
    """Run all jobs on two processes; return the divergences. Raises the errors of workers."""
    context, todo = get_context("spawn"), list_demo_jobs()
    queue: Queue[int] = context.Queue()
    with ProcessPoolExecutor(
        WORKERS, mp_context=context, initializer=_set_progress_queue, initargs=(queue,)
    ) as pool:
        futures = [
            pool.submit(_run_demo_process, todo[i::WORKERS], root, ca) for i in range(WORKERS)
        ]
        waiting = set(futures)
        try:
            while waiting:
                _, waiting = wait(waiting, timeout=0.2)
                ran(_drain_progress_queue(queue))
        finally:
            if waiting:  # interrupted: the workers still run
                _stop_demo_workers(active_children())
    return [why for future in futures for why in future.result()]


def _stop_demo_workers(workers: Sequence[BaseProcess]) -> None:
    """Let workers close their resources; kill those that do not end in time."""
    for worker in workers:
        worker.terminate()
    for worker in workers:
        worker.join(WORKER_EXIT_GRACE)
        worker.kill()


def _drain_progress_queue(told: "Queue[int]") -> int:
    count = 0
    while True:
        try:
            count += told.get_nowait()
        except Empty:
            return count


def count_demo_runs() -> int:
    """Return the number of runs that the demo makes."""
    return len(list_demo_jobs()) * RUNS_PER_JOB
