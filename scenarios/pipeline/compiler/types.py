"""The artifacts that pipeline stages exchange, and the grades of cases and stages.

Stage k is a program of the agent that turns the artifact of slot k-1 into that of slot k, case by
case: T1 source to tokens, T2 tokens to a tree, T3 a tree to LLVM IR, T4 IR to better IR, T5 IR to
RV64 assembly. T0 has no cases: it shows that the other stages' prerequisites are present.
"""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

STAGES = ("T0", "T1", "T2", "T3", "T4", "T5")
PASS = 60.0
"""Score of 100 from which a stage is passed."""

type Provenance = Literal["own", "golden"]
type Result = Literal["pass", "fail", "agent_error", "infrastructure_error", "limit"]
"""The result of a case; a score of PASS or more is a pass.

`agent_error`: the agent's program failed or left no readable output; `limit`: the agent's program
or its output exceeded its instructions, time or memory; `infrastructure_error`: the grader failed,
which is never a zero for the agent.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProgramCase:
    """One program of the small C, with its expected behaviour."""

    name: str
    band: str
    """Of difficulty; `sample` if an agent may see it, and then it is not graded."""
    source: bytes
    stdin: bytes = b""
    stdout: bytes = b""
    exit: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class ArtifactSlot:
    """The artifacts of one stage by case name; a case without an artifact is absent."""

    stage: str
    provenance: Provenance
    artifacts: Mapping[str, bytes] = field(default_factory=dict)

    @property
    def sha256(self) -> str:
        """Digest of all names and artifacts, in the order of the names."""
        digest = hashlib.sha256()
        for name, data in sorted(self.artifacts.items()):
            digest.update(f"{name} {len(data)}\n".encode() + data)
        return digest.hexdigest()


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseGrade:
    """The grade of one case."""

    case: str
    result: Result
    score: float | None
    """0 to 100; None if the grader failed."""
    reached: bool
    """Whether the stage's input for this case was right. If not, a failure means that the agent
    could not reach this case, not that it could not solve it.
    """
    why: str = ""
    """Explanation for a developer: the first difference or the first error."""
    facts: Mapping[str, float] = field(default_factory=dict)
    """Figures reported with the score: `strict` (T1), `instructions`, `reference`, `before`, `ramp`
    and `chain` (T4).
    """


@dataclass(frozen=True, slots=True, kw_only=True)
class FileText:
    """The text of a file that a stage's programs read while they were graded."""

    size: int
    """Characters of all its pieces (`traces.pipeline.text_pieces`)."""
    pieces: Mapping[str, int]
    """The size of each piece by its digest; of a large program, a random part of them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StageGrade:
    """The grade of one stage; `left` holds the program's output for each case."""

    stage: str
    given: Provenance
    """Provenance of the input slot."""
    cases: tuple[CaseGrade, ...]
    left: ArtifactSlot
    walls: tuple[str, ...] = ()
    """Isolation measures around the agent's programs, of `sandbox.limited_process.WALLS`; fewer
    than all are weaker.
    """
    files: Mapping[str, FileText] | None = None
    """What the stage's program consists of, by file; None if that is unknown."""
    total: float | None = None
    """The score that the workload computes of its cases, if it is not the plain mean."""

    @property
    def score(self) -> float | None:
        """The mean over all cases, or the `total`; None if the grader failed at any."""
        return None if any(case.score is None for case in self.cases) else self.score_known

    @property
    def score_known(self) -> float | None:
        """The mean over the cases at which the grader did not fail, or the `total`."""
        if self.total is not None:
            return self.total
        known = [case.score for case in self.cases if case.score is not None]
        return sum(known) / len(known) if known else None

    @property
    def ramp_score(self) -> float | None:
        """T4's mean by RAMP's formula, which is about 80 for unchanged IR and decides nothing."""
        return self._average_fact("ramp")

    @property
    def chain_score(self) -> float | None:
        """T4's mean on the IR of the agent's own T3; None if it was given golden IR."""
        return self._average_fact("chain")

    def _average_fact(self, name: str) -> float | None:
        """Return the mean of a fact, 0 for a case without it; None if no case has it, or if the
        grader failed at any.
        """
        if self.score is None or not any(name in case.facts for case in self.cases):
            return None
        return sum(case.facts.get(name, 0.0) for case in self.cases) / len(self.cases)

    @property
    def passed(self) -> bool | None:
        return None if self.score is None else self.score >= PASS

    @property
    def result(self) -> Result:
        """`infrastructure_error` if the grader failed at any case, `pass` if the stage is passed.

        Otherwise the most frequent result of the failed cases, on a tie the more severe one.
        """
        results = [case.result for case in self.cases]
        if "infrastructure_error" in results:
            return "infrastructure_error"
        if self.passed:
            return "pass"
        order: tuple[Result, ...] = ("agent_error", "limit", "fail")
        return max(order, key=results.count)
