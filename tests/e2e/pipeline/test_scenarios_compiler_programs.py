"""Graded programs: drawn from a seed, and the same to compilers and to the interpreter."""

import hashlib
import json
import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from scenarios.pipeline.compiler import golden, toolchain
from scenarios.pipeline.compiler.emulator_pool import run_emulated
from scenarios.pipeline.compiler.program_cases import (
    IN_BAND,
    count_tokens,
    draw_case,
    list_program_names,
    list_sample_cases,
)
from scenarios.pipeline.compiler.programs.grammar import BANDS
from scenarios.pipeline.compiler.programs.interpreter import (
    MOST_STEPS,
    UndefinedBehaviour,
    interpret,
)
from scenarios.pipeline.compiler.programs.nodes import (
    Assignment,
    Binary,
    Block,
    Call,
    Declaration,
    Declarator,
    Expression,
    Function,
    Number,
    Place,
    Program,
    Return,
    Statement,
    Unary,
    While,
)
from scenarios.pipeline.compiler.types import ProgramCase

# The runtime for this machine itself.
HOST = r"""
#include <stdio.h>
int get_char(void) { return getchar(); }
int get_int(void) { int value = 0; return scanf("%d", &value) == 1 ? value : 0; }
void put_int(int value) { printf("%d", value); }
void put_char(int value) { putchar(value); }
"""
CHECKS = ("-fsanitize=undefined,bounds-strict,address", "-fno-sanitize=shift-base")
WATCHED = ("-fwrapv", *CHECKS, "-ftrivial-auto-var-init=pattern")  # of what has no value yet
NAMES = list_program_names()
ONE, TWO = Number("1", 1), Number("2", 2)


@pytest.mark.many(6)
@pytest.mark.parametrize("seed", range(1000, 1100))
def test_two_compilers_and_the_interpreter_come_to_the_same(tmp_path: Path, seed: int) -> None:
    """Programs of fresh seeds; gcc watches over what the page calls *never*, too."""
    for name in (NAMES[seed % 21], NAMES[21 + seed % 21], NAMES[42 + seed % 21]):
        case = draw_case(seed, name, 0)
        for stage in ("T3", "T4", "T5"):
            text = golden.make_golden_artifact(stage, case.source)
            kind: toolchain.CodeKind = "assembly" if stage == "T5" else "ir"
            ran = run_emulated(toolchain.link_executable(text, kind), case.stdin)
            assert (ran.ended, ran.stdout, ran.exit) == ("exit", case.stdout, case.exit)
        if shutil.which("gcc") is not None:
            assert_gcc_agrees(tmp_path, case)


@pytest.mark.many(1)
@pytest.mark.parametrize("sample", list_sample_cases(), ids=lambda case: case.name)
def test_gcc_agrees_on_a_sample(tmp_path: Path, sample: ProgramCase) -> None:
    if shutil.which("gcc") is None:
        pytest.skip("no gcc here")
    assert_gcc_agrees(tmp_path, sample)


def assert_gcc_agrees(folder: Path, case: ProgramCase) -> None:
    (folder / "host.c").write_text(HOST)
    (folder / "program.c").write_bytes(case.source)
    how = ("gcc", "-std=c11", "-O1", "-w", *WATCHED, "-fno-sanitize-recover=all")
    header = ("-include", str(toolchain.RUNTIME / "runtime.h"))
    words = (*how, *header, "program.c", "host.c", "-o", "program")
    subprocess.run(words, cwd=folder, check=True, timeout=60)
    ran = subprocess.run(folder / "program", input=case.stdin, capture_output=True, timeout=60)
    assert (ran.stdout, ran.returncode, ran.stderr) == (case.stdout, case.exit, b""), case.source


def shape(case: ProgramCase) -> bytes:
    """The kinds of a program's tokens: what is left without names, numbers and layout."""
    tokens = golden.make_golden_artifact("T1", case.source).splitlines()
    return " ".join(json.loads(line)["kind"] for line in tokens).encode()


@pytest.mark.many(3)
@pytest.mark.parametrize("form", ["shape", "source", "T1", "T2", "T3", "T4", "T5"])
def test_no_program_of_a_seed_is_one_of_another(form: str) -> None:
    make: Callable[[ProgramCase], bytes] = shape
    if form != "shape":
        make = lambda case: golden.make_golden_artifact(form, case.source)  # noqa: E731
    tables = [
        {hashlib.sha256(make(draw_case(seed, name, 0))).digest() for name in NAMES[::3]}
        for seed in (5, 6, 7)
    ]
    assert [len(table) for table in tables] == [len(NAMES[::3])] * 3
    assert len(set.union(*tables)) == 3 * len(NAMES[::3])


def test_a_seed_always_draws_the_same_programs() -> None:
    for name in NAMES[::7]:
        assert draw_case(3, name, 1) == draw_case(3, name, 1) != draw_case(3, name, 2)


def test_bands_are_of_one_size_and_each_is_longer_than_the_one_before() -> None:
    cases = golden.list_graded_cases()
    assert [case.band for case in cases] == [band for band in BANDS for _ in range(IN_BAND)]
    for case in cases:
        tokens = golden.make_golden_artifact("T1", case.source).splitlines()
        assert len(tokens) == count_tokens(case.source) in BANDS[case.band].tokens


@pytest.mark.thorough
@pytest.mark.timeout(300)
def test_what_is_kept_of_seed_0_is_what_is_chosen() -> None:
    assert golden.choose_attempts(0) == golden.CHOSEN_FOR_0


def make_main(*statements: Statement) -> Program:
    return Program((Function("main", (), Block(statements)),))


def value(expression: Expression) -> int:
    """What the interpreter computes, as the exit code."""
    return interpret(make_main(Return(expression)), b"").exit


LARGEST = Number("2147483647", 2147483647)
LEAST = Binary("-", Unary("-", LARGEST), ONE)
ROW = Declaration((Declarator("v", (2,), (ONE,)),))


@pytest.mark.parametrize(
    "undefined",
    [
        (Return(Binary("/", ONE, Binary("-", ONE, ONE))),),
        (Return(Binary("%", LEAST, Unary("-", ONE))),),
        (Return(Binary("<<", ONE, Number("32", 32))),),
        (Return(Binary(">>", ONE, Unary("-", ONE))),),
        (ROW, Return(Place("v", (TWO,)))),
        (ROW, Return(Place("v", (Unary("-", ONE),)))),
        (ROW, Assignment(Place("v", (TWO,)), "=", ONE), Return(ONE)),
        (Declaration((Declarator("x"),)), Return(Binary("+", Place("x"), ONE))),
        (While(ONE, Block(())), Return(ONE)),
        (Return(Call("main")),),
    ],
)
def test_what_no_program_does_ends_the_interpreter(undefined: tuple[Statement, ...]) -> None:
    with pytest.raises(UndefinedBehaviour):
        interpret(make_main(*undefined), b"")


def test_the_interpreter_computes_as_the_page_says() -> None:
    assert MOST_STEPS > 10_000
    minus = Unary("-", Number("7", 7))
    assert value(Binary("/", minus, TWO)) == 256 - 3
    assert value(Binary("%", minus, TWO)) == 256 - 1
    assert value(Binary(">>", minus, ONE)) == 256 - 4
    assert value(Binary("==", Binary("+", LARGEST, ONE), LEAST)) == 1
    assert value(Unary("!", Unary("~", Unary("-", ONE)))) == 1
    assert value(Binary("&&", Unary("!", ONE), Binary("/", ONE, Unary("!", ONE)))) == 0
    listed = make_main(ROW, Return(Place("v", (ONE,))))
    assert interpret(listed, b"").exit == 0


@pytest.mark.parametrize(
    ("given", "numbers"), [(b" \t\n-12x", (-12, 0)), (b"", (0, 0)), (b"7 08-", (7, 8))]
)
def test_the_interpreter_reads_as_the_runtime_does(given: bytes, numbers: tuple[int, int]) -> None:
    body = [Call("put_int", (Call("get_int"),)), Call("put_char", (Number("' '", 32),))]
    program = make_main(*body, *body, Return(Call("get_char")))
    printed = interpret(program, given)
    source = b"int main(void){put_int(get_int());put_char(' ');put_int(get_int());put_char(' ');"
    code = toolchain.compile_to_ir(source + b"return get_char();}\n", "-O0")
    ran = run_emulated(toolchain.link_executable(code, "ir"), given)
    assert re.findall(rb"-?\d+", printed.stdout) == [b"%d" % number for number in numbers]
    assert (ran.stdout, ran.exit) == (printed.stdout, printed.exit)
