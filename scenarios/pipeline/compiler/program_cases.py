"""The programs of the workload: source, stdin, expected stdout and exit code.

Those that are graded are drawn from the seed of a run. The samples, which an agent may see, are
files in the folder `cases`: NAME.c, next to it NAME.in if it reads stdin, NAME.out with its output,
and NAME.exit if its exit code is not 0.
"""

import re
from functools import cache
from pathlib import Path
from random import Random

from scenarios.pipeline.compiler.programs.grammar import BANDS, draw_program
from scenarios.pipeline.compiler.programs.interpreter import UndefinedBehaviour, interpret
from scenarios.pipeline.compiler.programs.layout import write_source
from scenarios.pipeline.compiler.programs.nodes import Program
from scenarios.pipeline.compiler.programs.scope import NameSource
from scenarios.pipeline.compiler.types import ProgramCase

CASES = Path(__file__).parent / "cases"
IN_BAND = 21
"""Graded programs of each band."""
_TOKEN = re.compile(
    rb"//[^\n]*|/\*.*?\*/|(\w+|'(?:\\.|[^'])'|[<>]{2}|[-+*/%<>=!]=|&&|\|\||[^\s\w])", re.DOTALL
)
"""A comment, or a token as its group."""


def list_program_names() -> tuple[str, ...]:
    """Return the names of all graded programs, the easy ones first: `easy01`."""
    return tuple(f"{band}{number:02}" for band in BANDS for number in range(1, IN_BAND + 1))


def draw_case(seed: int, name: str, attempt: int) -> ProgramCase:
    """Return a program of the length of its band, which is defined and reads its input."""
    rng, band = Random(f"{seed} {name} {attempt}"), name[:-2]
    stdin = _draw_input(Random(f"{seed} {name} input"))
    while True:
        program = draw_program(rng, BANDS[band])
        source = write_source(program, rng, _draw_comments(rng))
        if (case := _run_program(program, name, source, stdin)) is not None:
            return case


@cache
def list_sample_cases() -> tuple[ProgramCase, ...]:
    """Return the programs that the agent may see."""
    return tuple(_read_program_case(path) for path in sorted(CASES.glob("*.c")))


def count_tokens(source: bytes) -> int:
    """Return how many tokens a program has."""
    return sum(found != b"" for found in _TOKEN.findall(source))


def _run_program(program: Program, name: str, source: bytes, stdin: bytes) -> ProgramCase | None:
    """Return the case of a program; None if it is undefined, or does the same without its input."""
    band = name[:-2]
    if count_tokens(source) not in BANDS[band].tokens:
        return None
    try:
        found, without = interpret(program, stdin), interpret(program, b"")
    except UndefinedBehaviour:
        return None
    if found == without:
        return None
    return ProgramCase(
        name=name, band=band, source=source, stdin=stdin, stdout=found.stdout, exit=found.exit
    )


def _draw_input(rng: Random) -> bytes:
    """Return a count, the rounds, as many numbers as arrays need, and a line of text."""
    numbers = [rng.randrange(3, 6), rng.randrange(20, 60)]
    numbers += [rng.randrange(1, 400) for _ in range(16)]
    text = "".join(rng.choice("abcdefghij klmnop.,") for _ in range(rng.randrange(5, 25)))
    return f"{' '.join(map(str, numbers))}\n{text}\n".encode()


def _draw_comments(rng: Random) -> list[str]:
    names = NameSource(rng)
    return [" ".join(names.make_long() for _ in range(rng.randrange(1, 5))) for _ in range(6)]


def _read_program_case(path: Path) -> ProgramCase:
    stdin, exit_file = path.with_suffix(".in"), path.with_suffix(".exit")
    return ProgramCase(
        name=path.stem,
        band="sample",
        source=path.read_bytes(),
        stdin=stdin.read_bytes() if stdin.exists() else b"",
        stdout=path.with_suffix(".out").read_bytes(),
        exit=int(exit_file.read_text()) if exit_file.exists() else 0,
    )
