"""Score code by running it: correctness and instruction count, for T3, T4 and T5.

A program must print the expected output and exit as expected. Instructions are counted and bounded,
time is not, so every score is deterministic on any machine.
"""

import math
import re

from scenarios.pipeline.compiler import emulator_pool, toolchain
from scenarios.pipeline.compiler.golden import InstructionCounts
from scenarios.pipeline.compiler.scoring.artifact_score import (
    ArtifactScore,
    make_artifact_score,
    score_unreadable_artifact,
    shorten_explanation,
)
from scenarios.pipeline.compiler.types import ProgramCase

LIMIT = emulator_pool.LIMIT
_BETWEEN = rb"(?:\s|;[^\n]*\n)*"
"""White space and comments, which LLVM allows between any two tokens."""
_IR_STRING = re.compile(
    rb';[^\n]*|[c@%$!]?"[^"]*"(?P<attribute>' + _BETWEEN + rb"=" + _BETWEEN + rb'"[^"]*")?'
)
_TARGET = re.compile(
    rb"\btarget" + _BETWEEN + rb"(?:triple|datalayout)" + _BETWEEN + rb"=" + _BETWEEN + rb'"[^"]*"'
)


def strip_target(ir: bytes) -> bytes:
    """Remove the target machine and all attributes that have a text as their value from IR.

    LLVM writes `"name"="value"` for what a target defines, such as its features; no attribute of
    the language has this form, and none is needed. Comments and other texts stay as they are.
    """
    return _IR_STRING.sub(_drop_attribute, _TARGET.sub(b"", ir))


def _drop_attribute(found: re.Match[bytes]) -> bytes:
    return b"" if found["attribute"] else found.group()


def score_execution(
    case: ProgramCase, text: bytes, kind: toolchain.CodeKind, limit: int = LIMIT
) -> ArtifactScore:
    """Score 100 if the program behaves correctly, else 0; the fact `instructions` if it ran."""
    try:
        elf = toolchain.link_executable(strip_target(text) if kind == "ir" else text, kind)
    except ValueError as error:
        return score_unreadable_artifact(str(error))
    except TimeoutError as error:
        return ArtifactScore(result="limit", score=0.0, why=str(error))
    run = emulator_pool.run_emulated(elf, case.stdin, limit)
    facts = {"instructions": float(run.instructions)}
    match run.ended:
        case "machine":
            return ArtifactScore(result="infrastructure_error", score=None, why=run.why)
        case "limit":
            why = f"not at its end after {run.instructions:,} instructions"
            return ArtifactScore(result="limit", score=0.0, why=why, facts=facts)
        case "crash":
            return make_artifact_score(
                0.0, f"it crashed: {run.why}; {_describe_output_difference(case, run)}", facts
            )
        case "exit" if (run.stdout, run.exit) == (case.stdout, case.exit):
            return make_artifact_score(100.0, "", facts)
        case "exit":
            return make_artifact_score(0.0, _describe_output_difference(case, run), facts)


def score_optimisation(case: ProgramCase, text: bytes, counts: InstructionCounts) -> ArtifactScore:
    """Score T4: correct IR scores 100 (N_0 - N) / (N_0 - N_ref), cut to 0..100.

    N: instructions that it executes, N_0: those of clang's IR without optimisation, N_ref: those of
    clang -O2. Both are the same for every agent, and N_0 is T4's input: unchanged, it scores 0.

    The fact `ramp` is RAMP's figure with instructions for seconds, 100 min(1, sqrt(N_ref / N)),
    which is about 80 for unchanged IR.
    """
    verdict = score_execution(case, text, "ir")
    if verdict.result != "pass":
        return verdict
    executed, before, reference = (
        verdict.facts["instructions"],
        float(counts.plain),
        float(counts.optimised),
    )
    facts = {
        "instructions": executed,
        "reference": reference,
        "before": before,
        "ramp": 100 * min(1.0, math.sqrt(reference / executed)),
    }
    return make_artifact_score(
        100 * min(1.0, max(0.0, (before - executed) / (before - reference))),
        f"{executed:,.0f} instructions, before {before:,.0f}, clang -O2 {reference:,.0f}",
        facts,
    )


def _describe_output_difference(case: ProgramCase, ran: emulator_pool.EmulationResult) -> str:
    """Return the first line of output that differs, or else the exit codes."""
    expected_lines, actual_lines = case.stdout.splitlines(), ran.stdout.splitlines()
    for number in range(max(len(expected_lines), len(actual_lines))):
        expected, actual = (_quote_line(lines, number) for lines in (expected_lines, actual_lines))
        if expected != actual:
            return shorten_explanation(
                f"stdout, line {number + 1}: expected {expected}, got {actual}"
            )
    if case.stdout != ran.stdout:
        return "stdout: another end of the last line"
    return f"exit code: expected {case.exit}, got {ran.exit}"


def _quote_line(lines: list[bytes], number: int) -> str:
    return repr(lines[number].decode(errors="replace"))[:150] if number < len(lines) else "nothing"
