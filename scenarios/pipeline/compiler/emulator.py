"""An RV64 emulator on unicorn, run as a process that serves programs.

Each request on stdin is answered on stdout: a line of JSON, then the bytes whose sizes it names.

    {"elf": 4336, "stdin": 12, "limit": 50000000}
    {"ended": "exit", "exit": 0, "instructions": 42259, "why": "", "stdout": 318}

Every program starts on a new machine with all registers zero, so that its behaviour depends only on
its bytes and its input. A basic block is counted when it is entered: exact to the instruction for a
program that exits, because an ecall ends a block; a program that crashes is charged for the
complete last block.

Agents get a copy of this file for their tests, so it imports nothing of the package, counts by
itself, and supports Python 3.10. Grading uses `native_counter.py`.
"""

import gc
import json
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from struct import Struct
from struct import error as StructError
from typing import Protocol

from unicorn import (
    UC_ARCH_RISCV,
    UC_ERR_FETCH_PROT,
    UC_ERR_FETCH_UNMAPPED,
    UC_ERR_READ_UNMAPPED,
    UC_ERR_WRITE_PROT,
    UC_ERR_WRITE_UNMAPPED,
    UC_HOOK_BLOCK,
    UC_HOOK_INTR,
    UC_MODE_RISCV64,
    UC_PROT_EXEC,
    UC_PROT_READ,
    UC_PROT_WRITE,
)
from unicorn.riscv_const import (
    UC_RISCV_REG_A0,
    UC_RISCV_REG_A1,
    UC_RISCV_REG_A2,
    UC_RISCV_REG_A7,
    UC_RISCV_REG_PC,
    UC_RISCV_REG_SP,
)
from unicorn.unicorn_py3.unicorn import Uc, UcError

PAGE = 4096
MEMORY = 64 << 20
"""Total size of a program's segments in bytes, at most."""
MOST_CODE = 1 << 20
"""Bytes of code, at most, and between its first and last: each block is translated when it is
first entered, which takes a thousand times as long as executing it.
"""
STACK = 8 << 20
STACK_TOP = 0x7FFF_F000
STDOUT = 1 << 20
"""Bytes that a program may print."""
ECALLS = 1 << 19
"""Number of ecalls a program may make, since one takes longer to serve than an instruction."""

_BY_ECALL = (8, 9, 11)  # from user, supervisor and machine mode
_HEADER = Struct("<16xHHIQQQIHHHHHH")
_SEGMENT = Struct("<IIQQQQQQ")
_WORD = Struct("<I")
_ELF_64, _PROGRAM, _RISCV = b"\x7fELF\x02\x01", 2, 243  # elf(5): class, type and machine
_LOAD = 1
_EXECUTE, _WRITE, _READ = 1, 2, 4
_PERMISSION = {_EXECUTE: UC_PROT_EXEC, _WRITE: UC_PROT_WRITE, _READ: UC_PROT_READ}
_SYSTEM = 0x73
_HARMLESS = (0x0000_0073, 0x0010_0073, 0xC000_1073)  # ecall; ebreak and unimp, which are crashes
_ACCESS = {
    UC_ERR_FETCH_PROT: "executed what is no code",
    UC_ERR_FETCH_UNMAPPED: "jumped to where nothing is",
    UC_ERR_READ_UNMAPPED: "read where nothing is",
    UC_ERR_WRITE_PROT: "wrote to what cannot be written",
    UC_ERR_WRITE_UNMAPPED: "wrote where nothing is",
}


ProgramReport = dict[str, int | str | None]


class InstructionCounter(Protocol):
    """Counts executed instructions and stops the machine at a limit."""

    executed: int
    """Instructions of all blocks entered."""
    most: int
    foreign: int
    """The address of an instruction of two bytes that was reached, or 0."""


@dataclass(slots=True)
class CodeBytes:
    """All code of a program, from its lowest address on; nothing can write to it."""

    low: int
    data: bytes


CounterFactory = Callable[[Uc, CodeBytes, int], InstructionCounter]


@dataclass(slots=True)
class PythonCounter:
    """Counter in pure Python: slow, without dependencies."""

    most: int
    executed: int = 0
    foreign: int = 0


def start_python_counter(machine: Uc, code: CodeBytes, limit: int) -> PythonCounter:
    """Count instructions on this machine and stop it after `limit` of them."""
    counter = PythonCounter(most=limit)

    def block(_: Uc, address: int, size: int, data: object) -> None:
        counter.executed += (size + 3) // 4
        start = address - code.low
        if start % 4 or any(byte & 3 != 3 for byte in code.data[start : start + size : 4]):
            counter.foreign = address
        if counter.foreign or counter.executed > counter.most:
            machine.emu_stop()

    machine.hook_add(UC_HOOK_BLOCK, block)
    return counter


@dataclass(slots=True)
class EmulatedProgram:
    """One program on a machine, until it ends."""

    machine: Uc
    stdin: bytes
    stdout: bytearray = field(default_factory=bytearray)
    ecalls: int = 0
    instructions: int = 0
    ended: str = ""
    exit: int | None = None
    why: str = ""

    def end(self, how: str, why: str = "") -> None:
        self.ended, self.why = how, why
        self.machine.emu_stop()

    def serve_ecall(self) -> None:
        """Serve read, write and exit, numbered as on Linux; any other ecall is a crash."""
        registers = (UC_RISCV_REG_A0, UC_RISCV_REG_A1, UC_RISCV_REG_A2, UC_RISCV_REG_A7)
        first, address, size, number = (self.machine.reg_read(each) for each in registers)
        self.ecalls += 1
        match number:
            case _ if self.ecalls > ECALLS:
                self.end("limit", f"made more than {ECALLS} ecalls")
            case 63:
                data, self.stdin = self.stdin[:size], self.stdin[size:]
                self.machine.mem_write(address, data)
                self.machine.reg_write(UC_RISCV_REG_A0, len(data))
            case 64 if size > STDOUT - len(self.stdout):
                self.end("limit", f"printed more than {STDOUT} bytes")
            case 64:
                self.stdout += self.machine.mem_read(address, size)
                self.machine.reg_write(UC_RISCV_REG_A0, size)
            case 93:
                self.exit = first & 0xFF
                self.end("exit")
            case _:
                self.end("crash", f"made an ecall of the unknown number {number}")

    def start(self, entry: int, code: CodeBytes, limit: int, count: CounterFactory) -> None:
        """Run until the program exits, crashes or reaches a limit."""

        def interrupt(_: Uc, number: int, data: object) -> None:
            if number not in _BY_ECALL:
                at = self.machine.reg_read(UC_RISCV_REG_PC)
                self.end("crash", f"an instruction that is none, at {at:#x}")
                return
            try:
                self.serve_ecall()
            except UcError as error:
                self.end("crash", f"an ecall {_ACCESS.get(error.errno, str(error))}")

        counter = count(self.machine, code, limit)
        self.machine.hook_add(UC_HOOK_INTR, interrupt)
        try:
            self.machine.emu_start(entry, 0)
        except UcError as error:
            at = self.machine.reg_read(UC_RISCV_REG_PC)
            self.end("crash", f"{_ACCESS.get(error.errno, str(error))}, at {at:#x}")
        self.instructions = counter.executed
        if counter.foreign:
            self.end("crash", f"an instruction of two bytes, at {counter.foreign:#x}")
        elif counter.executed > counter.most:
            self.end("limit", f"more than {limit} instructions")
        elif not self.ended:
            self.end("crash", "jumped to address 0")


def emulate_elf(
    elf: bytes, stdin: bytes, limit: int, count: CounterFactory = start_python_counter
) -> tuple[ProgramReport, bytes]:
    """Run a program; return its report and its stdout."""
    run = EmulatedProgram(machine=Uc(UC_ARCH_RISCV, UC_MODE_RISCV64), stdin=stdin)
    try:
        entry, code = load_elf(run.machine, elf)
    except MemoryError as error:
        run.end("limit", str(error))
    except (StructError, UcError, ValueError) as error:
        run.end("crash", f"no program that can be loaded: {error}")
    else:
        run.start(entry, code, limit, count)
    report: ProgramReport = {"ended": run.ended, "exit": run.exit, "instructions": run.instructions}
    return report | {"why": run.why, "stdout": len(run.stdout)}, bytes(run.stdout)


def load_elf(machine: Uc, elf: bytes) -> tuple[int, CodeBytes]:
    """Map the segments of a static ELF and a stack; return the entry address and the code."""
    kind, system, _, entry, table, _, _, _, size, count, _, _, _ = _HEADER.unpack_from(elf)
    if not elf.startswith(_ELF_64) or (kind, system) != (_PROGRAM, _RISCV):
        raise ValueError("no static ELF of 64 bits for RISC-V")
    segments = [_SEGMENT.unpack_from(elf, table + size * number) for number in range(count)]
    loadable = [segment for segment in segments if segment[0] == _LOAD]
    if (needed := sum(segment[6] for segment in loadable)) > MEMORY:
        raise MemoryError(f"needs {needed} bytes of memory; the machine has {MEMORY}")
    code: dict[int, bytes] = {}
    for _, flags, offset, address, _, filled, extent, _ in loadable:
        low, high = address & -PAGE, (address + extent + PAGE - 1) & -PAGE
        allowed = sum(permission for flag, permission in _PERMISSION.items() if flags & flag)
        machine.mem_map(low, high - low, allowed)
        data = elf[offset : offset + filled]
        if flags & _EXECUTE:
            _reject_unsafe_code(data, address, flags)
            code[address] = data
        machine.mem_write(address, data)
    machine.mem_map(STACK_TOP - STACK, STACK, UC_PROT_READ | UC_PROT_WRITE)
    machine.reg_write(UC_RISCV_REG_SP, STACK_TOP)
    return int(entry), _join_code(code)


def _join_code(segments: dict[int, bytes]) -> CodeBytes:
    """Return the code of all segments, by address. Raises MemoryError if that is too much."""
    low = min(segments, default=0)
    size = max((at + len(data) - low for at, data in segments.items()), default=0)
    if size > MOST_CODE:
        raise MemoryError(f"has {size} bytes of code; the machine runs {MOST_CODE}")
    joined = bytearray(size)
    for at, data in segments.items():
        joined[at - low : at - low + len(data)] = data
    return CodeBytes(low=low, data=bytes(joined))


def _reject_unsafe_code(code: bytes, address: int, flags: int) -> None:
    """Raise ValueError for code that could make two runs of a program differ.

    That is an access to control registers, such as the time, or writable code, which could hide
    one.
    """
    if flags & _WRITE:
        raise ValueError(f"code that can be written to, at {address:#x}")
    for number, (word,) in enumerate(_WORD.iter_unpack(code[: len(code) & -4])):
        if word & 0x7F == _SYSTEM and word not in _HARMLESS:
            raise ValueError(f"an instruction for control registers, at {address + 4 * number:#x}")


def main(count: CounterFactory = start_python_counter) -> None:
    """Serve programs until stdin closes."""
    source, sink = sys.stdin.buffer, sys.stdout.buffer
    while line := source.readline():
        request = json.loads(line)
        elf, stdin = source.read(request["elf"]), source.read(request["stdin"])
        report, printed = emulate_elf(elf, stdin, request["limit"], count)
        sink.write(json.dumps(report).encode() + b"\n" + printed)
        sink.flush()
        gc.collect()  # machine and hooks form a cycle that maps a gigabyte


if __name__ == "__main__":
    main()
