"""What the stages are: how a workspace is laid out, what is given to a stage, and who grades it."""

from pathlib import Path
from typing import Protocol

from scenarios.compiler.contract import CaseGrade, Graded, Slot


class Workload(Protocol):
    """One set of stages."""

    def missing(self) -> str | None:
        """The line that says what has to be installed first; None where nothing has."""
        ...

    def lay_out(self, folder: Path, language: str, *, bare: bool) -> None:
        """Make the workspace as the agent finds it; `bare` is without a starter."""
        ...

    def task(self, folder: Path, stage: str | None) -> str:
        """The text of a stage's task; None is that of all of them."""
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


class Sketch:
    """The first sketch of a workload: a stage is passed by a file `tN/run`."""

    def missing(self) -> str | None:
        return None

    def lay_out(self, folder: Path, language: str, *, bare: bool) -> None:
        for number in range(6):
            (folder / f"t{number}").mkdir(parents=True)

    def task(self, folder: Path, stage: str | None) -> str:
        return f"Write the program of {stage}."

    def source(self) -> Slot:
        return Slot(stage="source", provenance="golden", artifacts={"one": b"source"})

    def golden(self, stage: str) -> Slot:
        return Slot(stage=stage, provenance="golden", artifacts={"one": b"golden"})

    def grade(self, stage: str, workspace: Path, given: Slot, *, jobs: int) -> Graded:
        there = (workspace / stage.lower() / "run").exists()
        case = CaseGrade(
            case="one", result="pass" if there else "fail", score=100.0 * there, reached=True
        )
        left = Slot(stage=stage, provenance="own", artifacts={"one": b"own"} if there else {})
        return Graded(stage=stage, given=given.provenance, cases=(case,), left=left)


def workload(name: str) -> Workload:
    """The workload of that name."""
    return Sketch()
