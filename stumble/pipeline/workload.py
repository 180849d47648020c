"""What the stages are: how a workspace is laid out, what is given to a stage, and who grades it."""

from pathlib import Path
from typing import Protocol

from scenarios.compiler import environment, golden, grading, starter, toolchain
from scenarios.compiler.contract import Graded, Slot
from scenarios.sandbox.values import Mount
from scenarios.yatcc.checkout import Checkout
from stumble.pipeline.yatcc import YATCC, YatCC
from traces.nearest import nearest


class Workload(Protocol):
    """One set of stages."""

    def missing(self) -> str | None:
        """The line that says what has to be installed first; None where nothing has."""
        ...

    def lay_out(self, folder: Path, language: str, *, bare: bool) -> None:
        """Make the workspace as the agent finds it; `bare` is without a starter."""
        ...

    def task(self, folder: Path, stage: str, *, first: bool) -> str:
        """The text of a stage's task; the first one of a conversation begins with the whole."""
        ...

    def mounts(self) -> tuple[Mount, ...]:
        """What of this machine an agent in a sandbox needs for it."""
        ...

    def source(self) -> Slot:
        """What the first stage with cases is given."""
        ...

    def golden(self, stage: str) -> Slot:
        """The golden artifacts of a stage."""
        ...

    def grade(self, stage: str, workspace: Path, given: Slot, *, jobs: int) -> Graded:
        """What a stage came to, found on a copy of the workspace."""
        ...


class Embedded:
    """The compiler of a small C, which needs nothing but packages."""

    def missing(self) -> str | None:
        """What any of the stages lacks or cannot use here, and how to install it; or None."""
        return "; ".join(environment.lacking()) or None

    def lay_out(self, folder: Path, language: str, *, bare: bool) -> None:
        """The tasks, the samples, the check, and the starter."""
        starter.lay_out(folder, language, bare=bare)

    def task(self, folder: Path, stage: str, *, first: bool) -> str:
        """As the starter has it, whatever an agent has made of its copy."""
        tasks = starter.STARTERS / "tasks"
        own = (tasks / stage.lower() / "TASK.md").read_text()
        whole = (tasks / "TASK.md").read_text()
        now = f"Now work at stage {stage} only, in the folder {stage.lower()}/.\n\n{own}"
        return f"{whole}\n{now}" if first else now

    def mounts(self) -> tuple[Mount, ...]:
        """The compiler and the machine, by which the check runs samples."""
        tools = (toolchain.zig().parent, toolchain.unicorn())
        return tuple(Mount(source=path, target=str(path)) for path in tools)

    def source(self) -> Slot:
        """The programs."""
        return golden.source_slot()

    def golden(self, stage: str) -> Slot:
        """As frozen."""
        return golden.slot(stage)

    def grade(self, stage: str, workspace: Path, given: Slot, *, jobs: int) -> Graded:
        """In limited processes, on copies."""
        return grading.grade(stage, workspace, given, jobs=jobs)


WORKLOADS = {"embedded": Embedded}


def workload(name: str) -> Workload:
    """The workload of that name, `yatcc:FOLDER` with its checkout; LookupError for no such one."""
    if name.startswith(YATCC):
        return YatCC(Checkout(folder=Path(name.removeprefix(YATCC))))
    if name not in WORKLOADS:
        raise LookupError(f"no workload is called {name!r}{nearest(name, WORKLOADS)}")
    return WORKLOADS[name]()
