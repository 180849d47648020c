"""The workload of a YatCC checkout; the agent gets a copy of it."""

from pathlib import Path

from msgspec import Struct

from sandbox.types import SandboxMount
from scenarios.pipeline.compiler.types import ArtifactSlot, StageGrade
from scenarios.pipeline.yatcc.checkout import (
    LINKED,
    YatccCheckout,
    list_build_targets,
    list_score_targets,
)
from scenarios.pipeline.yatcc.grading import grade_yatcc_stage

YATCC_PREFIX = "yatcc:"
GOALS = {
    "T0": "that the environment works",
    "T1": "the lexer",
    "T2": "the parser",
    "T3": "the generation of LLVM IR",
    "T4": "the optimisation of LLVM IR",
    "T5": "the RISC-V back end",
}
TASK_TEMPLATE = """\
This folder is a checkout of the YatCC compiler labs, which you build with cmake in a folder build.
Work at {stage} only: {goal}. Its program is in task/{number}; only what is under task/ is handed
in, and the choice of front ends in config.cmake. Build it with the target {build}, and see your
score with the target {score}. You are done when every test of that target passes.
"""


class YatccWorkload(Struct, frozen=True):
    """The six tasks of a checkout, which contains their inputs; so slots are empty."""

    checkout: YatccCheckout

    def missing(self) -> str | None:
        """Return why the checkout cannot be used, or None."""
        return self.checkout.find_obstacle()

    def lay_out(self, folder: Path, language: str, *, bare: bool) -> None:
        """Copy the checkout as the user has it."""
        self.checkout.copy_to(folder)

    def task(self, folder: Path, stage: str, *, first: bool) -> str:
        """Return the folder of a stage's program, and its build and score targets, as a text."""
        number = int(stage[1:])
        targets = self.checkout.list_targets(self.checkout.folder / "build")

        def known(names: tuple[str, ...]) -> str:
            return next((name for name in names if name in targets), names[-1])

        return TASK_TEMPLATE.format(
            stage=f"task {number}",
            goal=GOALS[stage],
            number=number,
            build=known(list_build_targets(number)),
            score=known(list_score_targets(number)),
        )

    def mounts(self) -> tuple[SandboxMount, ...]:
        """Return the folders that the copy links to, such as LLVM."""
        links = [(self.checkout.folder / name).resolve() for name in LINKED]
        return tuple(SandboxMount(source=path, target=str(path)) for path in links if path.exists())

    def source(self) -> ArtifactSlot:
        """Return an empty slot: the programs are in the checkout."""
        return ArtifactSlot(stage="source", provenance="golden")

    def golden(self, stage: str) -> ArtifactSlot:
        """Return an empty slot: every stage is given the checkout's answers."""
        return ArtifactSlot(stage=stage, provenance="golden")

    def grade(self, stage: str, workspace: Path, given: ArtifactSlot, *, jobs: int) -> StageGrade:
        """Grade with the checkout's score targets, on another copy."""
        return grade_yatcc_stage(self.checkout, stage, workspace, jobs=jobs)
