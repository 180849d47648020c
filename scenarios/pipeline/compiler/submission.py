"""A copy of an agent's workspace, the only place where its programs are built and run.

If the kernel allows, `run` sees the files of `graded_cell`, the copy, its input and a scratch
folder, and no other file: no compiler of this machine, not the store with the programs and
artifacts of other runs, not another checkout or installation of stumble, nobody's home. `build`,
which needs a compiler but gets no input, and T0, which looks for tools, see all programs and
libraries of the system as well.
"""

import errno
import os
import shutil
import stat
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from copy import replace
from pathlib import Path

from msgspec import Struct, field

from sandbox.deep_folders import cut_deep_folders, remove_folder
from sandbox.limited_process import FolderAccess, LimitedResult, ProcessLimits, run_limited
from sandbox.visible_paths import SYSTEM_FOLDERS
from scenarios.pipeline.compiler import graded_cell, machine_code, toolchain
from scenarios.pipeline.compiler.read_files import ReadWatch, digest_files, list_names
from scenarios.pipeline.compiler.scoring.artifact_score import shorten_explanation
from scenarios.pipeline.compiler.types import FileText

REPOSITORY = Path(__file__).parents[3]
HIDDEN = tuple(REPOSITORY / name for name in ("scenarios", "tests", ".git", ".stumble"))
"""Folders of the repository that contain golden artifacts or their sources."""
CACHES = tuple(
    Path(named) if (named := os.environ.get(variable)) else Path.home() / ".cache" / inside
    for variable, inside in (
        ("XDG_CACHE_HOME", ""),
        ("UV_CACHE_DIR", "uv"),
        ("PIP_CACHE_DIR", "pip"),
    )
)
"""Installer caches, which may contain the golden artifacts and zig as well."""
LARGEST, MOST = 1 << 30, 100_000
"""Limits on the bytes and files of a copied workspace."""
_COPIED = 1_000_000_000
"""The time of all files of a copy, in seconds."""
NAMES = {
    "T0": ("hello.c", "environment.json"),
    "T1": ("program.c", "program.tokens"),
    "T2": ("program.tokens", "program.tree"),
    "T3": ("program.tree", "program.ll"),
    "T4": ("program.ll", "better.ll"),
    "T5": ("program.ll", "program.s"),
}
"""File names of INPUT and OUTPUT of each stage, for tools that depend on the suffix."""
BUILDING = ProcessLimits(cpu=120, disk=1 << 30, file=256 << 20, processes=128, files=1024, wall=600)
RUNNING = ProcessLimits(cpu=10, file=16 << 20, disk=64 << 20, wall=45)
"""Of one case. The wall time of all is less than the patience of the grader: if programs that
sleep used that up, it would count as the grader's failure and not as theirs.
"""


class StageOutput(Struct, frozen=True, kw_only=True):
    """The artifact that an agent's program made of one input, or why there is none."""

    artifact: bytes | None = None
    limit: bool = False
    """Whether a limit stopped it."""
    why: str = ""
    ran: bool = False
    walls: tuple[str, ...] = ()
    """Isolation measures in force while it ran."""


class StageSubmission(Struct, frozen=True):
    """The copy of a workspace with one stage to build and run."""

    copy: Path
    stage: str
    origin: Path
    """The original workspace path, at which the programs see the copy, since they may know it."""
    removed: dict[str, str] = field(default_factory=dict)
    """Files of the copy that were removed before it is graded, with the reason."""
    watch: ReadWatch | None = None
    """The files of the copy that its programs read; None if that cannot be known."""
    built_from: list[str] = field(default_factory=list)
    """The files that `build` read, as they were before it."""
    names: str = ""
    """The names and sizes of all files before it."""

    @property
    def folder(self) -> Path:
        """The folder of the stage's programs, which is their working directory."""
        return self.copy / self.stage.lower()

    def build(self) -> StageOutput | None:
        """Build the stage, without the machine code that lies there, and remove what is not the
        agent's own; return why that failed, or None.
        """
        if self.stage != "T0":
            self._remove_files(machine_code.remove_compiled_files)
        if (self.folder / "build").exists() and (failed := self._run_build()):
            return failed
        cut_deep_folders(str(self.copy))
        if self.stage != "T0":
            self._remove_files(machine_code.remove_foreign_code)
        if self.watch:
            self.built_from.extend(self.watch.end_build())
        return None

    def _remove_files(self, remove: Callable[[Path], dict[str, str]]) -> None:
        """Remove files of the copy, all of which are opened for that."""
        self.removed.update(remove(self.copy))
        if self.watch:
            self.watch.skip()

    def digest_read_files(self) -> Mapping[str, FileText] | None:
        """Return the text of the workspace's files that were read since the copy was made; None if
        unknown. Ends the watching.
        """
        if self.watch is None:
            return None
        built = ((name, self.origin / name) for name in self.built_from)
        ran = ((name, self.copy / name) for name in self.watch.close())
        return digest_files((*built, *ran), self.names)

    def _run_build(self) -> StageOutput | None:
        with _make_case_folder() as case_folder:
            output = _to_stage_output(
                self.run_command(["./build"], case_folder, BUILDING, writes=(self.copy,)), BUILDING
            )
        why = output.why.replace("run cannot", "build cannot")
        return replace(output, why=f"build: {why}") if why else None

    def run_on_input(self, given: bytes) -> StageOutput:
        """Run `run INPUT OUTPUT` on an input that it cannot modify."""
        source, output = NAMES[self.stage]
        with _make_case_folder() as case_folder:
            (case_folder / source).write_bytes(given)
            command = ["./run", str(case_folder / source), str(case_folder / "scratch" / output)]
            made = _to_stage_output(
                self.run_command(command, case_folder, RUNNING, left=output), RUNNING
            )
        return made if made.artifact is not None else replace(made, why=self._name_removed(made))

    def _name_removed(self, made: StageOutput) -> str:
        """Return why a run left nothing, with the files that it may have missed."""
        each = (f"; not there when graded: {path}, {why}" for path, why in self.removed.items())
        return shorten_explanation(f"{made.why}{''.join(each)}")

    def read_command_output(self, command: list[str]) -> str:
        """Return the output of a command run under the same conditions as the agent's programs."""
        with _make_case_folder() as case_folder:
            result = self.run_command(command, case_folder, RUNNING)
        return (result.stdout + result.stderr + result.unstarted.encode()).decode(errors="replace")

    def run_command(
        self,
        command: list[str],
        ours: Path,
        limits: ProcessLimits,
        *,
        left: str | None = None,
        writes: tuple[Path, ...] = (),
    ) -> LimitedResult:
        """Run a command in the stage's folder, with the scratch folder of `ours`."""
        system = bool(writes) or self.stage == "T0"
        result = run_limited(
            command,
            cwd=self.folder,
            scratch=ours / "scratch",
            env=make_program_env(ours / "scratch", self.stage),
            limits=limits,
            folders=self._access_system(ours, writes) if system else self._access_cell(ours),
            left=left,
        )
        if self.watch:
            self.watch.collect()
        return result

    def _access_cell(self, ours: Path) -> FolderAccess:
        return FolderAccess(
            hidden=graded_cell.list_package_folders(),
            shown={self.origin: self.copy},
            root=(*graded_cell.list_cell_paths(), self.copy, ours),
            sealed=True,
        )

    def _access_system(self, ours: Path, writes: tuple[Path, ...]) -> FolderAccess:
        return FolderAccess(
            writes=writes,
            hidden=(*list_hidden_folders(self.stage), *find_store(self.origin)),
            shown={self.origin: self.copy},
            root=(*list_visible_paths(self.stage), self.copy, ours),
        )


def list_hidden_folders(stage: str) -> tuple[Path, ...]:
    """Return the folders hidden from a stage's programs, except caches that stumble runs from."""
    needed = [
        Path(sys.prefix),
        Path(sys.base_prefix),
        toolchain.find_zig(),
        toolchain.find_unicorn(),
    ]
    caches = [
        cache
        for cache in (each.resolve() for each in CACHES)
        if not any(path.resolve().is_relative_to(cache) for path in needed)
    ]
    tools = () if stage == "T0" else (toolchain.find_zig().parent,)
    return (*HIDDEN, *caches, *tools)


def list_visible_paths(stage: str) -> tuple[Path, ...]:
    """Return the paths of this machine that a stage's programs see."""
    tools = (toolchain.find_zig().parent, toolchain.find_unicorn()) if stage == "T0" else ()
    return (*SYSTEM_FOLDERS, Path(sys.base_prefix), *tools)


def find_store(workspace: Path) -> tuple[Path, ...]:
    """Return the store that a workspace is in, if any, which may be in a visible folder."""
    parents = (each for each in workspace.parents if (each / "pipelines").is_dir())
    return tuple(each for each in parents if (each / "tapes").is_dir())


@contextmanager
def _make_case_folder() -> Iterator[Path]:
    """Create a temporary folder with an empty `scratch` in it."""
    folder = Path(tempfile.mkdtemp(prefix="stumble-case-"))
    try:
        folder.chmod(0o755)
        (folder / "scratch").mkdir()
        yield folder
    finally:
        force_remove_folder(folder)


@contextmanager
def copy_submission(workspace: Path, stage: str) -> Iterator[StageSubmission]:
    """Copy the workspace for the duration of the block. Raises ValueError if it cannot be
    graded.
    """
    holding = Path(tempfile.mkdtemp(prefix="stumble-grading-"))
    holding.chmod(0o755)
    try:
        copy_submitted_files(workspace, holding / "workspace")
        copy = holding / "workspace"
        submission = StageSubmission(
            copy, stage, workspace.resolve(), watch=_watch_reads(copy), names=list_names(copy)
        )
        if not submission.folder.is_dir():
            raise ValueError(f"there is no folder {stage.lower()} in the workspace")
        yield submission
    finally:
        force_remove_folder(holding)


def _watch_reads(copy: Path) -> ReadWatch | None:
    with suppress(OSError):  # another system, or no watches left: what is read is unknown
        return ReadWatch(copy)
    return None


def make_program_env(scratch: Path, stage: str) -> dict[str, str]:
    """Return the complete environment of an agent's program; of stumble's only PATH is in it.

    The interpreter's python3 comes first on PATH. The hash seed is fixed, so that a program that
    depends on the order of a set is deterministic. Only T0 gets the tools: with zig clang
    available, T4 and T5 would be one line each.
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
        known |= {"ZIG": str(toolchain.find_zig()), "UNICORN": str(toolchain.find_unicorn())}
    return known


def _to_stage_output(ended: LimitedResult, limits: ProcessLimits) -> StageOutput:
    """Return the artifact of a run, or why there is none: its error or the exceeded limit."""
    nothing = StageOutput(ran=not ended.unstarted, walls=ended.walls)
    if ended.unstarted:
        return replace(nothing, why=f"run cannot be started: {ended.unstarted}")
    if ended.beyond:
        return replace(nothing, limit=True, why=_describe_exceeded_limit(ended, limits))
    if ended.code:
        how = f"signal {-ended.code}" if ended.code < 0 else f"exit code {ended.code}"
        return replace(
            nothing,
            why=shorten_explanation(f"{how}: {_find_error_line(ended.stderr or ended.stdout)}"),
        )
    if ended.without:
        return replace(nothing, why=f"run left {ended.without} at OUTPUT")
    return replace(nothing, artifact=ended.left)


def _describe_exceeded_limit(ended: LimitedResult, limits: ProcessLimits) -> str:
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


def _find_error_line(data: bytes) -> str:
    """Return the first line with "error:", or the last line."""
    lines = [line for line in data.decode(errors="replace").splitlines() if line.strip()]
    errors = [line for line in lines if "error:" in line]
    return (errors[:1] or lines[-1:] or ["without a word"])[0]


def copy_submitted_files(workspace: Path, copy: Path) -> None:
    """Copy contents of files, and links; other kinds and files that vanish are skipped, and so is
    git's own folder. Times, and modes but for who may execute, are the same for all: they could
    hold a program.

    Raises ValueError if the workspace is missing, too large or cannot be read.
    """
    if not workspace.is_dir():
        raise ValueError("the workspace is gone")
    size = count = 0
    for at, inner, files in os.walk(workspace):
        inner[:] = (name for name in inner if name != ".git")
        here = copy / Path(at).relative_to(workspace)
        with _raise_workspace_errors(Path(at)):
            here.mkdir()
        for name in (*inner, *files):
            source, target = Path(at, name), here / name
            with _raise_workspace_errors(source):
                status = source.lstat()
                size, count = size + status.st_size, count + 1
                if size > LARGEST or count > MOST:
                    limits = f"{LARGEST >> 20} MiB or {MOST:,} files"
                    raise ValueError(f"the workspace has over {limits}")
                if stat.S_ISLNK(status.st_mode):
                    target.symlink_to(source.readlink())
                elif stat.S_ISREG(status.st_mode):
                    shutil.copyfile(source, target, follow_symlinks=False)
                    target.chmod(0o755 if status.st_mode & 0o111 else 0o644)
                    os.utime(target, (_COPIED, _COPIED))


@contextmanager
def _raise_workspace_errors(path: Path) -> Iterator[None]:
    """Turn errors caused by the workspace into ValueError, so that no agent can avoid grading."""
    try:
        yield
    except FileNotFoundError:
        return
    except OSError as error:
        if error.errno not in (errno.EACCES, errno.EPERM, errno.ENAMETOOLONG, errno.ELOOP):
            raise
        raise ValueError(f"{path.name[:80]} cannot be copied: {error.strerror}") from None


def force_remove_folder(folder: Path) -> None:
    """Remove a folder, including subfolders that programs made inaccessible or very deep."""
    try:
        shutil.rmtree(folder)
    except OSError:
        remove_folder(str(folder))
