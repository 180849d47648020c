"""The compiler pipeline: how long grading takes, and the local check, and what a starter is worth.

python -m tests.bench.grading
"""

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from scenarios.compiler import golden, machine, programs
from scenarios.compiler.contract import STAGES
from scenarios.compiler.grading import grade
from scenarios.compiler.starter import BASELINE, lay_out
from tests.bench.target import target
from tests.compiling import answers, given

CORES = 2


def spent() -> float:
    """Seconds of processor time, ours and that of all children that have ended."""
    return sum(os.times()[:4])


def whole(folder: Path) -> None:
    """Golden answers, graded from the source to the assembly."""
    began, before, slot = time.monotonic(), spent(), golden.source_slot()
    for stage in STAGES[1:]:
        answers(folder, stage)
        done = grade(stage, folder, slot, jobs=CORES)
        assert done.score == 100, done
        print(f"{stage}: {spent() - before:6.1f} s of processor time so far")
        slot = done.left
    machine.close()
    cpu, count = spent() - before, len(programs.graded())
    print(f"{count} programs, 5 stages: {cpu:.1f} s of processor time, "
          f"{time.monotonic() - began:.1f} s by the clock here")  # fmt: skip
    name = f"grading {count} programs, T1-T5, processor time over {CORES} cores"
    target(name, cpu / CORES, "s", most=30)


def starter(folder: Path) -> None:
    """An untouched starter: its scores, and its check."""
    lay_out(folder, "python", bare=False)
    for stage in STAGES:
        slot = golden.source_slot() if stage == "T0" else given(stage)
        score = grade(stage, folder, slot, jobs=CORES).score
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
