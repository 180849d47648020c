"""The programs of the workload: for each a source, what it reads, and what it must do.

They are files in the folder `cases`: NAME.c in the folder of its size; beside it NAME.in where it
reads, NAME.out with what it prints, and NAME.exit where it does not end with 0. Those under
`samples` may be shown to an agent and are never graded.
"""

from functools import cache
from pathlib import Path
from typing import get_args

from scenarios.compiler.contract import Case, Size

CASES = Path(__file__).parent / "cases"
SIZES: tuple[Size, ...] = get_args(Size.__value__)


@cache
def cases() -> tuple[Case, ...]:
    """All programs: small ones first, by name; samples after those that are graded."""
    graded = [case for size in SIZES for case in _folder(CASES / size, size, sample=False)]
    samples = [
        case for size in SIZES for case in _folder(CASES / "samples" / size, size, sample=True)
    ]
    return (*graded, *samples)


def graded() -> tuple[Case, ...]:
    """The programs that a stage is graded on."""
    return tuple(case for case in cases() if not case.sample)


def samples() -> tuple[Case, ...]:
    """The programs that the agent may see."""
    return tuple(case for case in cases() if case.sample)


def _folder(folder: Path, size: Size, *, sample: bool) -> list[Case]:
    return [_case(path, size, sample=sample) for path in sorted(folder.glob("*.c"))]


def _case(path: Path, size: Size, *, sample: bool) -> Case:
    stdin, ended = path.with_suffix(".in"), path.with_suffix(".exit")
    return Case(
        name=path.stem,
        size=size,
        source=path.read_bytes(),
        stdin=stdin.read_bytes() if stdin.exists() else b"",
        stdout=path.with_suffix(".out").read_bytes(),
        exit=int(ended.read_text()) if ended.exists() else 0,
        sample=sample,
    )
