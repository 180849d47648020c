"""A task runner of this machine: one worker process per task at a time."""

import signal
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from multiprocessing import get_context
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from pathlib import Path

from stumble.campaigns.completed_runs import CampaignFolder
from stumble.campaigns.spec import Campaign
from stumble.campaigns.worker import TaskLost, TaskReport, WorkerTask, run_worker_process
from traces.store.trace_store import TraceStore

WORKER_CLOSE_SECONDS = 15.0
"""Seconds that a worker gets to close its resources."""


class LocalWorkers:
    """Worker processes, each with at most one task; one that dies is replaced."""

    def __init__(
        self,
        campaign: Campaign,
        store: TraceStore,
        folder: CampaignFolder,
        ca: Path,
        numbers: range,
    ) -> None:
        self._at: dict[Connection, BaseProcess] = {}
        self._busy: dict[Connection, WorkerTask] = {}
        self._shared = (campaign, store.root, folder, ca)
        self._numbers = numbers

    def start(self) -> None:
        """Start the workers."""
        for number in self._numbers:
            self._start_worker(number)

    def _start_worker(self, number: int) -> None:
        context = get_context("spawn")
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
    def size(self) -> int:
        """How many workers there are."""
        return len(self._numbers)

    @property
    def running(self) -> Sequence[WorkerTask]:
        """The tasks without a result."""
        return tuple(self._busy.values())

    @property
    def free(self) -> int:
        """How many workers have no task."""
        return len(self._at) - len(self._busy)

    def submit(self, task: WorkerTask) -> None:
        """Send a task to a worker without one."""
        one = next(connection for connection in self._at if connection not in self._busy)
        self._busy[one] = task
        try:
            one.send(task)
        except OSError:  # it died while it waited: `results` finds out
            return

    def results(self, timeout: float) -> Iterator[tuple[WorkerTask, TaskReport]]:
        """Yield tasks with their reports; a worker that exited is replaced."""
        for connection in wait(list(self._busy), timeout):
            assert isinstance(connection, Connection)
            task = self._busy[connection]
            try:
                report: TaskReport = connection.recv()
            except (EOFError, ConnectionResetError):
                report = TaskLost(f"a worker ended with {self._replace_worker(connection)}")
            self._busy.pop(connection, None)
            yield task, report

    def _replace_worker(self, connection: Connection) -> int | None:
        """Start another worker in place of one that exited; return the exit code of that."""
        worker = self._at.pop(connection)
        self._busy.pop(connection)
        worker.join(WORKER_CLOSE_SECONDS)
        connection.close()
        self._start_worker(int(worker.name.rpartition("-")[2]))
        return worker.exitcode

    def cancel(self) -> None:
        """End the workers that have a task."""
        for connection in self._busy:
            self._at[connection].terminate()

    def close(self) -> None:
        """Let workers close their resources; kill one that does not end in time."""
        self.cancel()
        for connection in self._at:
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


@contextmanager
def open_local_workers(
    campaign: Campaign, store: TraceStore, folder: CampaignFolder, ca: Path, numbers: range
) -> Iterator[LocalWorkers]:
    """Start a worker of each number, and end them all after the block."""
    workers = LocalWorkers(campaign, store, folder, ca, numbers)
    try:
        workers.start()
        yield workers
    finally:
        workers.close()
