"""Workloads of the pipeline: workspace layout, stage inputs and grading."""

from pathlib import Path
from typing import Protocol

from msgspec import Struct

from sandbox.types import SandboxMount
from scenarios.pipeline.compiler import golden, grading, starter_workspace, toolchain
from scenarios.pipeline.compiler.scoring import environment
from scenarios.pipeline.compiler.types import ArtifactSlot, StageGrade
from scenarios.pipeline.yatcc.checkout import YatccCheckout
from scenarios.pipeline.yatcc.workload import YATCC_PREFIX, YatccWorkload
from traces.did_you_mean import suggest_nearest_name


class PipelineWorkload(Protocol):
    """One set of stages."""

    def missing(self) -> str | None:
        """Return a line about missing prerequisites, or None."""
        ...

    def lay_out(self, folder: Path, language: str, *, bare: bool) -> None:
        """Create the workspace of the agent; `bare` omits the starter."""
        ...

    def task(self, folder: Path, stage: str, *, first: bool) -> str:
        """Return the task of a stage; `first` in a conversation starts with the overall task."""
        ...

    def mounts(self) -> tuple[SandboxMount, ...]:
        """Return the mounts that a sandboxed agent needs."""
        ...

    def source(self) -> ArtifactSlot:
        """Return the input of the first stage with cases."""
        ...

    def golden(self, stage: str) -> ArtifactSlot:
        """Return the golden artifacts of a stage."""
        ...

    def grade(self, stage: str, workspace: Path, given: ArtifactSlot, *, jobs: int) -> StageGrade:
        """Grade a stage on a copy of the workspace."""
        ...


class EmbeddedWorkload(Struct, frozen=True):
    """The compiler of a small C, which needs only Python packages."""

    seed: int = 0
    """Its programs are drawn from it."""
    chosen: str = ""
    """Which attempts they are (`golden.choose_programs`); chosen again if that is unknown."""

    def missing(self) -> str | None:
        """Return missing or unusable prerequisites and how to install them, or None."""
        return "; ".join(environment.find_missing_prerequisites()) or None

    def lay_out(self, folder: Path, language: str, *, bare: bool) -> None:
        """Write the tasks, the samples, the check and the starter."""
        starter_workspace.create_starter_workspace(folder, language, bare=bare)

    def task(self, folder: Path, stage: str, *, first: bool) -> str:
        """Return the task from the starter, not from the agent's copy."""
        tasks = starter_workspace.STARTERS / "tasks"
        stage_task = (tasks / stage.lower() / "TASK.md").read_text()
        overall_task = (tasks / "TASK.md").read_text()
        text = f"Now work at stage {stage} only, in the folder {stage.lower()}/.\n\n{stage_task}"
        return f"{overall_task}\n{text}" if first else text

    def mounts(self) -> tuple[SandboxMount, ...]:
        """Return the compiler and the emulator, with which the check runs samples."""
        tools = (toolchain.find_zig().parent, toolchain.find_unicorn())
        return tuple(SandboxMount(source=path, target=str(path)) for path in tools)

    def source(self) -> ArtifactSlot:
        """Return the source programs."""
        return self.golden("source")

    def golden(self, stage: str) -> ArtifactSlot:
        """Return what clang makes of the programs of the seed."""
        return golden.load_golden_slot(stage, seed=self.seed, chosen=self.chosen)

    def grade(self, stage: str, workspace: Path, given: ArtifactSlot, *, jobs: int) -> StageGrade:
        """Grade in limited processes, on copies."""
        return grading.grade_stage(
            stage, workspace, given, jobs=jobs, seed=self.seed, chosen=self.chosen
        )


EMBEDDED = "embedded"


def choose_workload(name: str) -> str:
    """Return a workload's name with the programs that its seed has, which takes some seconds."""
    work = find_workload(name)
    if not isinstance(work, EmbeddedWorkload) or work.chosen:
        return name
    return f"{EMBEDDED}:{work.seed}:{golden.choose_programs(work.seed)}"


def find_workload(name: str) -> PipelineWorkload:
    """Return the workload `embedded`, `embedded:SEED:CHOSEN` or `yatcc:FOLDER`. Raises LookupError
    if unknown.
    """
    if name.startswith(YATCC_PREFIX):
        return YatccWorkload(YatccCheckout(folder=Path(name.removeprefix(YATCC_PREFIX))))
    kind, seed, chosen = (*name.split(":"), "", "")[:3]
    if kind != EMBEDDED:
        near = suggest_nearest_name(kind, (EMBEDDED,))
        raise LookupError(f"no workload is called {name!r}{near}")
    return EmbeddedWorkload(int(seed or 0), chosen)
