"""How right and how good code is, by running it: T3, T4 and T5.

A program must print what it should and end as it should. Instructions are counted and bounded,
time is not: so every score is the same on each run, on any machine.
"""

import math
import re

from scenarios.compiler import machine, toolchain
from scenarios.compiler.contract import Case
from scenarios.compiler.golden import Counts
from scenarios.compiler.judged import Judged, scored, shown, unreadable

LIMIT = machine.LIMIT
_FOREIGN = re.compile(rb'"(?:target-cpu|target-features|tune-cpu)"(?:="[^"\n]*")?')
_TARGET = re.compile(rb"(?m)^target (?:triple|datalayout) = .*$")


def neutral(ir: bytes) -> bytes:
    """IR without the machine it was made for, so that it is compiled for ours."""
    return _FOREIGN.sub(b"", _TARGET.sub(b"", ir))


def judge(case: Case, text: bytes, kind: toolchain.Kind, limit: int = LIMIT) -> Judged:
    """100 where the program does what it should, else 0; the fact `instructions` where it ran."""
    try:
        elf = toolchain.executable(neutral(text) if kind == "ir" else text, kind)
    except ValueError as error:
        return unreadable(str(error))
    except TimeoutError as error:
        return Judged(result="limit", score=0.0, why=str(error))
    ran = machine.run(elf, case.stdin, limit)
    facts = {"instructions": float(ran.instructions)}
    match ran.ended:
        case "machine":
            return Judged(result="infrastructure_error", score=None, why=ran.why)
        case "limit":
            why = f"not at its end after {ran.instructions:,} instructions"
            return Judged(result="limit", score=0.0, why=why, facts=facts)
        case "crash":
            return scored(0.0, f"it crashed: {ran.why}; {_difference(case, ran)}", facts)
        case "exit" if (ran.stdout, ran.exit) == (case.stdout, case.exit):
            return scored(100.0, "", facts)
        case "exit":
            return scored(0.0, _difference(case, ran), facts)


def optimised(case: Case, text: bytes, counts: Counts, given: float | None) -> Judged:
    """T4: what is right scores 100 min(1, sqrt(N_ref / N)), N the instructions that it executes.

    The shape is RAMP's, with instructions for seconds. In it code that was left as it was scores
    too; so beside it the fact `corrected` is 100 (N_0 - N) / (N_0 - N_ref), cut to 0..100: 0 for
    unchanged code, 100 for clang's. `given` is N_0, the instructions of the code that the stage
    was given; None where that does not run.
    """
    judged = judge(case, text, "ir")
    if judged.result != "pass":
        return judged
    executed, reference = judged.facts["instructions"], float(counts.optimised)
    facts = {"instructions": executed, "reference": reference}
    if given is not None:
        facts["given"] = given
        if given > reference:
            share = (given - executed) / (given - reference)
            facts["corrected"] = 100 * min(1.0, max(0.0, share))
    score = 100 * min(1.0, math.sqrt(reference / executed))
    return scored(score, f"{executed:,.0f} instructions, clang -O2: {reference:,.0f}", facts)


def _difference(case: Case, ran: machine.Ran) -> str:
    """The first line of output that differs, or else how it ended."""
    wanted, got = case.stdout.splitlines(), ran.stdout.splitlines()
    for number in range(max(len(wanted), len(got))):
        expected, found = (_line(lines, number) for lines in (wanted, got))
        if expected != found:
            return shown(f"stdout, line {number + 1}: expected {expected}, got {found}")
    if case.stdout != ran.stdout:
        return "stdout: another end of the last line"
    return f"exit code: expected {case.exit}, got {ran.exit}"


def _line(lines: list[bytes], number: int) -> str:
    return repr(lines[number].decode(errors="replace"))[:150] if number < len(lines) else "nothing"
