"""A copy of an agent's workspace, whose programs are built and run in there and nowhere else."""

import errno
import os
import shutil
import stat
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path

from scenarios.compiler import toolchain
from scenarios.compiler.judged import shown
from scenarios.sandbox.limited import Ended, Limits, run

HOUSE = Path(__file__).parents[2]
HIDDEN = tuple(HOUSE / name for name in ("scenarios", "tests", ".git", ".stumble"))
"""Folders of ours with golden artifacts in them, or with what they are made of."""
CACHES = tuple(
    Path(named) if (named := os.environ.get(variable)) else Path.home() / ".cache" / inside
    for variable, inside in (
        ("XDG_CACHE_HOME", ""),
        ("UV_CACHE_DIR", "uv"),
        ("PIP_CACHE_DIR", "pip"),
    )
)
"""Where installers keep what they installed, and so the golden artifacts and zig once more."""
LARGEST, MOST = 1 << 30, 100_000
"""Bytes and files of a workspace that are copied."""
NAMES = {
    "T0": ("hello.c", "environment.json"),
    "T1": ("program.c", "program.tokens"),
    "T2": ("program.tokens", "program.tree"),
    "T3": ("program.tree", "program.ll"),
    "T4": ("program.ll", "better.ll"),
    "T5": ("program.ll", "program.s"),
}
"""What the files INPUT and OUTPUT of each stage are called, for tools that look at names."""
BUILDING = Limits(cpu=120, disk=1 << 30, file=256 << 20, processes=128, files=1024, wall=600)
RUNNING = Limits(cpu=10, file=16 << 20, disk=64 << 20)


@dataclass(frozen=True, slots=True, kw_only=True)
class Made:
    """What a program of the agent's made of one input, or why it made nothing."""

    artifact: bytes | None = None
    limit: bool = False
    """It was stopped by a limit."""
    why: str = ""
    ran: bool = False
    walls: tuple[str, ...] = ()
    """What stood around it when it ran."""


@dataclass(frozen=True, slots=True)
class Submission:
    """The copy of a workspace with one stage that is built and run."""

    copy: Path
    stage: str
    origin: Path
    """Where the workspace is, which the programs see the copy at: they may know its path."""

    @property
    def folder(self) -> Path:
        """Where the stage's programs lie and are started."""
        return self.copy / self.stage.lower()

    def build(self) -> Made | None:
        """Why it cannot be built; None where it is, or where there is nothing to build."""
        if not (self.folder / "build").exists():
            return None
        with _ours() as ours:
            made = _made(self.run(["./build"], ours, BUILDING, writes=(self.copy,)), BUILDING)
        why = made.why.replace("run cannot", "build cannot")
        return replace(made, why=f"build: {why}") if why else None

    def make(self, given: bytes) -> Made:
        """What `run INPUT OUTPUT` makes of an input, in a folder that it cannot change."""
        source, output = NAMES[self.stage]
        with _ours() as ours:
            (ours / source).write_bytes(given)
            command = ["./run", str(ours / source), str(ours / "scratch" / output)]
            return _made(self.run(command, ours, RUNNING, left=output), RUNNING)

    def says(self, command: list[str]) -> str:
        """What a command prints when it is run as the agent's programs are."""
        with _ours() as ours:
            ended = self.run(command, ours, RUNNING)
        return (ended.stdout + ended.stderr + ended.unstarted.encode()).decode(errors="replace")

    def run(
        self,
        command: list[str],
        ours: Path,
        limits: Limits,
        *,
        left: str | None = None,
        writes: tuple[Path, ...] = (),
    ) -> Ended:
        """Run a command in the stage's folder, with a scratch folder in `ours`."""
        return run(
            command,
            cwd=self.folder,
            scratch=ours / "scratch",
            env=environment(ours / "scratch", self.stage),
            limits=limits,
            writes=writes,
            hidden=hidden(self.stage),
            shown={self.origin: self.copy},
            left=left,
        )


def hidden(stage: str) -> tuple[Path, ...]:
    """What a stage's programs do not see; a cache that we ourselves run from they do."""
    needed = [Path(sys.prefix), Path(sys.base_prefix), toolchain.zig(), toolchain.unicorn()]
    caches = [
        cache
        for cache in (each.resolve() for each in CACHES)
        if not any(path.resolve().is_relative_to(cache) for path in needed)
    ]
    tools = () if stage == "T0" else (toolchain.zig().parent,)
    return (*HIDDEN, *caches, *tools)


@contextmanager
def _ours() -> Iterator[Path]:
    """A fresh folder with an empty `scratch` in it."""
    folder = Path(tempfile.mkdtemp(prefix="stumble-case-"))
    try:
        folder.chmod(0o755)
        (folder / "scratch").mkdir()
        yield folder
    finally:
        remove(folder)


@contextmanager
def submission(workspace: Path, stage: str) -> Iterator[Submission]:
    """A copy of the workspace, which is gone afterwards; ValueError where it cannot be graded."""
    holding = Path(tempfile.mkdtemp(prefix="stumble-grading-"))
    holding.chmod(0o755)
    try:
        copied(workspace, holding / "workspace")
        entered = Submission(holding / "workspace", stage, workspace.resolve())
        if not entered.folder.is_dir():
            raise ValueError(f"there is no folder {stage.lower()} in the workspace")
        yield entered
    finally:
        remove(holding)


def environment(scratch: Path, stage: str) -> dict[str, str]:
    """All that a program of the agent's gets to know: no variable of ours but PATH.

    Ours is the python3 that comes first. The hash seed is fixed, so that a program that depends
    on the order of a set does so in the same way each time. Only T0 gets the tools: with zig
    clang at hand, T4 and T5 would be one line each.
    """
    python = Path(getattr(sys, "_base_executable", sys.executable)).resolve().parent
    known = {
        "PATH": os.pathsep.join((str(python), os.environ.get("PATH", os.defpath))),
        "HOME": str(scratch),
        "TMPDIR": str(scratch),
        "LANG": "C.UTF-8",
        "PYTHONHASHSEED": "0",
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    if stage == "T0":
        known |= {"ZIG": str(toolchain.zig()), "UNICORN": str(toolchain.unicorn())}
    return known


def _made(ended: Ended, limits: Limits) -> Made:
    """What a run left, or why that is nothing: in its own words, or the limit that stopped it."""
    nothing = Made(ran=not ended.unstarted, walls=ended.walls)
    if ended.unstarted:
        return replace(nothing, why=f"run cannot be started: {ended.unstarted}")
    if ended.beyond:
        return replace(nothing, limit=True, why=_beyond(ended, limits))
    if ended.code:
        how = f"signal {-ended.code}" if ended.code < 0 else f"exit code {ended.code}"
        return replace(nothing, why=shown(f"{how}: {_last(ended.stderr or ended.stdout)}"))
    if ended.without:
        return replace(nothing, why=f"run left {ended.without} at OUTPUT")
    return replace(nothing, artifact=ended.left)


def _beyond(ended: Ended, limits: Limits) -> str:
    match ended.beyond:
        case "cpu":
            return f"more than {limits.cpu:g} s of processor time"
        case "memory":
            return f"more than {limits.memory >> 20} MiB of memory"
        case "disk":
            return f"a file of more than {limits.file >> 20} MiB, or {limits.disk >> 20} in all"
        case "processes":
            return f"more than {limits.processes} processes"
        case "output":
            return f"more than {limits.output >> 10} KiB printed"
        case _:
            return f"not at its end after {limits.wall:g} s"


def _last(said: bytes) -> str:
    """The first error that was named, or the last line."""
    lines = [line for line in said.decode(errors="replace").splitlines() if line.strip()]
    named = [line for line in lines if "error:" in line]
    return (named[:1] or lines[-1:] or ["without a word"])[0]


def copied(workspace: Path, copy: Path) -> None:
    """Copy files and links as they are, and whatever else not; what goes meanwhile is gone.

    ValueError where there is no workspace, too much of it, or what cannot be copied.
    """
    if not workspace.is_dir():
        raise ValueError("the workspace is gone")
    size = count = 0
    for at, inner, files in os.walk(workspace):
        here = copy / Path(at).relative_to(workspace)
        with _theirs(Path(at)):
            here.mkdir()
        for name in (*inner, *files):
            source, target = Path(at, name), here / name
            with _theirs(source):
                status = source.lstat()
                size, count = size + status.st_size, count + 1
                if size > LARGEST or count > MOST:
                    most = f"{LARGEST >> 20} MiB or {MOST:,} files"
                    raise ValueError(f"the workspace has over {most}")
                if stat.S_ISLNK(status.st_mode):
                    target.symlink_to(source.readlink())
                elif stat.S_ISREG(status.st_mode):
                    shutil.copy2(source, target, follow_symlinks=False)


@contextmanager
def _theirs(path: Path) -> Iterator[None]:
    """Errors in which the workspace is at fault: else an agent could choose not to be graded."""
    try:
        yield
    except FileNotFoundError:
        return
    except OSError as error:
        if error.errno not in (errno.EACCES, errno.EPERM, errno.ENAMETOOLONG, errno.ELOOP):
            raise
        raise ValueError(f"{path.name[:80]} cannot be copied: {error.strerror}") from None


def remove(folder: Path) -> None:
    """Remove a folder, also where its own programs have closed parts of it."""
    for at, inner, _ in os.walk(folder):
        for name in inner:
            path = Path(at, name)
            with suppress(OSError):  # too long a path, which rmtree does not use
                if not path.is_symlink():
                    path.chmod(0o700)
    shutil.rmtree(folder)
