"""Grade a YatCC stage with its targets, on a fresh copy of the checkout with the agent's tasks.

Tests, answers and scoring scripts come from the checkout; only `task/` and the choice of front ends
come from the workspace. Each grading builds from scratch, in limited processes, and only a score
file that this run wrote counts. Two limitations remain: the answers are in the tree in which the
agent's program runs, as in YatCC, and T4 is timed by the wall clock, so its score is noisy.
"""

import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from sandbox.limited_process import FolderAccess, LimitedResult, ProcessLimits, run_limited
from scenarios.pipeline.compiler.submission import copy_submitted_files, force_remove_folder
from scenarios.pipeline.compiler.types import ArtifactSlot, CaseGrade, Result, StageGrade
from scenarios.pipeline.yatcc import scores
from scenarios.pipeline.yatcc.checkout import (
    YatccCheckout,
    list_build_targets,
    list_score_targets,
    parse_cmake_settings,
    rewrite_cmake_settings,
    select_build_env,
)

LIMITS = ProcessLimits(
    cpu=7200,
    memory=16 << 30,
    file=2 << 30,
    disk=8 << 30,
    processes=512,
    files=4096,
    output=16 << 20,
    wall=1800,
)
"""Limits of one step: configuring, building or scoring a stage."""
CHOICES = ("TASK1_WITH", "TASK2_WITH")
"""Variables that an agent may set in its `config.cmake`."""


def grade_yatcc_stage(
    checkout: YatccCheckout,
    stage: str,
    workspace: Path,
    given: ArtifactSlot,
    *,
    jobs: int,
    limits: ProcessLimits = LIMITS,
) -> StageGrade:
    """Grade the workspace's program for a stage with the score that YatCC gives it."""
    with _make_readable_folder() as folder:
        tree = folder / "tree"
        try:
            _prepare_graded_tree(checkout, workspace, stage, given, tree)
        except ValueError as error:
            return _to_stage_grade(
                stage, given, _make_unscored_grade("agent_error", f"its tasks: {error}")
            )
        except OSError as error:
            why = f"there is no copy to grade: {error}"
            return _to_stage_grade(stage, given, _make_unscored_grade("infrastructure_error", why))
        grader = _YatccGrader(checkout=checkout, tree=tree, jobs=jobs, limits=limits)
        graded = grader.score_stage(stage, reached=_is_stage_reached(stage, given))
        if not isinstance(graded, scores.YatccScores) and graded.result == "agent_error":
            force_remove_folder(tree)
            checkout.copy_to(tree)
            graded = grader.attribute_build_failure(stage, graded)
    return _to_stage_grade(stage, given, graded)


@contextmanager
def _make_readable_folder() -> Iterator[Path]:
    """Create a temporary folder that a limited process, which runs as another user, can enter."""
    folder = Path(tempfile.mkdtemp(prefix="stumble-yatcc-"))
    try:
        folder.chmod(0o755)
        yield folder
    finally:
        force_remove_folder(folder)


def _prepare_graded_tree(
    checkout: YatccCheckout, workspace: Path, stage: str, given: ArtifactSlot, tree: Path
) -> None:
    """Create the graded tree. Raises ValueError if the workspace is at fault, OSError if it is
    not.
    """
    checkout.copy_to(tree, without=("task",))
    copy_submitted_files(workspace / "task", tree / "task")
    config = tree / "config.cmake"
    settings = {}
    if (agent_config := workspace / "config.cmake").is_file():
        chosen = parse_cmake_settings(_read_agent_config(agent_config))
        settings = {name: chosen[name] for name in CHOICES if chosen.get(name, "").isalnum()}
    if stage > "T1":
        settings[f"TASK{stage[1]}_REVIVE"] = "ON" if given.provenance == "golden" else "OFF"
    config.write_text(rewrite_cmake_settings(config.read_text("utf-8"), settings), "utf-8")


def _read_agent_config(config: Path) -> str:
    try:
        return config.read_text("utf-8", "replace")
    except OSError as error:
        raise ValueError(f"{config.name} cannot be read: {error.strerror}") from None


def _is_stage_reached(stage: str, given: ArtifactSlot) -> bool:
    """Without golden artifacts T1 to T4 get the source, and T5 the output of the agent's T4."""
    return given.provenance == "golden" or stage != "T5"


@dataclass(frozen=True, slots=True, kw_only=True)
class _YatccGrader:
    checkout: YatccCheckout
    tree: Path
    jobs: int
    limits: ProcessLimits

    def score_stage(self, stage: str, *, reached: bool) -> scores.YatccScores | CaseGrade:
        """Return the score, or a grade without one that explains why."""
        if failed := self._build_stage(stage):
            return failed
        target = self._find_target(list_score_targets(int(stage[1])))
        folder = self.tree / "build" / "test" / f"task{stage[1]}"
        files = [folder / name for name in scores.list_score_files(stage)]
        before, began = (
            [_read_inode_and_mtime(path) for path in files if path.is_file()],
            time.time_ns(),
        )
        scoring = self._run_cmake("--build", "build", "--target", target)
        written = [path for path in files if path.is_file()]
        if not written:
            why = f"{target} left no {files[0].name}: {_find_build_error(scoring)}"
            return _make_unscored_grade("infrastructure_error", why)
        # Timestamps have clock-tick granularity, so a file of this run may seem slightly older.
        # A file left by the agent's build may have any timestamp.
        changed = _read_inode_and_mtime(written[0])
        if changed in before or changed[1] < began - 20_000_000:
            why = f"{written[0].name} is older than this run of {target}"
            return _make_unscored_grade("infrastructure_error", why)
        try:
            return scores.read_score_file(written[0], reached=reached)
        except ValueError as error:
            return _make_unscored_grade("infrastructure_error", str(error))

    def attribute_build_failure(self, stage: str, failed: CaseGrade) -> CaseGrade:
        """Return a failed build's grade: not the agent's fault if the checkout alone fails too."""
        unmodified = self._build_stage(stage)
        if unmodified is None:
            return failed
        why = f"the checkout does not build without the agent's tasks either: {unmodified.why}"
        return _make_unscored_grade("infrastructure_error", why)

    def _build_stage(self, stage: str) -> CaseGrade | None:
        """Return why there is no program; None if it was built."""
        configured = self._run_cmake(
            "-S", ".", "-B", "build", *self.checkout.read_cmake_arguments()
        )
        if configured.code != 0:
            return _to_failed_grade(configured, "it cannot be configured")
        target = self._find_target(list_build_targets(int(stage[1])))
        built = self._run_cmake(
            "--build", "build", "--target", target, "--parallel", str(self.jobs)
        )
        return None if built.code == 0 else _to_failed_grade(built, f"{target} does not build")

    def _find_target(self, names: Sequence[str]) -> str:
        targets = self.checkout.list_targets(self.tree / "build")
        return next((name for name in names if name in targets), names[-1])

    def _run_cmake(self, *words: str) -> LimitedResult:
        with _make_readable_folder() as folder:
            (folder / "scratch").mkdir()
            return run_limited(
                ["cmake", *words],
                cwd=self.tree,
                scratch=folder / "scratch",
                env=select_build_env(),
                limits=self.limits,
                folders=FolderAccess(writes=(self.tree,)),
            )


def _read_inode_and_mtime(path: Path) -> tuple[int, int]:
    """Return the file's inode and its modification time in nanoseconds."""
    status = path.stat()
    return status.st_ino, status.st_mtime_ns


def _to_failed_grade(ended: LimitedResult, what: str) -> CaseGrade:
    if ended.unstarted:
        return _make_unscored_grade(
            "infrastructure_error", f"cmake could not be started: {ended.unstarted}"
        )
    if ended.beyond is not None:
        return _make_unscored_grade("limit", f"{what}: it used up its {ended.beyond}")
    return _make_unscored_grade("agent_error", f"{what}: {_find_build_error(ended)}")


def _find_build_error(ended: LimitedResult) -> str:
    """Return the first line of a build's output with "error" in it, else the last line."""
    lines = (ended.stdout + b"\n" + ended.stderr).decode("utf-8", "replace").splitlines()
    printed = [line.strip() for line in lines if line.strip()]
    errors = [line for line in printed if "error" in line.lower()]
    return (errors or printed or [f"it ended with {ended.code}"])[-1 if not errors else 0][:500]


def _make_unscored_grade(result: Result, why: str) -> CaseGrade:
    score = None if result == "infrastructure_error" else 0.0
    return CaseGrade(case="score", result=result, score=score, reached=True, why=why)


def _to_stage_grade(
    stage: str, given: ArtifactSlot, found: scores.YatccScores | CaseGrade
) -> StageGrade:
    graded = StageGrade(
        stage=stage,
        given=given.provenance,
        cases=(found,) if isinstance(found, CaseGrade) else found.cases,
        left=ArtifactSlot(stage=stage, provenance="own"),
    )
    return graded if isinstance(found, CaseGrade) else replace(graded, total=found.total)
