"""What the engine needs of a benchmark's task, in whatever form it comes."""

from collections.abc import Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from scenarios.world import World


class Facade(Protocol):
    """Gives what to put before an absolute program, so that it sees folders at other paths."""

    def __call__(self, shown: Mapping[str, Path], cwd: str) -> tuple[str, ...]: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """Where a task is done, for as long as it is set up."""

    world: World
    env: Mapping[str, str] = field(default_factory=dict)
    """What an agent has in its environment besides what its user has there."""
    cwd: Path | None = None
    """Where an agent begins; None is where we are."""
    prefix: tuple[str, ...] = ()
    """What to put before an agent's absolute program."""
    hosts: Mapping[str, tuple[str, int]] = field(default_factory=dict)
    """Where the servers of the task really are."""


class Benchmark(Protocol):
    """A task that somebody else wrote, with its world and its verifier."""

    @property
    def name(self) -> str:
        """What the store calls it."""
        ...

    @property
    def form(self) -> str:
        """Whose form it has."""
        ...

    @property
    def instruction(self) -> str:
        """What an agent is asked to do."""
        ...

    @property
    def url(self) -> str | None:
        """Where its tools are an MCP server; None where it has none."""
        ...

    @property
    def budget(self) -> float | None:
        """Seconds that an agent may take; None where the task does not say."""
        ...

    @property
    def weaker(self) -> tuple[str, ...]:
        """In what a run here is less than one in the benchmark itself."""
        ...

    def staged(self, folder: Path, facade: Facade) -> AbstractAsyncContextManager[Stage]:
        """Set it up in an empty folder; ChildProcessError where it cannot be, or proves nothing."""
        ...
