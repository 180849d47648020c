"""Grades a stage of YatCC by its own targets, on a new copy of the checkout with the agent's tasks.

The tests, the answers and the scripts that score are those of the checkout; of the workspace only
`task/` and the choice of front ends are taken. Each grading builds from nothing, in limited
processes, and only a score file that this very run has written is a score. Two things cannot be
helped: the answers lie in the tree in which the agent's program runs, as YatCC has it, and T4 is
timed by the clock, so its score is noisy.
"""

import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from scenarios.compiler.contract import CaseGrade, Graded, Result, Slot
from scenarios.compiler.submission import copied, remove
from scenarios.sandbox.limited import Ended, Limits, run
from scenarios.yatcc import scores
from scenarios.yatcc.checkout import Checkout, built, environment, rewritten, scored, settings

LIMITS = Limits(
    cpu=7200,
    memory=16 << 30,
    file=2 << 30,
    disk=8 << 30,
    processes=512,
    files=4096,
    output=16 << 20,
    wall=1800,
)
"""Of one step: configuring, building or scoring a stage."""
CHOICES = ("TASK1_WITH", "TASK2_WITH")
"""What an agent may choose in its `config.cmake`."""


def grade(
    checkout: Checkout,
    stage: str,
    workspace: Path,
    given: Slot,
    *,
    jobs: int,
    limits: Limits = LIMITS,
) -> Graded:
    """What the workspace's program for a stage is worth by the score that YatCC gives it."""
    with _place() as place:
        tree = place / "tree"
        try:
            _tree(checkout, workspace, stage, given, tree)
        except ValueError as error:
            return _said(stage, given, _none("agent_error", f"its tasks: {error}"))
        except OSError as error:
            why = f"there is no copy to grade: {error}"
            return _said(stage, given, _none("infrastructure_error", why))
        grader = _Grader(checkout=checkout, tree=tree, jobs=jobs, limits=limits)
        found = grader.grade(stage, reached=_reached(stage, given))
        if not isinstance(found, scores.Scored) and found.result == "agent_error":
            remove(tree)
            checkout.copy(tree)
            found = grader.blamed(stage, found)
    return _said(stage, given, found)


@contextmanager
def _place() -> Iterator[Path]:
    """A new folder that a limited process, which is another user, finds its way into."""
    folder = Path(tempfile.mkdtemp(prefix="stumble-yatcc-"))
    try:
        folder.chmod(0o755)
        yield folder
    finally:
        remove(folder)


def _tree(checkout: Checkout, workspace: Path, stage: str, given: Slot, tree: Path) -> None:
    """What is graded: ValueError where the workspace is at fault, OSError where it is not."""
    checkout.copy(tree, without=("task",))
    copied(workspace / "task", tree / "task")
    config = tree / "config.cmake"
    wanted = {}
    if (own := workspace / "config.cmake").is_file():
        chosen = settings(_theirs(own))
        wanted = {name: chosen[name] for name in CHOICES if chosen.get(name, "").isalnum()}
    if stage > "T1":
        wanted[f"TASK{stage[1]}_REVIVE"] = "ON" if given.provenance == "golden" else "OFF"
    config.write_text(rewritten(config.read_text("utf-8"), wanted), "utf-8")


def _theirs(config: Path) -> str:
    try:
        return config.read_text("utf-8", "replace")
    except OSError as error:
        raise ValueError(f"{config.name} cannot be read: {error.strerror}") from None


def _reached(stage: str, given: Slot) -> bool:
    """Without golden artifacts T1 to T4 are given the source, and T5 what the agent's T4 made."""
    return given.provenance == "golden" or stage != "T5"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Grader:
    checkout: Checkout
    tree: Path
    jobs: int
    limits: Limits

    def grade(self, stage: str, *, reached: bool) -> scores.Scored | CaseGrade:
        """The score, or what there is instead of one."""
        if failed := self._built(stage):
            return failed
        target = self._target(scored(int(stage[1])))
        folder = self.tree / "build" / "test" / f"task{stage[1]}"
        files = [folder / name for name in scores.names(stage)]
        before, began = [_changed(path) for path in files if path.is_file()], time.time_ns()
        ended = self._cmake("--build", "build", "--target", target)
        found = [path for path in files if path.is_file()]
        if not found:
            why = f"{target} left no {files[0].name}: {_last(ended)}"
            return _none("infrastructure_error", why)
        # File systems keep times by the tick, so a file of this run may seem a little older. One
        # that the agent's build left may say that it is of any time.
        changed = _changed(found[0])
        if changed in before or changed[1] < began - 20_000_000:
            why = f"{found[0].name} is older than this run of {target}"
            return _none("infrastructure_error", why)
        try:
            return scores.read(found[0], reached=reached)
        except ValueError as error:
            return _none("infrastructure_error", str(error))

    def blamed(self, stage: str, failed: CaseGrade) -> CaseGrade:
        """Whose fault a failed build is: not the agent's, where the checkout alone fails too."""
        alone = self._built(stage)
        if alone is None:
            return failed
        why = f"the checkout does not build without the agent's tasks either: {alone.why}"
        return _none("infrastructure_error", why)

    def _built(self, stage: str) -> CaseGrade | None:
        """Why there is no program; None where there is one."""
        configured = self._cmake("-S", ".", "-B", "build", *self.checkout.configured())
        if configured.code != 0:
            return _of(configured, "it cannot be configured")
        target = self._target(built(int(stage[1])))
        made = self._cmake("--build", "build", "--target", target, "--parallel", str(self.jobs))
        return None if made.code == 0 else _of(made, f"{target} does not build")

    def _target(self, names: Sequence[str]) -> str:
        there = self.checkout.targets(self.tree / "build")
        return next((name for name in names if name in there), names[-1])

    def _cmake(self, *words: str) -> Ended:
        with _place() as place:
            (place / "scratch").mkdir()
            return run(
                ["cmake", *words],
                cwd=self.tree,
                scratch=place / "scratch",
                env=environment(),
                limits=self.limits,
                writes=(self.tree,),
            )


def _changed(path: Path) -> tuple[int, int]:
    """Which file it is, and when its contents changed, as it says."""
    status = path.stat()
    return status.st_ino, status.st_mtime_ns


def _of(ended: Ended, what: str) -> CaseGrade:
    if ended.unstarted:
        return _none("infrastructure_error", f"cmake could not be started: {ended.unstarted}")
    if ended.beyond is not None:
        return _none("limit", f"{what}: it used up its {ended.beyond}")
    return _none("agent_error", f"{what}: {_last(ended)}")


def _last(ended: Ended) -> str:
    """The last words of a build that say something of an error, else its last words."""
    lines = (ended.stdout + b"\n" + ended.stderr).decode("utf-8", "replace").splitlines()
    told = [line.strip() for line in lines if line.strip()]
    errors = [line for line in told if "error" in line.lower()]
    return (errors or told or [f"it ended with {ended.code}"])[-1 if not errors else 0][:500]


def _none(result: Result, why: str) -> CaseGrade:
    score = None if result == "infrastructure_error" else 0.0
    return CaseGrade(case="score", result=result, score=score, reached=True, why=why)


def _said(stage: str, given: Slot, found: scores.Scored | CaseGrade) -> Graded:
    graded = Graded(
        stage=stage,
        given=given.provenance,
        cases=(found,) if isinstance(found, CaseGrade) else found.cases,
        left=Slot(stage=stage, provenance="own"),
    )
    return graded if isinstance(found, CaseGrade) else replace(graded, total=found.total)
