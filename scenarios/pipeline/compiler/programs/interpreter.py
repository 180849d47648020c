"""Run a program without a compiler: the oracle that shares nothing with clang.

The program is translated into Python, statement by statement. What the language page calls *never*
ends a run: a division by zero, a shift by more than 31, an index outside of its dimension, a
variable without a value.
"""

from collections.abc import Callable
from itertools import count
from typing import cast

from msgspec import Struct

from scenarios.pipeline.compiler.programs.nodes import Program
from scenarios.pipeline.compiler.programs.python_code import translate_program

MOST_STEPS = 60_000
"""Rounds of loops and calls of functions."""


class Behaviour(Struct, frozen=True):
    """What a program prints, and the code that it exits with."""

    stdout: bytes
    exit: int


class UndefinedBehaviour(ValueError):
    """The program does what no program may do, or does not come to its end."""


def interpret(program: Program, stdin: bytes) -> Behaviour:
    """Run a program to its end. Raises UndefinedBehaviour."""
    machine = _Machine(stdin)
    runtime = ("get_int", "get_char", "put_int", "put_char")
    names: dict[str, object] = {f"f_{name}": getattr(machine, name) for name in runtime}
    names |= _OPERATIONS | {"step": machine.step}
    exec(compile(translate_program(program), "program", "exec"), names)
    main = cast(Callable[[], int], names["f_main"])
    try:
        code = main()
    except (TypeError, IndexError, RecursionError) as error:  # None is no number
        raise UndefinedBehaviour(str(error)) from error
    return Behaviour(stdout=bytes(machine.printed), exit=code & 255)


class _Machine:
    def __init__(self, stdin: bytes) -> None:
        self._stdin, self._at, self._steps = stdin, 0, count(1)
        self.printed = bytearray()

    def step(self) -> None:
        if next(self._steps) > MOST_STEPS:
            raise UndefinedBehaviour(f"not at its end after {MOST_STEPS} steps")

    def get_char(self) -> int:
        self._at += 1
        return self._stdin[self._at - 1] if self._at <= len(self._stdin) else -1

    def get_int(self) -> int:
        rest = self._stdin[self._at :]
        digits = rest.lstrip(b" \t\n")
        negative = digits.startswith(b"-")
        number = digits[negative:]
        found = number[: len(number) - len(number.lstrip(b"0123456789"))]
        self._at += len(rest) - len(digits) + negative + len(found)
        return _wrap(int(found or b"0") * (-1 if negative else 1))

    def put_int(self, value: int) -> None:
        self.printed += b"%d" % value

    def put_char(self, value: int) -> None:
        self.printed.append(value & 255)


def _wrap(value: int) -> int:
    return ((value + 0x80000000) & 0xFFFFFFFF) - 0x80000000


def _at(index: int) -> int:
    if index < 0:
        raise UndefinedBehaviour(f"index {index}")
    return index


def _divide(left: int, right: int) -> int:
    if right == 0 or (left, right) == (-0x80000000, -1):
        raise UndefinedBehaviour(f"{left} / {right}")
    whole = abs(left) // abs(right)
    return whole if (left < 0) == (right < 0) else -whole


def _take_rest(left: int, right: int) -> int:
    return left - right * _divide(left, right)


def _shift_left(left: int, right: int) -> int:
    return _wrap(left << _check_shift(right))


def _shift_right(left: int, right: int) -> int:
    return left >> _check_shift(right)


def _check_shift(right: int) -> int:
    if not 0 <= right <= 31:
        raise UndefinedBehaviour(f"a shift by {right}")
    return right


_OPERATIONS = {
    "at": _at,
    "w": _wrap,
    "div": _divide,
    "mod": _take_rest,
    "shl": _shift_left,
    "shr": _shift_right,
}
