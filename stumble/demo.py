"""The main job on the practice world: 12 tasks, 3 skills, every fault with its controls.

Two worker processes, each with its own world, model server, warm agent and performer. A worker
records its share of tasks, replays each strictly, and forks each at one call: three clean
twins, one sham, five faults. Nothing here is special to the demo but the choice of faults; the
runs, tapes and rows are those of any user.
"""

import json
import os
from collections.abc import AsyncIterator, Callable, Sequence
from concurrent.futures import ProcessPoolExecutor, wait
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from multiprocessing import active_children, get_context
from multiprocessing.process import BaseProcess
from multiprocessing.queues import Queue
from pathlib import Path
from queue import Empty
from tempfile import TemporaryDirectory

from recorder import loop
from scenarios.practice import KEY, provider, server, world
from scenarios.practice.tasks import EVERY, TASKS
from scenarios.world import Verdict
from stumble import indexing
from stumble.exits import interrupted
from stumble.forks import Branch, branch, plan
from stumble.home import new_experiment, new_id
from stumble.launch import Warm, WarmRun, warm
from stumble.playing import play
from stumble.recording import record
from stumble.runs import Hosts, Labels, Plan, Played
from stumble.theatre import Theatre, theatre
from traces.model import Condition, Fault
from traces.store import Store
from traces.story import Story, tell
from traces.tape import Tape, read

SKILLS = ("naive", "retries", "verifies")
TWINS = 3
WORKERS = 2
GRACE = 15.0
"""Seconds that a worker gets to close what it opened."""


def faults(field: str) -> tuple[Fault, ...]:
    """The five faults of the demo; `field` is a number on which the end state depends."""
    return (
        Fault(name="http_status", params={"code": 503}),
        Fault(name="delay", params={"ms": 250}),
        Fault(name="truncate", params={"keep": 0.6}),
        Fault(name="digit", params={"field": field}),
        Fault(name="digit", params={"field": field}, persist="same_args"),
    )


RUNS_PER_JOB = 1 + 1 + TWINS + 1 + len(faults(""))


@dataclass(frozen=True, slots=True)
class Job:
    """One task, done by a model of one skill."""

    task: str
    skill: str


@dataclass(frozen=True, slots=True)
class PracticeWorld:
    """The order book of one task, served at `hosts`."""

    path: Path
    task: str
    hosts: Hosts

    async def reset(self) -> None:
        """Bring the book into the task's start state."""
        world.reset(self.path, EVERY[self.task])

    async def verify(self, said: Sequence[str] = ()) -> Verdict:
        """Whether the book holds what the task demands."""
        return world.verify(self.path, EVERY[self.task])


def jobs() -> tuple[Job, ...]:
    """All tasks with all skills."""
    return tuple(Job(task, skill) for task in TASKS for skill in SKILLS)


class Worker:
    """Runs jobs one after the other in a world of its own."""

    def __init__(
        self, store: Store, folder: Path, agent: Warm, hosts: Hosts, ran: Callable[[], None]
    ) -> None:
        self._store, self._folder, self._agent = store, folder, agent
        self._hosts, self._ran = hosts, ran
        self._tapes = store.tapes

    def world(self, job: Job) -> PracticeWorld:
        """The shop, for this job's task."""
        return PracticeWorld(self._folder / "shop.db", job.task, self._hosts)

    def launch(self, job: Job) -> WarmRun:
        """The warm agent, on this job's task and skill."""
        argv = (job.task, "--model", f"practice/{job.skill}")
        return WarmRun(
            process=self._agent,
            command=("python", "-m", "scenarios.practice.agent", *argv),
            argv=argv,
            output=self._folder / "agent.log",
        )

    def labels(self, job: Job) -> Labels:
        """What the job's runs are called."""
        return Labels(
            agent="practice", model=f"practice/{job.skill}", scenario="demo", task=job.task
        )

    async def record(self, job: Job, ca: Path) -> Tape:
        """The job done once against the live world."""
        id = new_id()
        path = self._tapes / f"{id}.tape"
        await record(
            path,
            self.launch(job),
            id=id,
            ca=ca,
            scratch=self._folder,
            hosts=self._hosts,
            world=self.world(job),
            labels=self.labels(job),
        )
        self._ran()
        return read(path)

    async def replay(self, house: Theatre, job: Job, recording: Tape) -> Played:
        """The job done again, every answer from the tape."""
        plan = Plan(labels=self.labels(job))
        return await self._play(house, recording, plan, job)

    async def fork(self, house: Theatre, job: Job, recording: Tape) -> list[Played]:
        """Clean twins, a sham and all faults at one call of the recording."""
        told = tell(recording)
        tool, nth, field = site(job, told)
        wanted = [
            replace(fault, where={"tool": tool}, nth=nth, at="http") for fault in faults(field)
        ]
        conditions: list[tuple[Condition, Branch, int]] = []
        first = branch(recording, wanted[0], told)
        conditions += [("clean", first, rep) for rep in range(TWINS)]
        conditions += [("sham", first, 0)]
        conditions += [("fault", branch(recording, fault, told), 0) for fault in wanted]
        played = []
        labels = replace(self.labels(job), experiment=new_experiment())
        for condition, found, rep in conditions:
            each = plan(found, condition, world=self.world(job), seed=7, rep=rep, labels=labels)
            played.append(await self._play(house, recording, each, job))
        return played

    async def _play(self, house: Theatre, recording: Tape, plan: Plan, job: Job) -> Played:
        played = await play(house, recording, self._tapes, plan, self.launch(job))
        self._ran()
        return played

    def index(self, job: Job, recording: Tape, runs: Sequence[Played]) -> None:
        """The rows of all runs of a job, as one segment."""
        tapes = [recording, *(read(run.path) for run in runs)]
        indexing.write_batch(self._store, f"{job.task}-{job.skill}-runs", tapes)


def site(job: Job, told: Story) -> tuple[str, int, str]:
    """Tool, nth and field of a call whose number decides the end state; it varies by task."""
    task = TASKS[job.task]
    candidates = list(zip(task.sites, task.live, strict=True))
    turn = list(TASKS).index(job.task) % len(candidates)
    for (tool, nth), field in candidates[turn:] + candidates[:turn]:
        uses = [use for use in told.uses if use.tool == tool]
        if field and len(uses) >= nth and _has_number(uses[nth - 1].result, field):
            return tool, nth, field
    raise LookupError(f"{job.task} has no number to strike")


def _has_number(result: str | None, field: str) -> bool:
    value = json.loads(result or "{}").get(field)
    digits = str(value).replace(".", "").strip("0")
    return isinstance(value, int | float) and len(digits) >= 3


@asynccontextmanager
async def worker(store: Store, folder: Path, ran: Callable[[], None]) -> AsyncIterator[Worker]:
    """A worker with its servers and its warm agent, all ended with the block."""
    book = folder / "shop.db"
    world.setup(book, next(iter(TASKS.values())))
    async with (
        server.serving(book) as shop,
        provider.serving() as model,
        warm("scenarios.practice.agent") as agent,
    ):
        hosts = {
            "shop.practice": ("127.0.0.1", shop),
            "model.practice": ("127.0.0.1", model),
        }
        yield Worker(store, folder, agent, hosts, ran)


async def work(share: Sequence[Job], root: Path, ca: Path, ran: Callable[[], None]) -> list[str]:
    """Do a share of the jobs; returns what diverged, which should be nothing."""
    store, left = Store(root), []
    with TemporaryDirectory(prefix="stumble-") as scratch:
        folder = Path(scratch)
        async with worker(store, folder, ran) as does:
            tapes = {job: await does.record(job, ca) for job in share}
            async with theatre(ca=ca, scratch=folder, hosts=does._hosts, out=True) as house:
                for job, recording in tapes.items():
                    runs = [await does.replay(house, job, recording)]
                    runs += await does.fork(house, job, recording)
                    left += [why for run in runs for why in (*run.diverged, *run.missed)]
                    does.index(job, recording, runs)
    return left


_told: "Queue[int] | None" = None


def _tell(told: "Queue[int]") -> None:
    """Make the queue known in a worker process, before its first job."""
    global _told
    _told = told


def _process(share: Sequence[Job], root: Path, ca: Path) -> list[str]:
    assert _told is not None
    told = _told
    os.environ["OPENAI_API_KEY"] = KEY
    try:
        return loop.run(work(share, root, ca, lambda: told.put(1)))
    except loop.Interrupted as error:
        os._exit(interrupted(error.number))  # all is closed; a worker of a pool would go on


def run(root: Path, ca: Path, ran: Callable[[int], object]) -> list[str]:
    """All jobs on two processes; returns what diverged. What a worker raises is raised here."""
    context, todo = get_context("spawn"), jobs()
    told: Queue[int] = context.Queue()
    with ProcessPoolExecutor(
        WORKERS, mp_context=context, initializer=_tell, initargs=(told,)
    ) as pool:
        futures = [pool.submit(_process, todo[i::WORKERS], root, ca) for i in range(WORKERS)]
        waiting = set(futures)
        try:
            while waiting:
                _, waiting = wait(waiting, timeout=0.2)
                ran(_drain(told))
        finally:
            if waiting:  # we are to end, and nobody has told the workers
                _end(active_children())
    return [why for future in futures for why in future.result()]


def _end(workers: Sequence[BaseProcess]) -> None:
    """Have workers close what they opened; one that does not, or has begun nothing, is killed."""
    for worker in workers:
        worker.terminate()
    for worker in workers:
        worker.join(GRACE)
        worker.kill()


def _drain(told: "Queue[int]") -> int:
    count = 0
    while True:
        try:
            count += told.get_nowait()
        except Empty:
            return count


def total() -> int:
    """How many runs the demo makes."""
    return len(jobs()) * RUNS_PER_JOB
