"""The grader of one stage, in a process of its own: its crash is a fact, and not ours.

python -m stumble.pipeline.grader WORKLOAD STAGE WORKSPACE JOBS < given > graded
"""

import subprocess
import sys
from pathlib import Path
from typing import Any

import msgpack

from scenarios.compiler.contract import CaseGrade, Graded, Slot
from stumble.pipeline.workload import workload

PATIENCE = 900.0
"""Seconds that one stage's grading may take."""


def grade(name: str, stage: str, workspace: Path, given: Slot, *, jobs: int) -> Graded:
    """What a stage came to; one case with an infrastructure_error where the grader failed."""
    command = [sys.executable, "-m", __name__, name, stage, str(workspace), str(jobs)]
    try:
        ran = subprocess.run(
            command,
            input=_slot(given),
            capture_output=True,
            timeout=PATIENCE,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return _failed(stage, given, f"it had not ended after {PATIENCE:g} s")
    if ran.returncode != 0:
        said = ran.stderr.decode("utf-8", "replace").strip().splitlines()
        return _failed(stage, given, said[-1] if said else f"it ended with {ran.returncode}")
    return _read(ran.stdout)


def _failed(stage: str, given: Slot, why: str) -> Graded:
    case = CaseGrade(
        case="grader", result="infrastructure_error", score=None, reached=False, why=why
    )
    left = Slot(stage=stage, provenance="own")
    return Graded(stage=stage, given=given.provenance, cases=(case,), left=left)


def _slot(slot: Slot) -> bytes:
    packed: bytes = msgpack.packb((slot.stage, slot.provenance, dict(slot.artifacts)))
    return packed


def _unslot(value: Any) -> Slot:
    stage, provenance, artifacts = value
    return Slot(stage=stage, provenance=provenance, artifacts=artifacts)


def _said(graded: Graded) -> bytes:
    cases = [(c.case, c.result, c.score, c.reached, c.why) for c in graded.cases]
    packed: bytes = msgpack.packb((graded.stage, graded.given, cases, _slot(graded.left)))
    return packed


def _read(data: bytes) -> Graded:
    stage, given, cases, left = msgpack.unpackb(data)
    return Graded(
        stage=stage,
        given=given,
        cases=tuple(
            CaseGrade(case=case, result=result, score=score, reached=reached, why=why)
            for case, result, score, reached, why in cases
        ),
        left=_unslot(msgpack.unpackb(left)),
    )


def main(words: list[str]) -> None:
    """Grade what is said on standard input."""
    name, stage, workspace, jobs = words
    given = _unslot(msgpack.unpackb(sys.stdin.buffer.read()))
    graded = workload(name).grade(stage, Path(workspace), given, jobs=int(jobs))
    sys.stdout.buffer.write(_said(graded))


if __name__ == "__main__":
    main(sys.argv[1:])
