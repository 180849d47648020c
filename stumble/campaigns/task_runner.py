"""The protocol between a campaign and whatever does its tasks.

A task is a value; a run to make is named by its recording and the address of its cell. A runner may
lose a task, do it twice, or report in any order: the scheduler hands lost ones out again, and takes
the first result of each cell.
"""

from collections.abc import Iterator, Sequence
from typing import Protocol

from stumble.campaigns.worker import TaskReport, WorkerTask


class TaskRunner(Protocol):
    """Does tasks, several at a time."""

    @property
    def running(self) -> Sequence[WorkerTask]:
        """The tasks without a result."""

    @property
    def free(self) -> int:
        """How many more tasks it would start at once."""

    def submit(self, task: WorkerTask) -> None:
        """Start a task."""

    def results(self, timeout: float) -> Iterator[tuple[WorkerTask, TaskReport]]:
        """Yield tasks with their reports; of a task that was lost, a `TaskLost`.

        Waits at most `timeout` seconds for the first.
        """

    def cancel(self) -> None:
        """End what is running; it has no results."""

    def close(self) -> None:
        """End the workers."""
