"""The golden artifacts: the output of a correct, optimising compiler for each program and stage.

clang makes them when they are needed, and each program is executed as T3's IR, as T4's and as T5's
assembly. If one of them does not do what the interpreter found, nothing is graded against it.
"""

import json
import platform
import sys
from functools import cache
from importlib.metadata import version

from msgspec import Struct

from scenarios.pipeline.compiler import clang_artifacts, emulator_pool, toolchain
from scenarios.pipeline.compiler.hello import compute_hello_exit
from scenarios.pipeline.compiler.program_cases import list_graded_cases, list_sample_cases
from scenarios.pipeline.compiler.types import ArtifactSlot, ProgramCase


class InstructionCounts(Struct, frozen=True, kw_only=True):
    """Instructions that one program executes, including the runtime's."""

    plain: int
    """As T3's golden IR, which is not optimised: N_0."""
    optimised: int
    """As T4's golden IR, clang's -O2: N_ref."""


@cache
def load_golden_slot(stage: str, *, sample: bool = False, seed: int = 0) -> ArtifactSlot:
    """Return the golden slot of a stage, of the graded programs of a seed or of the samples.

    T0's describes this machine and the seed's program; `source` are the programs, T1's input.
    """
    if stage == "T0":
        artifacts = {"environment": _make_environment_artifact(seed)}
    else:
        cases = list_sample_cases() if sample else list_graded_cases(seed)
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
    """Execute a program as all golden code. Raises ValueError if it does not do what it should."""
    _count_executed(case, "T5", "assembly")
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
