"""The golden artifacts: the output of a correct, optimising compiler for each program and stage.

clang makes them when they are needed, and each program is executed as T3's IR, as T4's and as T5's
assembly. If one of them does not do what the interpreter found, nothing is graded against it.
"""

import json
import platform
import sys
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from importlib.metadata import version
from string import ascii_letters, digits

from msgspec import Struct

from scenarios.pipeline.compiler import clang_artifacts, emulator_pool, toolchain
from scenarios.pipeline.compiler.hello import compute_hello_exit
from scenarios.pipeline.compiler.program_cases import (
    draw_case,
    list_program_names,
    list_sample_cases,
)
from scenarios.pipeline.compiler.types import ArtifactSlot, ProgramCase

JOBS = 2


class InstructionCounts(Struct, frozen=True, kw_only=True):
    """Instructions that one program executes, including the runtime's."""

    plain: int
    """As T3's golden IR, which is not optimised: N_0."""
    optimised: int
    """As T4's golden IR, clang's -O2: N_ref."""


WORTH = (0.4, 0.93)
"""Instructions of golden code by those without optimisation. Less is a program that clang computes
itself; with more there is nothing to score.
"""
_ATTEMPTS = digits + ascii_letters
CHOSEN_FOR_0 = "000000000001000100000001101000000001100000000020100000001010003"
"""What is chosen for seed 0, which has no secrets."""


@cache
def choose_programs(seed: int) -> str:
    """Return, one letter for each program, the first attempt that can be graded at all stages."""
    if seed == 0:
        return CHOSEN_FOR_0
    return choose_attempts(seed)


def choose_attempts(seed: int) -> str:
    """Choose the attempts of a seed."""
    with ThreadPoolExecutor(JOBS) as pool:
        return "".join(pool.map(lambda name: _choose_attempt(seed, name), list_program_names()))


def _choose_attempt(seed: int, name: str) -> str:
    drawn = ((each, draw_case(seed, name, at)) for at, each in enumerate(_ATTEMPTS))
    return next(each for each, case in drawn if _can_be_graded(case))


def _can_be_graded(case: ProgramCase) -> bool:
    """Return whether a program becomes instructions of the language page, and gains by them."""
    if clang_artifacts.find_unlisted_instructions(make_golden_artifact("T4", case.source)):
        return False
    counts = count_instructions(case)
    return WORTH[0] <= counts.optimised / counts.plain <= WORTH[1]


@cache
def list_graded_cases(seed: int = 0, chosen: str = "") -> tuple[ProgramCase, ...]:
    """Return the programs that a stage is graded on, the easy ones first; `chosen` saves the choice
    of their attempts.
    """
    attempts = map(_ATTEMPTS.index, chosen or choose_programs(seed))
    named = zip(list_program_names(), attempts, strict=True)
    return tuple(draw_case(seed, name, attempt) for name, attempt in named)


@cache
def load_golden_slot(
    stage: str, *, sample: bool = False, seed: int = 0, chosen: str = ""
) -> ArtifactSlot:
    """Return the golden slot of a stage, of the graded programs of a seed or of the samples.

    T0's describes this machine and the seed's program; `source` are the programs, T1's input.
    """
    if stage == "T0":
        artifacts = {"environment": _make_environment_artifact(seed)}
    else:
        cases = list_sample_cases() if sample else list_graded_cases(seed, chosen)
        artifacts = {case.name: make_golden_artifact(stage, case.source) for case in cases}
    return ArtifactSlot(stage=stage, provenance="golden", artifacts=artifacts)


@cache
def make_golden_artifact(stage: str, source: bytes) -> bytes:
    """Return what clang makes of a program at a stage."""
    match stage:
        case "source":
            return source
        case "T1":
            return clang_artifacts.to_token_artifact(toolchain.dump_tokens(source))
        case "T2":
            return clang_artifacts.to_tree_artifact(toolchain.dump_tree(source))
        case "T3" | "T4":
            level: toolchain.OptimisationLevel = "-O0" if stage == "T3" else "-O2"
            return clang_artifacts.to_ir_artifact(toolchain.compile_to_ir(source, level))
        case _:
            made = toolchain.compile_to_assembly(make_golden_artifact("T4", source))
            return clang_artifacts.to_assembly_artifact(made)


@cache
def count_instructions(case: ProgramCase) -> InstructionCounts:
    """Execute a program as golden IR. Raises ValueError if it does not do what it should."""
    return InstructionCounts(
        plain=_count_executed(case, "T3", "ir"), optimised=_count_executed(case, "T4", "ir")
    )


def _make_environment_artifact(seed: int) -> bytes:
    clang = toolchain.read_clang_version()
    environment = {
        "language": {"command": sys.executable, "version": platform.python_version()},
        "clang": clang,
        "lld": clang,
        "unicorn": version("unicorn"),
        "hello": {"exit": compute_hello_exit(seed)},
    }
    return json.dumps(environment).encode()


def _count_executed(case: ProgramCase, stage: str, kind: toolchain.CodeKind) -> int:
    elf = toolchain.link_executable(make_golden_artifact(stage, case.source), kind)
    result = emulator_pool.run_emulated(elf, case.stdin)
    if (result.ended, result.stdout, result.exit) != ("exit", case.stdout, case.exit):
        raise ValueError(f"{case.name}, as {kind} of {stage}: {result}")
    return result.instructions
