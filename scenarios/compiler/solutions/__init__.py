"""Prepared solutions of the stages, in graded qualities, for an agent whose skill is known.

Each is one program in Python for a stage's `run`. `good` is as good as we could make it; `fair`
passes but is not whole; `half` does a real part of the work and does not pass; `broken` ends in
an error on many programs, or leaves what cannot be read; `none` leaves the starter as it is. The
lesser ones are the good one with a few lines made wrong (defects.py). T0 is right or is not, so
there `fair` is `good`, and `half` is worth 0.

Scores on golden artifacts, of 64 programs (good, fair, half, broken): T1 100, 70, 58, 0;
T2 100, 95, 52, 9; T3 100, 92, 39, 31; T4 95, 92, 33, 3; T5 100, 97, 52, 0.
"""

import re
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

from scenarios.compiler.contract import STAGES
from scenarios.compiler.solutions.defects import DEFECTS

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
    r"^from scenarios\.compiler\.solutions\.(\w+) import (?:\([^)]*\)|[^\n(]*)\n", re.MULTILINE
)


def text(stage: str, quality: str) -> str | None:
    """The program of a stage; None where the starter stays.

    ValueError for a quality that there is not.
    """
    if quality not in QUALITIES:
        raise ValueError(f"there is no quality {quality}, only {', '.join(QUALITIES)}")
    if quality == "none":
        return None
    whole = _program(FILES[stage])
    for was, becomes in DEFECTS.get((stage, quality), ()):
        if whole.count(was) != 1:
            raise ValueError(f"{stage} {quality}: {was!r} occurs {whole.count(was)} times")
        whole = whole.replace(was, becomes)
    return f"#!/usr/bin/env python3\n{whole}"


def put(workspace: Path, stage: str, quality: str) -> None:
    """Make it the stage's `run` in a workspace."""
    if (whole := text(stage, quality)) is None:
        return
    run = workspace / stage.lower() / "run"
    run.parent.mkdir(exist_ok=True)
    run.write_text(whole)
    run.chmod(0o755)


def _program(name: str) -> str:
    """A program with what it shares with others in place of its import."""
    whole = (Path(__file__).parent / f"{name}.py").read_text()
    return _SHARED.sub(lambda found: _program(found[1]), whole)
