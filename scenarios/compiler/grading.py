"""Grades a stage: runs the agent's program on every case, and judges what it made of each.

The program works on a copy of the workspace, in a limited process, from an input that we give to
an output that was not there before. A failure of ours is `infrastructure_error` and no score.
"""

from collections.abc import Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from scenarios.compiler import environment, execution, golden, tokens, trees
from scenarios.compiler.contract import STAGES, Case, CaseGrade, Graded, Slot
from scenarios.compiler.hello import HELLO
from scenarios.compiler.judged import Judged, shown
from scenarios.compiler.programs import graded
from scenarios.compiler.submission import Made, Submission, submission
from scenarios.sandbox.limited import WALLS

BEFORE: Mapping[str, str] = dict(zip(STAGES[2:], STAGES[1:], strict=False))
"""The stage whose artifacts a stage is given; T1 is given the source."""


def grade(
    stage: str, workspace: Path, given: Slot, *, jobs: int, cases: Sequence[Case] | None = None
) -> Graded:
    """What the workspace's program for a stage is worth, on what it is given.

    The same in each run, however many `jobs` work beside one another; on all graded programs, or
    only these `cases` of them. ValueError where golden artifacts are damaged.
    """
    chosen = tuple(graded() if cases is None else cases)
    grading = _Grading(stage=stage, given=given, right=golden.slot(stage), cases=chosen)
    with ExitStack() as stack:
        entered: _Entered
        try:
            entered = stack.enter_context(submission(workspace, stage))
        except ValueError as error:
            entered = Made(why=str(error))
        except OSError as error:  # no room for the copy
            entered = error
        return grading.graded(entered, jobs)


type _Entered = Submission | Made | OSError
"""The workspace's copy, or why the agent has none, or why we have not."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _One:
    """One case, graded, and what was made of it."""

    grade: CaseGrade
    made: Made = Made()


@dataclass(frozen=True, slots=True, kw_only=True)
class _Input:
    """What a stage is given for a case."""

    artifact: bytes | None
    right: bool
    instructions: float | None = None
    """That it executes, where it is IR that runs as it should."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Grading:
    stage: str
    given: Slot
    right: Slot
    cases: tuple[Case, ...]

    def graded(self, entered: _Entered, jobs: int) -> Graded:
        """Every case, of a workspace or of none."""
        if isinstance(entered, Submission):
            try:
                entered = entered.build() or entered
            except OSError as error:
                entered = error
        with ExitStack() as stack:
            pool = ThreadPoolExecutor(jobs)
            stack.callback(pool.shutdown, cancel_futures=True)
            if self.stage == "T0":
                running = {"environment": pool.submit(self._environment, entered)}
            else:
                one = partial(self._one, entered)
                running = {case.name: pool.submit(one, case) for case in self.cases}
            done = {name: _done(name, future) for name, future in running.items()}
        made = {name: each.made.artifact for name, each in done.items()}
        left = {name: artifact for name, artifact in made.items() if artifact is not None}
        return Graded(
            stage=self.stage,
            given=self.given.provenance,
            cases=tuple(each.grade for each in done.values()),
            left=Slot(stage=self.stage, provenance="own", artifacts=left),
            walls=_common([each.made.walls for each in done.values() if each.made.ran]),
        )

    def _environment(self, entered: _Entered) -> _One:
        """T0, whose only case is whether all that the other stages need is there."""
        if lacking := environment.lacking():
            judged = Judged(result="infrastructure_error", score=None, why="; ".join(lacking))
            return _One(grade=_grade("environment", judged, reached=True))
        made = _make(entered, HELLO)
        if made.artifact is None or not isinstance(entered, Submission):
            judged = _unmade(made)
        else:
            judged = environment.judge(made.artifact, entered)
        return _One(grade=_grade("environment", judged, reached=True), made=made)

    def _one(self, entered: _Entered, case: Case) -> _One:
        given = self._input(case)
        if given.artifact is None:
            why = f"{self.given.stage} left nothing for this case"
            judged = Judged(result="fail", score=0.0, why=why)
            return _One(grade=_grade(case.name, judged, reached=False))
        made = _make(entered, given.artifact)
        if made.artifact is None:
            judged = _unmade(made)
        else:
            judged = self._judged(case, made.artifact, given.instructions)
        return _One(grade=_grade(case.name, judged, reached=given.right), made=made)

    def _judged(self, case: Case, artifact: bytes, given: float | None) -> Judged:
        right = self.right.artifacts[case.name]
        if self.stage == "T4":
            return execution.optimised(case, artifact, golden.counts()[case.name], given)
        return _judged(self.stage, case, artifact, right)

    def _input(self, case: Case) -> _Input:
        """What is there to work on, and whether it is right: golden, or own with a full score.

        Own IR from T4 is right where it does what it should, however slow.
        """
        artifact, stage = self.given.artifacts.get(case.name), BEFORE.get(self.stage)
        counts = golden.counts()[case.name]
        if artifact is None or stage is None:
            return _Input(artifact=artifact, right=artifact is not None)
        right = golden.slot(stage).artifacts[case.name]
        if self.given.provenance == "golden" or artifact == right:
            return _Input(artifact=artifact, right=True, instructions=float(counts.plain))
        judged = _judged(stage, case, artifact, right)
        if judged.score is None:
            raise ChildProcessError(f"what {stage} left cannot be judged: {judged.why}")
        full = judged.score == 100
        executed = judged.facts.get("instructions") if full else None
        return _Input(artifact=artifact, right=full, instructions=executed)


def _judged(stage: str, case: Case, artifact: bytes, right: bytes) -> Judged:
    """What an artifact of a stage is worth; of T4 only whether it is right."""
    match stage:
        case "T1":
            return tokens.judge(right, artifact)
        case "T2":
            return trees.judge(right, artifact)
        case "T3" | "T4":
            return execution.judge(case, artifact, "ir")
        case _:
            return execution.judge(case, artifact, "assembly")


def _make(entered: _Entered, given: bytes) -> Made:
    """What the agent's program makes of an input; OSError where we have no copy of it."""
    match entered:
        case Submission():
            return entered.make(given)
        case Made():
            return entered
        case _:
            raise entered


def _unmade(made: Made) -> Judged:
    """What it says of the agent's program that it made nothing."""
    return Judged(result="limit" if made.limit else "agent_error", score=0.0, why=made.why)


def _grade(name: str, judged: Judged, *, reached: bool) -> CaseGrade:
    return CaseGrade(
        case=name,
        result=judged.result,
        score=judged.score,
        reached=reached,
        why=shown(judged.why),
        facts=judged.facts,
    )


def _done(name: str, future: "Future[_One]") -> _One:
    """What came of a case; a grader that broke is no failure of the agent's."""
    if (error := future.exception()) is None:
        return future.result()
    why = shown(f"the grader failed: {type(error).__name__}: {error}")
    judged = Judged(result="infrastructure_error", score=None, why=why)
    return _One(grade=_grade(name, judged, reached=True))


def _common(walls: list[tuple[str, ...]]) -> tuple[str, ...]:
    """The walls that stood around every run."""
    return tuple(wall for wall in WALLS if walls and all(wall in each for each in walls))
