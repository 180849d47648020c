"""The workload of a YatCC checkout: the agent works on a copy of it."""

from dataclasses import dataclass
from pathlib import Path

from scenarios.compiler.contract import Graded, Slot
from scenarios.sandbox.values import Mount
from scenarios.yatcc.checkout import LINKED, Checkout, built, scored
from scenarios.yatcc.grading import grade

YATCC = "yatcc:"
GOALS = {
    "T0": "that the environment works",
    "T1": "the lexer",
    "T2": "the parser",
    "T3": "the generation of LLVM IR",
    "T4": "the optimisation of LLVM IR",
    "T5": "the RISC-V back end",
}
TASK = """\
This folder is a checkout of the YatCC compiler labs, which you build with cmake in a folder build.
Work at {stage} only: {goal}. Its program is in task/{number}; only what is under task/ is handed
in, and the choice of front ends in config.cmake. Build it with the target {build}, and see your
score with the target {score}. You are done when every test of that target passes.
"""


@dataclass(frozen=True, slots=True)
class YatCC:
    """The six tasks of a checkout; what flows between them is in it, so slots are empty."""

    checkout: Checkout

    def missing(self) -> str | None:
        """What keeps the checkout from being used."""
        return self.checkout.missing()

    def lay_out(self, folder: Path, language: str, *, bare: bool) -> None:
        """A copy of the checkout as its user has it."""
        self.checkout.copy(folder)

    def task(self, folder: Path, stage: str, *, first: bool) -> str:
        """Where a stage's program lies and how it is built and scored, in our words."""
        number = int(stage[1:])
        there = self.checkout.targets(self.checkout.folder / "build")

        def known(names: tuple[str, ...]) -> str:
            return next((name for name in names if name in there), names[-1])

        return TASK.format(
            stage=f"task {number}",
            goal=GOALS[stage],
            number=number,
            build=known(built(number)),
            score=known(scored(number)),
        )

    def mounts(self) -> tuple[Mount, ...]:
        """LLVM and the like, which the copy links to."""
        links = [(self.checkout.folder / name).resolve() for name in LINKED]
        return tuple(Mount(source=path, target=str(path)) for path in links if path.exists())

    def source(self) -> Slot:
        """Nothing: the programs are in the checkout."""
        return Slot(stage="source", provenance="golden")

    def golden(self, stage: str) -> Slot:
        """Nothing: the next stage's setting has the checkout's own answers put in."""
        return Slot(stage=stage, provenance="golden")

    def grade(self, stage: str, workspace: Path, given: Slot, *, jobs: int) -> Graded:
        """By the checkout's own targets, on another copy."""
        return grade(self.checkout, stage, workspace, given, jobs=jobs)
