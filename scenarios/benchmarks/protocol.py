"""The interface between the engine and a benchmark's task, whatever its format."""

from collections.abc import Mapping
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Protocol

from msgspec import Struct, field

from scenarios.world import World


class MountPrefix(Protocol):
    """Return the words to put before an absolute program so that folders appear at other paths."""

    def __call__(self, shown: Mapping[str, Path], cwd: str) -> tuple[str, ...]: ...


class BenchmarkEnvironment(Struct, frozen=True, kw_only=True):
    """The environment of a task while it is set up."""

    world: World
    env: Mapping[str, str] = field(default_factory=dict)
    """Variables for the agent, added to the user's environment."""
    cwd: Path | None = None
    """The agent's working folder; None is the current one."""
    prefix: tuple[str, ...] = ()
    """Words to put before the agent's absolute program path."""
    hosts: Mapping[str, tuple[str, int]] = field(default_factory=dict)
    """Actual address and port of each server name of the task."""


class BenchmarkTask(Protocol):
    """A third-party task with its world and verifier."""

    @property
    def name(self) -> str:
        """Its task name in the store."""
        ...

    @property
    def benchmark_format(self) -> str:
        """The name of the benchmark format."""
        ...

    @property
    def instruction(self) -> str:
        """The agent's prompt."""
        ...

    @property
    def url(self) -> str | None:
        """URL of the MCP server with its tools; None if it has none."""
        ...

    @property
    def budget(self) -> float | None:
        """Time limit of an agent in seconds; None if the task sets none."""
        ...

    @property
    def limitations(self) -> tuple[str, ...]:
        """Differences that make a run here weaker than one in the benchmark itself."""
        ...

    def set_up(
        self, folder: Path, facade: MountPrefix
    ) -> AbstractAsyncContextManager[BenchmarkEnvironment]:
        """Set the task up in an empty folder. Raises ChildProcessError if it fails or proves
        nothing.
        """
        ...
