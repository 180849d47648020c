"""The types of sandboxes: their specification, limits, results and interface."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, Protocol

type SandboxKind = Literal["docker", "process"]
type EndReason = Literal["exit", "time", "memory", "disk"]
"""Why a command ended: by itself or by a signal, or because it exceeded a limit."""

_INSTALLED = Path(__file__).resolve().parents[1]
SECRET_FOLDERS = tuple(str(_INSTALLED / name) for name in ("scenarios/pipeline/compiler", ".git"))
"""Golden artifacts, graders and solutions, which no agent may read; git's objects hold them too."""
HOME = "/tmp/home"  # noqa: S108
"""HOME of a command in a container."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SandboxLimits:
    """Limits of one command; sizes in bytes."""

    cpus: float = 2.0
    memory: int = 4 << 30
    processes: int = 512
    scratch: int = 1 << 30
    """Of /tmp, which is in memory."""
    disk: int = 4 << 30
    """Of all writable folders; checked once per second, so a fast writer can exceed it somewhat."""
    output: int = 64 << 20
    """Of the command's output; further output is read and dropped."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SandboxMount:
    """A file or folder of this machine that a command sees."""

    source: Path
    target: str
    """Its path for the command."""
    writable: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class SandboxResult:
    """How a command ended in a sandbox."""

    exit: int
    """Its exit code, or 128 + n if signal n ended it; 126 or 127 if it could not be executed."""
    ended: EndReason
    dropped: int = 0
    """Bytes of output beyond its limit."""


class Sandbox(Protocol):
    """Runs commands while it is open."""

    @property
    def isolation(self) -> SandboxKind:
        """The kind of sandbox."""
        ...

    @property
    def weaker(self) -> tuple[str, ...]:
        """The protections that are missing here; () if none is."""
        ...

    @property
    def refused(self) -> Mapping[str, int]:
        """Count of refused connections so far, by `host:port: reason`."""
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
    ) -> SandboxResult:
        """Run a command to its end, at most `budget` seconds; no process it started remains.

        It starts in the workspace, or in `cwd` below it, with the sandbox's environment and `env`.
        `stdin` None is empty; the others are file descriptors. Raises ChildProcessError if the
        sandbox failed. Cancelling ends the command.
        """
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class SandboxSpec:
    """The specification a sandbox is opened with."""

    workspace: Path
    """The only folder that it may change, at the same path inside."""
    env: Mapping[str, str]
    """An environment whose proxy variables name a recorder, from `sandbox_env.select_agent_env`."""
    allow: tuple[str, ...] = ()
    """Hosts that it may reach through that proxy; see `allowlist.EgressAllowlist`."""
    mounts: tuple[SandboxMount, ...] = ()
    home: Path | None = None
    """HOME of the command, for agents that continue earlier work; None is a new, empty one."""
    hidden: tuple[str, ...] = SECRET_FOLDERS
    """Folders that appear empty if the command could see them."""
    bounds: SandboxLimits = field(default_factory=SandboxLimits)

    @property
    def writable_paths(self) -> tuple[Path, ...]:
        """The paths that a command may change."""
        mounted = (mount.source for mount in self.mounts if mount.writable)
        return (self.workspace, *mounted, *((self.home,) if self.home else ()))
