"""What a sandbox is given, what it says of a command that ran in it, and what both kinds can do."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, Protocol

type Isolation = Literal["docker", "process"]
type Ended = Literal["exit", "time", "memory", "disk"]
"""Why a command ended: by itself or by a signal, or because it had used up what it was given."""

SECRET = (str(Path(__file__).resolve().parents[1] / "compiler"),)
"""Golden artifacts, graders and solutions: what no agent may find."""
HOME = "/tmp/home"  # noqa: S108
"""Where a command in a container is at home."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """What one command may use; sizes in bytes."""

    cpus: float = 2.0
    memory: int = 4 << 30
    processes: int = 512
    scratch: int = 1 << 30
    """Of /tmp, which is in memory."""
    disk: int = 4 << 30
    """Of all that it may change; looked at once per second, so a fast writer gets somewhat more."""
    output: int = 64 << 20
    """Printed by the command; what is more is read and dropped."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Mount:
    """A file or folder of this machine that a command sees."""

    source: Path
    target: str
    """Where it sees it."""
    writable: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Ran:
    """How a command ended in a sandbox."""

    exit: int
    """Its exit code, or 128 + n where signal n ended it; 126 and 127 where it was no program."""
    ended: Ended
    dropped: int = 0
    """Bytes that it printed beyond its limit."""


class Sandbox(Protocol):
    """Runs commands, for as long as it is open."""

    @property
    def isolation(self) -> Isolation:
        """What holds it."""
        ...

    @property
    def weaker(self) -> tuple[str, ...]:
        """What does not hold here, of all that a sandbox should be; () where all does."""
        ...

    @property
    def refused(self) -> Mapping[str, int]:
        """How often what was not let through so far, as `host:port: why`."""
        ...

    async def run(
        self,
        command: Sequence[str],
        *,
        cwd: Path | None = None,
        env: Mapping[str, str] | None = None,
        budget: float | None = None,
        stdin: int | None = None,
        stdout: int = 1,
        stderr: int = 2,
    ) -> Ran:
        """Run a command to its end, at most `budget` seconds; nothing it started is left then.

        It begins in the workspace, or in `cwd` below it, and has in its environment what the
        sandbox was opened with and `env`. `stdin` None gives it nothing to read; the others are
        file descriptors. ChildProcessError where the sandbox failed. Cancelling ends it.
        """
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """What a sandbox is opened with."""

    workspace: Path
    """The only folder that it may change, at the same path inside."""
    env: Mapping[str, str]
    """An environment whose proxy variables lead to a recorder, as `passing.passed` leaves it."""
    allow: tuple[str, ...] = ()
    """Whom it may reach through that proxy; see `allow.Allow`."""
    mounts: tuple[Mount, ...] = ()
    home: Path | None = None
    """A folder in which it is at home, for agents that go on with what they did before; None is an
    empty one for each command."""
    hidden: tuple[str, ...] = SECRET
    """Folders that it shall find empty where it would see them at all."""
    bounds: Bounds = field(default_factory=Bounds)

    @property
    def changed(self) -> tuple[Path, ...]:
        """What a command may change."""
        mounted = (mount.source for mount in self.mounts if mount.writable)
        return (self.workspace, *mounted, *((self.home,) if self.home else ()))
