"""A task runner whose runs are made by actors on the nodes of a Ray cluster.

Recordings are made, and rows written, by processes of this machine: it has the agent's folder and
the store. A worker that is lost, with its node or alone, is replaced as soon as the cluster has a
processor for it.
"""

import os
import pickle
import signal
import time
from collections import Counter, deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, redirect_stdout, suppress
from copy import replace
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from recorder.ending_signals import defer_ending_signals
from stumble.campaigns.cluster.node_worker import (
    NodeFacts,
    NodeJob,
    NodeRun,
    NodeWorker,
    ShippedPack,
    list_versions,
)
from stumble.campaigns.completed_runs import CampaignFolder
from stumble.campaigns.local_workers import LocalWorkers
from stumble.campaigns.spec import Campaign
from stumble.campaigns.worker import (
    PrepareTask,
    RunDone,
    RunTask,
    TaskLost,
    TaskReport,
    WorkerTask,
)
from stumble.campaigns.worker_plan import WorkerPlan
from stumble.errors import HarnessError, UsageError
from stumble.packs.pack_contents import PackContents
from stumble.processors import count_usable_processors
from stumble.user_data.known_secrets import find_known_secrets
from traces.store.trace_store import TraceStore

MISSING_LIBRARY = "--on ray needs the extra ray: uv pip install 'stumble[ray]'"
NODE_WAIT_SECONDS = 600.0
"""How long a campaign waits for a first, or another, worker while it has none."""
CLOSE_SECONDS = 15.0
"""Seconds that workers get to close their resources."""
MAX_START_FAILURES = 3
"""How often in a row a worker may end before it has started, as its node is ending, say."""
CLIENT_TRIES = 3
LOCAL_POLL_SECONDS = 0.02


@dataclass(kw_only=True, eq=False)
class _Node:
    """A worker on a node."""

    number: int
    actor: Any
    waiting: Any
    """The reference to the answer that is awaited; None if it has nothing to do."""
    host: str | None = None
    """None until it has started."""
    task: RunTask | None = None

    @property
    def where(self) -> str:
        return f"worker {self.number}" + (f" on {self.host}" if self.host else "")


class RayWorkers:
    """Actors of one processor each, each with at most one run."""

    def __init__(
        self,
        campaign: Campaign,
        store: TraceStore,
        folder: CampaignFolder,
        jobs: int,
        local: LocalWorkers,
        ray: Any,
        check_signals: Callable[[], None],
    ) -> None:
        self._campaign, self._store, self._folder = campaign, store, folder
        self._local, self._ray, self._jobs = local, ray, jobs
        self._check_signals = check_signals
        self._queue: deque[WorkerTask] = deque()
        """Tasks of this machine that wait for one of its processes."""
        self._nodes: list[_Node] = []
        self._packs: dict[Path, ShippedPack] = {}
        self._failures: Counter[int] = Counter()
        """By worker, how often in a row it has ended before it had started."""
        self._had_worker = time.monotonic()

    def start(self) -> None:
        """Ask for the actors; the cluster starts them when it has room."""
        for number in range(self._jobs):
            self._start_worker(number)

    def _start_worker(self, number: int) -> None:
        options = {"num_cpus": 1, "max_restarts": 0, "scheduling_strategy": "SPREAD"}
        actor = self._ray.remote(**options)(NodeWorker).remote()
        job = NodeJob(
            campaign=pickle.dumps(self._campaign),
            plan=self._folder.plan.read_bytes(),
            number=number,
        )
        waiting = actor.start.remote(job, list_versions())
        self._nodes.append(_Node(number=number, actor=actor, waiting=waiting))

    @property
    def running(self) -> Sequence[WorkerTask]:
        """The tasks without a result."""
        remote = [node.task for node in self._nodes if node.task is not None]
        return (*self._local.running, *self._queue, *remote)

    @property
    def free(self) -> int:
        """How many workers have no task; recordings are made by as many as this machine has."""
        here = (*self._local.running, *self._queue)
        if sum(isinstance(task, PrepareTask) for task in here) >= self._local.size:
            return 0
        free = sum(node.host is not None and node.waiting is None for node in self._nodes)
        # Without a task nobody asks for results, and so nobody sees that a worker has started.
        return free or (not self.running)

    def submit(self, task: WorkerTask) -> None:
        """Start a task: a run on a node, any other here."""
        if not isinstance(task, RunTask):
            self._queue.append(task)
            self._submit_queued()
            return
        node = self._await_free_node()
        node.task = task
        node.waiting = node.actor.make_run.remote(task, self._ship_recording(task.tape))

    def _await_free_node(self) -> _Node:
        while True:
            for node in self._nodes:
                if node.host is not None and node.waiting is None:
                    return node
            for ref in self._wait(1.0):
                self._handle_started(ref)
            self._check_workers()

    def _submit_queued(self) -> None:
        while self._queue and self._local.free:
            self._local.submit(self._queue.popleft())

    def _ship_recording(self, tape: Path) -> ShippedPack:
        """Put the pack of a recording into the object store, once.

        Raises UsageError if it has a secret, or if its workspace is missing.
        """
        if tape not in self._packs:
            contents = PackContents(store=self._store.root, known=tuple(find_known_secrets()))
            main, path = contents.add_tape(tape), self._folder.runs / f"{tape.stem}.stumble"
            manifest = contents.write(path, main, kind="tape")
            data = self._ray.put(path.read_bytes())
            path.unlink()
            self._packs[tape] = ShippedPack(name=manifest.root_hash, data=data)
        return self._packs[tape]

    def results(self, timeout: float) -> Iterator[tuple[WorkerTask, TaskReport]]:
        """Yield tasks with their reports; a worker that was lost is replaced."""
        here, there = bool(self._local.running), any(node.task for node in self._nodes)
        if here:
            yield from self._local.results(0 if there else timeout)
            self._submit_queued()
            timeout = LOCAL_POLL_SECONDS if there else 0
        for ref in self._wait(timeout):
            node = next(node for node in self._nodes if node.waiting == ref)
            if node.task is None:
                self._handle_started(ref)
            else:
                yield node.task, self._take_report(node)
        self._check_workers()

    def _wait(self, timeout: float) -> Sequence[Any]:
        self._check_signals()
        refs = [node.waiting for node in self._nodes if node.waiting is not None]
        if not refs:
            return ()
        done: Sequence[Any] = self._ray.wait(refs, num_returns=1, timeout=timeout)[0]
        self._check_signals()
        return done

    def _handle_started(self, ref: Any) -> None:
        node = next(node for node in self._nodes if node.waiting == ref)
        try:
            facts: NodeFacts = self._ray.get(ref)
        except self._ray.exceptions.RayError as error:
            self._failures[node.number] += 1
            if self._failures[node.number] >= MAX_START_FAILURES:
                raise HarnessError(
                    f"workers do not start on the nodes: {_last_line(error)}; each node needs the "
                    "same stumble, installed there or named by --runtime-env"
                ) from None
            self._replace_worker(node)
            return
        if facts.versions != list_versions():
            here, there = list_versions(), facts.versions
            other = next(name for name in here if here[name] != there.get(name))
            raise UsageError(
                f"{facts.host} has {other} {there.get(other)}, and this machine {here[other]}: "
                "install the same on all nodes, or name it by --runtime-env"
            )
        del self._failures[node.number]
        node.host, node.waiting = facts.host, None

    def _take_report(self, node: _Node) -> TaskReport:
        try:
            run: NodeRun = self._ray.get(node.waiting)
        except self._ray.exceptions.RayError as error:
            self._replace_worker(node)
            return TaskLost(f"{node.where} was lost ({_last_line(error)})")
        node.task = node.waiting = None
        if run.output:
            log = self._store.log_path(f"{self._campaign.name}-{node.number}")
            with log.open("ab") as file:
                file.write(run.output)
        if not isinstance(run.report, RunDone):
            return run.report
        path = self._folder.runs / run.report.path.name
        path.write_bytes(run.tape)
        return replace(run.report, path=path)

    def _replace_worker(self, node: _Node) -> None:
        self._nodes.remove(node)
        with suppress(self._ray.exceptions.RayError):
            self._ray.kill(node.actor)
        self._start_worker(node.number)

    def _check_workers(self) -> None:
        """Raise HarnessError if there has been no worker for too long."""
        if any(node.host is not None for node in self._nodes):
            self._had_worker = time.monotonic()
        elif time.monotonic() > self._had_worker + NODE_WAIT_SECONDS:
            raise HarnessError(
                f"no node of the cluster had a free processor for a worker in "
                f"{NODE_WAIT_SECONDS:g} s; what is finished is kept, the same command goes on"
            )

    def cancel(self) -> None:
        """End what is running; it has no results."""
        self._queue.clear()
        self._local.cancel()
        for node in self._nodes:
            if node.task is not None:
                self._ray.kill(node.actor)

    def close(self) -> None:
        """Let idle workers close their resources, and end all others."""
        self.cancel()
        idle = [node for node in self._nodes if node.host is not None and node.task is None]
        closing = [node.actor.close.remote() for node in idle]
        if closing:
            self._ray.wait(closing, num_returns=len(closing), timeout=CLOSE_SECONDS)
        for node in self._nodes:
            self._ray.kill(node.actor)
        self._nodes.clear()
        self._local.close()


@contextmanager
def open_ray_workers(
    campaign: Campaign, store: TraceStore, folder: CampaignFolder, ca: Path, plan: WorkerPlan
) -> Iterator[RayWorkers]:
    """Connect to the cluster and start the workers; end both after the block."""
    unrecorded = sum(source.tape is None for source in campaign.sources)
    size = max(1, min(unrecorded, count_usable_processors()))
    local = LocalWorkers(campaign, store, folder, ca, range(size))
    with _connect(plan, store.log_path("ray")) as ray:
        jobs = plan.jobs or int(ray.cluster_resources().get("CPU", 0))
        if jobs < 1:
            raise UsageError(f"--on {plan.ray}: no node of the cluster has a processor")
        # A handler's exception in Ray's own code has ended the process by SIGSEGV.
        with defer_ending_signals() as check:
            workers = RayWorkers(campaign, store, folder, jobs, local, ray, check)
            try:
                local.start()
                workers.start()
                yield workers
            finally:
                workers.close()


@contextmanager
def _connect(plan: WorkerPlan, log: Path) -> Iterator[Any]:
    """Connect to the cluster of the plan, of RAY_ADDRESS or of this machine; else start one.

    Ray prints the last lines of a lost node's log, at last in its end: they go to the log file.
    """
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
    try:
        import ray
    except ImportError:
        raise UsageError(MISSING_LIBRARY) from None
    options: dict[str, Any] = {"log_to_driver": False, "logging_level": "ERROR"}
    if plan.runtime_env:
        options["runtime_env"] = dict(plan.runtime_env)
    handler = signal.getsignal(signal.SIGTERM)
    try:
        if plan.ray not in (None, "ray"):
            _join_by_client(ray, str(plan.ray), options)
        else:
            _join_or_start(ray, plan.jobs, options)
    except (OSError, RuntimeError, ValueError) as error:
        raise UsageError(f"--on {plan.ray}: no connection: {_last_line(error)}") from None
    finally:
        signal.signal(signal.SIGTERM, handler)  # Ray's own would end us before the workers do
    with log.open("a") as file, redirect_stdout(file):
        try:
            yield ray
        finally:
            ray.shutdown()


def _join_by_client(ray: Any, address: str, options: dict[str, Any]) -> None:
    """Connect to a cluster's client server.

    It forks for each client while its own threads are in gRPC, and such a child sometimes crashes.
    """
    for tries_left in reversed(range(CLIENT_TRIES)):
        try:
            ray.init(address, **options)
        except (ConnectionError, RuntimeError):
            if not tries_left:
                raise
        else:
            return


def _join_or_start(ray: Any, jobs: int | None, options: dict[str, Any]) -> None:
    try:
        ray.init("auto", **options)
    except ConnectionError:
        if "RAY_ADDRESS" in os.environ:
            raise
        ray.init("local", num_cpus=jobs, include_dashboard=False, **options)


def _last_line(error: BaseException) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[-1] if lines else type(error).__name__
