"""Grade a stage: run the agent's program on every case and score each output.

The program works on a copy of the workspace, in a limited process, from a given input to an output
path that did not exist before. A failure of the grader is `infrastructure_error`, without a score.
"""

from collections.abc import Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from copy import replace
from functools import partial
from pathlib import Path

from msgspec import Struct

from sandbox.limited_process import WALLS
from scenarios.pipeline.compiler import golden
from scenarios.pipeline.compiler.hello import compute_hello_exit, make_hello
from scenarios.pipeline.compiler.scoring import environment, execution, tokens, trees
from scenarios.pipeline.compiler.scoring.artifact_score import ArtifactScore, shorten_explanation
from scenarios.pipeline.compiler.submission import StageOutput, StageSubmission, copy_submission
from scenarios.pipeline.compiler.types import (
    STAGES,
    ArtifactSlot,
    CaseGrade,
    ProgramCase,
    StageGrade,
)

PREVIOUS_STAGE: Mapping[str, str] = dict(zip(STAGES[2:], STAGES[1:], strict=False))
"""The stage whose artifacts are a stage's input; T1 gets the source."""


def grade_stage(
    stage: str,
    workspace: Path,
    given: ArtifactSlot,
    *,
    jobs: int,
    cases: Sequence[ProgramCase] | None = None,
    seed: int = 0,
    chosen: str = "",
) -> StageGrade:
    """Grade the workspace's program for a stage on the given input.

    Deterministic, for any number of parallel `jobs`. Grades all graded programs, or only `cases`,
    drawn from `seed` and `chosen`. Raises ValueError if clang does not compile a program.
    """
    graded = tuple(golden.list_graded_cases(seed, chosen) if cases is None else cases)
    grading = _StageGrading(
        stage=stage,
        given=given,
        right=golden.load_golden_slot(stage, seed=seed, chosen=chosen),
        before=golden.load_golden_slot(
            PREVIOUS_STAGE.get(stage, "source"), seed=seed, chosen=chosen
        ),
        cases=graded,
        seed=seed,
    )
    with ExitStack() as stack:
        entered: _SubmissionState
        try:
            entered = stack.enter_context(copy_submission(workspace, stage))
        except ValueError as error:
            entered = StageOutput(why=str(error))
        except OSError as error:  # for example no space for the copy
            entered = error
        return grading.grade_cases(entered, jobs)


type _SubmissionState = StageSubmission | StageOutput | OSError
"""The workspace's copy, or the agent's fault, or the grader's error, that prevents one."""


class _GradedCase(Struct, frozen=True, kw_only=True):
    """The grade of one case and the program's output for it."""

    grade: CaseGrade
    made: StageOutput = StageOutput()


class _StageInput(Struct, frozen=True, kw_only=True):
    """The input of a stage for one case."""

    artifact: bytes | None
    right: bool


class _StageGrading(Struct, frozen=True, kw_only=True):
    stage: str
    given: ArtifactSlot
    right: ArtifactSlot
    before: ArtifactSlot
    """The golden slot of the stage before."""
    cases: tuple[ProgramCase, ...]
    seed: int

    def grade_cases(self, entered: _SubmissionState, jobs: int) -> StageGrade:
        """Grade every case, of a copied workspace or of a failed copy."""
        submission = entered if isinstance(entered, StageSubmission) else None
        if isinstance(entered, StageSubmission):
            try:
                entered = entered.build() or entered
            except OSError as error:
                entered = error
        with ExitStack() as stack:
            pool = ThreadPoolExecutor(jobs)
            stack.callback(pool.shutdown, cancel_futures=True)
            if self.stage == "T0":
                running = {"environment": pool.submit(self._grade_environment, entered)}
            else:
                grade_one = partial(self._grade_case, entered)
                running = {case.name: pool.submit(grade_one, case) for case in self.cases}
            graded = {name: _collect_graded_case(name, future) for name, future in running.items()}
        outputs = {name: each.made.artifact for name, each in graded.items()}
        artifacts = {name: artifact for name, artifact in outputs.items() if artifact is not None}
        return StageGrade(
            stage=self.stage,
            given=self.given.provenance,
            cases=tuple(each.grade for each in graded.values()),
            left=ArtifactSlot(stage=self.stage, provenance="own", artifacts=artifacts),
            files=submission.digest_read_files() if submission else None,
            walls=_find_common_walls(
                [each.made.walls for each in graded.values() if each.made.ran]
            ),
        )

    def _grade_environment(self, entered: _SubmissionState) -> _GradedCase:
        """Grade T0, whose only case is whether the other stages' prerequisites are present."""
        if missing := environment.find_missing_prerequisites():
            verdict = ArtifactScore(
                result="infrastructure_error", score=None, why="; ".join(missing)
            )
            return _GradedCase(grade=_to_case_grade("environment", verdict, reached=True))
        output = _run_submission(entered, make_hello(self.seed))
        if output.artifact is None or not isinstance(entered, StageSubmission):
            verdict = _score_missing_output(output)
        else:
            verdict = environment.score_environment(
                output.artifact, entered, compute_hello_exit(self.seed)
            )
        return _GradedCase(grade=_to_case_grade("environment", verdict, reached=True), made=output)

    def _grade_case(self, entered: _SubmissionState, case: ProgramCase) -> _GradedCase:
        stage_input = self._find_input(case)
        if self.stage == "T4":
            return self._grade_optimisation(entered, case, stage_input.artifact)
        if stage_input.artifact is None:
            reason = f"{self.given.stage} left nothing for this case"
            verdict = ArtifactScore(result="fail", score=0.0, why=reason)
            return _GradedCase(grade=_to_case_grade(case.name, verdict, reached=False))
        output = _run_submission(entered, stage_input.artifact)
        if output.artifact is None:
            verdict = _score_missing_output(output)
        else:
            right = self.right.artifacts[case.name]
            verdict = _score_artifact(self.stage, case, output.artifact, right)
        return _GradedCase(
            grade=_to_case_grade(case.name, verdict, reached=stage_input.right), made=output
        )

    def _grade_optimisation(
        self, entered: _SubmissionState, case: ProgramCase, own: bytes | None
    ) -> _GradedCase:
        """Grade T4 on golden IR, the same for every agent; the fact `chain` is its score on the IR
        of the agent's own T3, which it hands on.
        """
        counts, reference = golden.count_instructions(case), self.before
        made = _run_submission(entered, reference.artifacts[case.name])
        verdict = _score_optimised(case, made, counts)
        if self.given.provenance == "own":
            handed_on = StageOutput() if own is None else _run_submission(entered, own)
            chain = _score_optimised(case, handed_on, counts)
            verdict = replace(verdict, facts={**verdict.facts, "chain": chain.score or 0.0})
            made = replace(made, artifact=handed_on.artifact)
        return _GradedCase(grade=_to_case_grade(case.name, verdict, reached=True), made=made)

    def _find_input(self, case: ProgramCase) -> _StageInput:
        """Return a case's input and whether it is right: golden, or the agent's with a full score.

        IR from the agent's T4 is right if it behaves correctly, however slow.
        """
        artifact, stage = self.given.artifacts.get(case.name), PREVIOUS_STAGE.get(self.stage)
        if artifact is None or stage is None:
            return _StageInput(artifact=artifact, right=artifact is not None)
        golden_artifact = self.before.artifacts[case.name]
        if self.given.provenance == "golden" or artifact == golden_artifact:
            return _StageInput(artifact=artifact, right=True)
        verdict = _score_artifact(stage, case, artifact, golden_artifact)
        if verdict.score is None:
            raise ChildProcessError(f"what {stage} left cannot be judged: {verdict.why}")
        return _StageInput(artifact=artifact, right=verdict.score == 100)


def _score_optimised(
    case: ProgramCase, made: StageOutput, counts: golden.InstructionCounts
) -> ArtifactScore:
    if made.artifact is None:
        return _score_missing_output(made)
    return execution.score_optimisation(case, made.artifact, counts)


def _score_artifact(stage: str, case: ProgramCase, artifact: bytes, right: bytes) -> ArtifactScore:
    """Score an artifact of a stage; for T4 only whether it is correct."""
    match stage:
        case "T1":
            return tokens.score_tokens(right, artifact)
        case "T2":
            return trees.score_tree(right, artifact)
        case "T3" | "T4":
            return execution.score_execution(case, artifact, "ir")
        case _:
            return execution.score_execution(case, artifact, "assembly")


def _run_submission(entered: _SubmissionState, given: bytes) -> StageOutput:
    """Run the agent's program on an input. Raises OSError if the workspace could not be copied."""
    match entered:
        case StageSubmission():
            return entered.run_on_input(given)
        case StageOutput():
            return entered
        case _:
            raise entered


def _score_missing_output(made: StageOutput) -> ArtifactScore:
    """Score a program that left no output."""
    return ArtifactScore(result="limit" if made.limit else "agent_error", score=0.0, why=made.why)


def _to_case_grade(name: str, judged: ArtifactScore, *, reached: bool) -> CaseGrade:
    return CaseGrade(
        case=name,
        result=judged.result,
        score=judged.score,
        reached=reached,
        why=shorten_explanation(judged.why),
        facts=judged.facts,
    )


def _collect_graded_case(name: str, future: "Future[_GradedCase]") -> _GradedCase:
    """Return the grade of a case; an exception in the grader is no failure of the agent."""
    if (error := future.exception()) is None:
        return future.result()
    why = shorten_explanation(f"the grader failed: {type(error).__name__}: {error}")
    verdict = ArtifactScore(result="infrastructure_error", score=None, why=why)
    return _GradedCase(grade=_to_case_grade(name, verdict, reached=True))


def _find_common_walls(walls: list[tuple[str, ...]]) -> tuple[str, ...]:
    """Return the isolation measures that were in force in every run."""
    return tuple(wall for wall in WALLS if walls and all(wall in each for each in walls))
