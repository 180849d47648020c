"""The programs of the workload: source, stdin, expected stdout and exit code.

They are files in the folder `cases`: NAME.c in the folder of its size; next to it NAME.in if it
reads stdin, NAME.out with its output, and NAME.exit if its exit code is not 0. Those under
`cases/samples` may be shown to an agent and are never graded.
"""

from functools import cache
from pathlib import Path
from typing import get_args

from scenarios.pipeline.compiler.types import ProgramCase, Size

CASES = Path(__file__).parent / "cases"
SIZES: tuple[Size, ...] = get_args(Size.__value__)


@cache
def load_program_cases() -> tuple[ProgramCase, ...]:
    """Return all programs: by size, then name; graded ones before samples."""
    graded = [
        case for size in SIZES for case in _read_case_folder(CASES / size, size, sample=False)
    ]
    samples = [
        case
        for size in SIZES
        for case in _read_case_folder(CASES / "samples" / size, size, sample=True)
    ]
    return (*graded, *samples)


def list_graded_cases() -> tuple[ProgramCase, ...]:
    """Return the programs that a stage is graded on."""
    return tuple(case for case in load_program_cases() if not case.sample)


def list_sample_cases() -> tuple[ProgramCase, ...]:
    """Return the programs that the agent may see."""
    return tuple(case for case in load_program_cases() if case.sample)


def _read_case_folder(folder: Path, size: Size, *, sample: bool) -> list[ProgramCase]:
    return [_read_program_case(path, size, sample=sample) for path in sorted(folder.glob("*.c"))]


def _read_program_case(path: Path, size: Size, *, sample: bool) -> ProgramCase:
    stdin, exit_file = path.with_suffix(".in"), path.with_suffix(".exit")
    return ProgramCase(
        name=path.stem,
        size=size,
        source=path.read_bytes(),
        stdin=stdin.read_bytes() if stdin.exists() else b"",
        stdout=path.with_suffix(".out").read_bytes(),
        exit=int(exit_file.read_text()) if exit_file.exists() else 0,
        sample=sample,
    )
