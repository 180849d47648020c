"""Grade a YatCC stage with its targets: the agent's program, in a tree that is not the agent's.

Two copies of the checkout are built, in limited processes. In one the agent's `task/` is built: its
CMake files and the commands of its build run there and nowhere else. The other is the checkout as
the user has it; the answers are made there and the checkout's own program is scored, as a control.
Then the agent's program replaces it and is scored by the same target. All but `build` is read-only
by then. If an answer is not as the control left it, or the scores are of other cases than the
control's, they do not count.

Every stage is given the checkout's answers of the stage before. (Without that, YatCC gives T2 and
T3 source text in place of tokens and trees, and runs a T4 that does not exist.)

Limitations: the answers are readable in the tree in which the agent's program runs, as in YatCC,
and T4 is timed by the wall clock, so its score is noisy.
"""

import hashlib
import os
import shutil
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from copy import replace
from pathlib import Path

from msgspec import Struct

from sandbox.limited_process import FolderAccess, LimitedResult, ProcessLimits, run_limited
from scenarios.pipeline.compiler.scoring.artifact_score import shorten_explanation
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
GIVEN_ANSWERS = {f"TASK{number}_REVIVE": "ON" for number in range(2, 6)}
_FIXED = ("answer", "cases")
"""What the names of the files below `build/test` begin with that no scoring changes."""


def grade_yatcc_stage(
    checkout: YatccCheckout,
    stage: str,
    workspace: Path,
    *,
    jobs: int,
    limits: ProcessLimits = LIMITS,
) -> StageGrade:
    """Grade the workspace's program for a stage with the score that YatCC gives it."""
    with _make_readable_folder() as folder:
        agents = _YatccTree(checkout=checkout, folder=folder / "own", jobs=jobs, limits=limits)
        graders = replace(agents, folder=folder / "tree")
        try:
            _copy_tree(checkout, graders.folder, {})
            _copy_agent_tree(checkout, workspace, agents.folder)
        except ValueError as error:
            return _to_stage_grade(
                stage, _make_unscored_grade("agent_error", f"its tasks: {error}")
            )
        except OSError as error:
            why = f"there is no copy to grade: {error}"
            return _to_stage_grade(stage, _make_unscored_grade("infrastructure_error", why))
        return _to_stage_grade(stage, _grade_trees(stage, agents, graders))


@contextmanager
def _make_readable_folder() -> Iterator[Path]:
    """Create a temporary folder that a limited process, which runs as another user, can enter."""
    folder = Path(tempfile.mkdtemp(prefix="stumble-yatcc-"))
    try:
        folder.chmod(0o755)
        yield folder
    finally:
        force_remove_folder(folder)


def _copy_agent_tree(checkout: YatccCheckout, workspace: Path, tree: Path) -> None:
    """Create the tree of the agent's tasks. Raises ValueError if the workspace is at fault, OSError
    if it is not.
    """
    settings = {}
    if (agent_config := workspace / "config.cmake").is_file():
        chosen = parse_cmake_settings(_read_agent_config(agent_config))
        settings = {name: chosen[name] for name in CHOICES if chosen.get(name, "").isalnum()}
    _copy_tree(checkout, tree, settings, without=("task",))
    copy_submitted_files(workspace / "task", tree / "task")


def _copy_tree(
    checkout: YatccCheckout, tree: Path, settings: Mapping[str, str], without: Sequence[str] = ()
) -> None:
    checkout.copy_to(tree, without=without)
    (tree / "build").mkdir()
    config = tree / "config.cmake"
    wanted = {**settings, **GIVEN_ANSWERS}
    config.write_text(rewrite_cmake_settings(config.read_text("utf-8"), wanted), "utf-8")


def _read_agent_config(config: Path) -> str:
    try:
        return config.read_text("utf-8", "replace")
    except OSError as error:
        raise ValueError(f"{config.name} cannot be read: {error.strerror}") from None


def _grade_trees(
    stage: str, agents: "_YatccTree", graders: "_YatccTree"
) -> scores.YatccScores | CaseGrade:
    """Return the score, or a grade without one that explains why."""
    failed = agents.build_stage(stage)
    if unmodified := graders.build_stage(stage):
        why = f"the checkout does not build without the agent's tasks either: {unmodified.why}"
        return _make_unscored_grade("infrastructure_error", why)
    if failed:
        return failed
    if unanswered := graders.make_answers(stage):
        return unanswered
    control = graders.score_control(stage)
    if isinstance(control, CaseGrade):
        return control
    if missing := _place_program(stage, agents, graders):
        return missing
    placed = graders.hash_program(stage)
    scored = graders.score_stage(stage, control)
    if graders.hash_program(stage) != placed:
        why = "the checkout built its own program again before it scored"
        return _make_unscored_grade("infrastructure_error", why)
    return scored


def _place_program(stage: str, agents: "_YatccTree", graders: "_YatccTree") -> CaseGrade | None:
    """Put the agent's program in the place of the checkout's own; return why there is none."""
    name = graders.find_target(list_build_targets(int(stage[1])))
    places, programs = graders.find_programs(name), agents.find_programs(name)
    if len(places) != 1:
        why = f"the checkout builds {len(places)} programs {name}, not one"
        return _make_unscored_grade("infrastructure_error", why)
    if len(programs) != 1:
        why = f"its build left {len(programs)} programs {name}, not one"
        return _make_unscored_grade("agent_error", why)
    # With another time, Ninja takes what it knows of the program for outdated and links it again.
    times = places[0].stat()
    places[0].unlink()
    shutil.copyfile(programs[0], places[0])
    places[0].chmod(0o755)
    os.utime(places[0], ns=(times.st_atime_ns, times.st_mtime_ns))
    return None


def _is_program(path: Path) -> bool:
    return path.is_file() and not path.is_symlink() and bool(path.stat().st_mode & 0o100)


class _ControlScore(Struct, frozen=True, kw_only=True):
    """The scoring of the checkout's own program."""

    cases: tuple[str, ...]
    """The names of its scores, sorted."""
    answers: Mapping[str, bytes]
    """The hash of each answer after it: T5's scoring writes some of them again."""


class _YatccTree(Struct, frozen=True, kw_only=True):
    """A copy of the checkout, to build in."""

    checkout: YatccCheckout
    folder: Path
    jobs: int
    limits: ProcessLimits

    def build_stage(self, stage: str) -> CaseGrade | None:
        """Return why there is no program; None if it was built."""
        sources = (self.folder / "build", self.folder / "task")  # YatCC configures files there
        arguments = self.checkout.read_cmake_arguments()
        configured = self._run("cmake", "-S", ".", "-B", "build", *arguments, writes=sources)
        if configured.code != 0:
            return _to_failed_grade(configured, "it cannot be configured")
        target = self.find_target(list_build_targets(int(stage[1])))
        built = self._run(
            *("cmake", "--build", "build", "--target", target, "--parallel", str(self.jobs)),
            writes=sources,
        )
        return None if built.code == 0 else _to_failed_grade(built, f"{target} does not build")

    def make_answers(self, stage: str) -> CaseGrade | None:
        """Make the answers of a stage and of the one before, which are its input; return why that
        failed.
        """
        number = int(stage[1])
        targets = self.checkout.list_targets(self.folder / "build")
        for target in (f"task{each}-answer" for each in (number - 1, number)):
            if target in targets:
                made = self._run("cmake", "--build", "build", "--target", target)
                if made.code != 0:
                    why = f"the checkout's {target} failed: {_find_build_error(made)}"
                    return _make_unscored_grade("infrastructure_error", why)
        return None

    def score_control(self, stage: str) -> "_ControlScore | CaseGrade":
        """Score the checkout's own program, for what its scoring does whatever the program does;
        remove what that left.
        """
        before = set(self._list_test_files())
        scored = self._run_scoring(stage)
        if isinstance(scored, CaseGrade):
            why = f"the checkout's own program cannot be scored: {scored.why}"
            return _make_unscored_grade("infrastructure_error", why)
        names = sorted(case.case for case in scored.cases)
        control = _ControlScore(cases=tuple(names), answers=self._hash_answers())
        for path in set(self._list_test_files()) - before:
            if not path.name.startswith(_FIXED):
                path.unlink()
        return control

    def score_stage(self, stage: str, control: "_ControlScore") -> scores.YatccScores | CaseGrade:
        """Return the score that the checkout's target gives the program that is in place."""
        scored = self._run_scoring(stage)
        changed = sorted(n for n, was in control.answers.items() if self._hash(n) != was)
        if changed:
            why = f"the answers were changed while the program ran: {', '.join(changed[:3])}"
            return _make_unscored_grade("agent_error", why)
        if isinstance(scored, CaseGrade):
            return scored
        names = [case.case for case in scored.cases]
        if foreign := _explain_foreign_cases(names, control.cases):
            return _make_unscored_grade("agent_error", foreign)
        return scored

    def _run_scoring(self, stage: str) -> scores.YatccScores | CaseGrade:
        """Run the score target; return the scores that it wrote."""
        number = int(stage[1])
        target = self.find_target(list_score_targets(number))
        files = [
            self.folder / "build" / "test" / f"task{number}" / name
            for name in scores.list_score_files(stage)
        ]
        began = time.time_ns()
        before = [_read_inode_and_mtime(path) for path in files if path.is_file()]
        scoring = self._run("cmake", "--build", "build", "--target", target)
        if scoring.beyond is not None:
            return _make_unscored_grade("limit", f"{target}: it used up its {scoring.beyond}")
        written = [path for path in files if path.is_file()]
        if not written:
            why = f"{target} left no {files[0].name}: {_find_build_error(scoring)}"
            return _make_unscored_grade("infrastructure_error", why)
        # Timestamps have clock-tick granularity, so a file of this run may seem slightly older.
        now = _read_inode_and_mtime(written[0])
        if now in before or now[1] < began - 20_000_000:
            why = f"{written[0].name} is older than this run of {target}"
            return _make_unscored_grade("infrastructure_error", why)
        try:
            return scores.read_score_file(written[0])
        except ValueError as error:
            return _make_unscored_grade("infrastructure_error", str(error))

    def find_target(self, names: Sequence[str]) -> str:
        """Return the first of these targets that the tree has, else the last."""
        targets = self.checkout.list_targets(self.folder / "build")
        return next((name for name in names if name in targets), names[-1])

    def find_programs(self, name: str) -> Sequence[Path]:
        """Return the programs of a name that a build left; the folder depends on TASK1_WITH."""
        return [path for path in (self.folder / "build" / "task").rglob(name) if _is_program(path)]

    def hash_program(self, stage: str) -> Sequence[bytes]:
        """Return the hash of the stage's program."""
        found = self.find_programs(self.find_target(list_build_targets(int(stage[1]))))
        return [hashlib.sha256(path.read_bytes()).digest() for path in found]

    def _list_test_files(self) -> Iterator[Path]:
        """Yield the files below the folder in which the checkout makes answers and scores."""
        return (p for p in (self.folder / "build" / "test").rglob("*") if p.is_file())

    def _hash_answers(self) -> Mapping[str, bytes]:
        paths = (path for path in self._list_test_files() if path.name.startswith(_FIXED))
        names = (str(path.relative_to(self.folder)) for path in paths)
        return {name: self._hash(name) for name in names}

    def _hash(self, name: str) -> bytes:
        path = self.folder / name
        return hashlib.sha256(path.read_bytes()).digest() if path.is_file() else b""

    def _run(self, *command: str, writes: Sequence[Path] | None = None) -> LimitedResult:
        """Run a command that may write `build`, or the given folders, and its own scratch folder,
        which is its temporary folder and its home as well.
        """
        with _make_readable_folder() as folder:
            scratch = folder / "scratch"
            scratch.mkdir()
            return run_limited(
                command,
                cwd=self.folder,
                scratch=scratch,
                env={**select_build_env(), "TMPDIR": str(scratch), "HOME": str(scratch)},
                limits=self.limits,
                folders=FolderAccess(writes=writes or (self.folder / "build",)),
            )


def _explain_foreign_cases(scored: Sequence[str], cases: Sequence[str]) -> str | None:
    """Return why scores are not those of the checkout's cases; None if they are."""
    if foreign := sorted(set(scored) - set(cases)):
        return f"scores of cases that the checkout does not have: {', '.join(foreign[:3])}"
    if sorted(scored) != sorted(cases):
        return f"{len(scored)} scores for {len(cases)} cases of the checkout"
    return None


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
    return CaseGrade(
        case="score", result=result, score=score, reached=True, why=shorten_explanation(why)
    )


def _to_stage_grade(stage: str, found: scores.YatccScores | CaseGrade) -> StageGrade:
    graded = StageGrade(
        stage=stage,
        given="golden",
        cases=(found,) if isinstance(found, CaseGrade) else found.cases,
        left=ArtifactSlot(stage=stage, provenance="own"),
    )
    return graded if isinstance(found, CaseGrade) else replace(graded, total=found.total)
