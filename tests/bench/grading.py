"""The compiler pipeline: duration of grading and of the local check, and scores of the starters.

python -m tests.bench.grading
"""

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from scenarios.pipeline.compiler import emulator_pool, golden
from scenarios.pipeline.compiler.grading import grade_stage
from scenarios.pipeline.compiler.starter_workspace import BASELINE, create_starter_workspace
from scenarios.pipeline.compiler.types import STAGES
from tests.bench.target import target
from tests.support.compiler_workspaces import (
    answers,
    given,
)

CORES = 2


def spent() -> float:
    """Return the processor seconds of this process and of all its finished children."""
    return sum(os.times()[:4])


def whole(folder: Path) -> None:
    """Grade golden answers from the source to the assembly."""
    began, before, slot = time.monotonic(), spent(), golden.load_golden_slot("source")
    for stage in STAGES[1:]:
        answers(folder, stage)
        done = grade_stage(stage, folder, slot, jobs=CORES)
        assert done.score == 100, done
        print(f"{stage}: {spent() - before:6.1f} s of processor time so far")
        slot = done.left
    emulator_pool.close_idle_emulators()
    cpu, count = spent() - before, len(golden.list_graded_cases())
    print(f"{count} programs, 5 stages: {cpu:.1f} s of processor time, "
          f"{time.monotonic() - began:.1f} s by the clock here")  # fmt: skip
    name = f"grading {count} programs, T1-T5, processor time over {CORES} cores"
    target(name, cpu / CORES, "s", most=30)


def starter(folder: Path) -> None:
    """Measure an unmodified starter: its scores, and its check."""
    create_starter_workspace(folder, "python", bare=False)
    for stage in STAGES:
        slot = golden.load_golden_slot("source") if stage == "T0" else given(stage)
        score = grade_stage(stage, folder, slot, jobs=CORES).score
        print(f"untouched {stage}: {score:.2f}, frozen as {BASELINE[stage]:.2f}")
    slowest = 0.0
    for stage in STAGES:
        before = spent()
        command = [sys.executable, str(folder / "check"), stage.lower()]
        subprocess.run(command, stdout=subprocess.DEVNULL, check=False, timeout=120)
        slowest = max(slowest, spent() - before)
    target("the local check of one stage, processor time", slowest, "s", most=3)


def main() -> None:
    with tempfile.TemporaryDirectory() as name:
        whole(Path(name) / "golden")
        starter(Path(name) / "starter")


if __name__ == "__main__":
    main()
