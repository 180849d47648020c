"""What the stages of the pipeline hand to one another, and what a grader says of them.

Stage k is a program of the agent's that turns the artifact of slot k-1 into that of slot k, case
by case: T1 source to tokens, T2 tokens to a tree, T3 a tree to LLVM IR, T4 IR to better IR, T5 IR
to RV64 assembly. T0 has no cases: it shows that all that the others need is there.
"""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

STAGES = ("T0", "T1", "T2", "T3", "T4", "T5")
PASS = 60.0
"""The score from which a stage is passed, of 100."""

type Size = Literal["small", "medium", "large"]
type Provenance = Literal["own", "golden"]
type Result = Literal["pass", "fail", "agent_error", "infrastructure_error", "limit"]
"""How a case ended; from a score of PASS on it is a pass. `agent_error`: the agent's program
failed or left nothing that can be read; `limit`: something of the agent's used up its
instructions, time or memory;
`infrastructure_error`: the grader failed, which is never a zero for the agent."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One program of the small C, and what it does when it runs."""

    name: str
    size: Size
    source: bytes
    stdin: bytes = b""
    stdout: bytes = b""
    exit: int = 0
    sample: bool = False
    """Whether the agent may see it; samples are never graded."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Slot:
    """The artifacts of one stage, by the case's name; a case without one has none."""

    stage: str
    provenance: Provenance
    artifacts: Mapping[str, bytes] = field(default_factory=dict)

    @property
    def sha256(self) -> str:
        """Of all names and artifacts, in the order of the names."""
        whole = hashlib.sha256()
        for name, data in sorted(self.artifacts.items()):
            whole.update(f"{name} {len(data)}\n".encode() + data)
        return whole.hexdigest()


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseGrade:
    """What one case came to."""

    case: str
    result: Result
    score: float | None
    """0 to 100; None where the grader failed."""
    reached: bool
    """Whether what the stage was given for this case was right: where it was not, a failure says
    that the agent could not reach this case, not that it could not solve it."""
    why: str = ""
    """What a developer needs to go on: the first thing that differs, or the first error."""
    facts: Mapping[str, float] = field(default_factory=dict)
    """Figures beside the score: `strict` (T1), `instructions`, `reference`, `given` and
    `corrected` (T4)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Graded:
    """What one stage came to; `left` holds what the agent's program made of each case."""

    stage: str
    given: Provenance
    """Where the slot that it worked on came from."""
    cases: tuple[CaseGrade, ...]
    left: Slot
    walls: tuple[str, ...] = ()
    """What stood around the agent's programs, of `scenarios.sandbox.limited.WALLS`; fewer than
    all are weaker."""
    total: float | None = None
    """The score where it is no plain mean, but what the workload itself makes of its cases."""

    @property
    def score(self) -> float | None:
        """The mean over all cases, or the `total`; None where the grader failed at any."""
        return None if any(case.score is None for case in self.cases) else self.score_known

    @property
    def score_known(self) -> float | None:
        """The mean over the cases at which the grader did not fail, or the `total`."""
        if self.total is not None:
            return self.total
        known = [case.score for case in self.cases if case.score is not None]
        return sum(known) / len(known) if known else None

    @property
    def passed(self) -> bool | None:
        return None if self.score is None else self.score >= PASS

    @property
    def result(self) -> Result:
        """`infrastructure_error` where the grader failed at any case; else pass, or, for a stage
        that is not passed, what most of its failed cases say, the graver one among equals."""
        results = [case.result for case in self.cases]
        if "infrastructure_error" in results:
            return "infrastructure_error"
        if self.passed:
            return "pass"
        order: tuple[Result, ...] = ("agent_error", "limit", "fail")
        return max(order, key=results.count)
