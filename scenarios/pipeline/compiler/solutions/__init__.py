"""Prepared solutions of the stages, in graded qualities, for an agent of known skill.

Each is one Python program for a stage's `run`. `good` is the best available; `fair` passes but is
incomplete; `half` does a real part of the work and does not pass; `broken` fails on many programs,
or leaves unreadable output; `none` leaves the starter unchanged. The lesser ones are the good one
with a few lines replaced (`defects.py`). T0 is either right or wrong, so there `fair` is `good`,
and `half` scores 0; all of them mend its `build`.

Scores on golden artifacts, of the 63 programs of seed 0 (good, fair, half, broken): T1 100, 70, 57,
33; T2 100, 91, 35, 12; T3 100, 89, 33, 29; T4 78, 69, 35, 17; T5 100, 90, 56, 37. `none` scores 0.
"""

import re
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

from scenarios.pipeline.compiler.solutions.build_mends import mend_whole_build
from scenarios.pipeline.compiler.solutions.defects import DEFECTS
from scenarios.pipeline.compiler.types import STAGES

QUALITIES = ("good", "fair", "half", "broken", "none")
FILES: Mapping[str, str] = MappingProxyType(
    dict(
        zip(
            STAGES,
            ("environment", "lexer", "parser", "generator", "optimiser", "assembler"),
            strict=True,
        )
    )
)
_SHARED = re.compile(
    r"^from scenarios\.pipeline\.compiler\.solutions\.(\w+) import (?:\([^)]*\)|[^\n(]*)\n",
    re.MULTILINE,
)


def load_solution(stage: str, quality: str) -> str | None:
    """Return the program of a stage; None if the starter stays.

    Raises ValueError for an unknown quality.
    """
    if quality not in QUALITIES:
        raise ValueError(f"there is no quality {quality}, only {', '.join(QUALITIES)}")
    if quality == "none":
        return None
    program = _inline_shared_code(FILES[stage])
    for was, becomes in DEFECTS.get((stage, quality), ()):
        if program.count(was) != 1:
            raise ValueError(f"{stage} {quality}: {was!r} occurs {program.count(was)} times")
        program = program.replace(was, becomes)
    return f"#!/usr/bin/env python3\n{program}"


def write_solution(workspace: Path, stage: str, quality: str) -> None:
    """Write the program as the stage's `run` in a workspace."""
    if (program := load_solution(stage, quality)) is None:
        return
    run = workspace / stage.lower() / "run"
    run.parent.mkdir(exist_ok=True)
    run.write_text(program)
    run.chmod(0o755)
    build = run.with_name("build")
    if stage == "T0" and build.exists():
        build.write_text(mend_whole_build(build.read_text()))


def _inline_shared_code(name: str) -> str:
    """Return a program with its imports of shared modules replaced by their source."""
    source = (Path(__file__).parent / f"{name}.py").read_text()
    return _SHARED.sub(lambda found: _inline_shared_code(found[1]), source)
