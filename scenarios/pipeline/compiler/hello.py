"""T0's program: a small one that shows that all tools work together, with the runtime.

It is made from the seed of a run, its statements and not only its numbers, and its exit code is
what it computes: a report has it only if the program was compiled and run.
"""

from functools import cache
from random import Random

from scenarios.pipeline.compiler import emulator_pool, toolchain

EXIT = 91
ASSEMBLY = b"\t.globl main\nmain:\n\tli a0, 91\n\tret\n"
"""A program that exits with EXIT, which shows that the tools are here."""
_VARIABLES = ("a", "b", "c", "d")
_OPERATORS = ("+", "-", "*", "^", "&", "|")
_STATEMENTS = 12


@cache
def make_hello(seed: int) -> bytes:
    """Return the program of a seed, in C."""
    rng = Random(f"hello {seed}")
    values = ", ".join(f"{name} = {rng.randrange(1, 10_000)}" for name in _VARIABLES)
    body = "".join(_make_statement(rng, depth=0) for _ in range(_STATEMENTS))
    ends = "    put_int(a);\n    put_char('\\n');\n    return (a ^ b ^ c ^ d) & 255;\n"
    return f'#include "runtime.h"\nint main(void) {{\n    int {values};\n{body}{ends}}}\n'.encode()


@cache
def compute_hello_exit(seed: int) -> int:
    """Return the exit code of a seed's program, by running it. Raises ValueError if it has none."""
    _, _, source = make_hello(seed).partition(b"\n")  # the compiler includes the runtime itself
    elf = toolchain.link_executable(toolchain.compile_to_ir(source, "-O0"), "ir")
    result = emulator_pool.run_emulated(elf)
    if result.exit is None:
        raise ValueError(f"T0's program of seed {seed}: {result}")
    return result.exit


def _make_statement(rng: Random, depth: int) -> str:
    """Return an assignment, or a loop or condition with two more statements."""
    indent = "    " * (depth + 1)
    if depth < 2 and rng.random() < 0.4:
        inner = "".join(_make_statement(rng, depth + 1) for _ in range(2))
        counter = f"i{depth}"
        head = rng.choice(
            (
                f"for (int {counter} = 0; {counter} < {rng.randrange(3, 40)}; {counter}++)",
                f"if (({_make_expression(rng)}) % {rng.randrange(2, 5)})",
            )
        )
        return f"{indent}{head} {{\n{inner}{indent}}}\n"
    return f"{indent}{rng.choice(_VARIABLES)} = {_make_expression(rng)};\n"


def _make_expression(rng: Random) -> str:
    first, second = rng.choices(_VARIABLES, k=2)
    operators = rng.choices(_OPERATORS, k=2)
    return f"({first} {operators[0]} {rng.randrange(1, 999)}) {operators[1]} {second}"
