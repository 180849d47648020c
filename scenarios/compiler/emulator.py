"""RV64 on unicorn, in a process of its own.

Programs come on stdin and what became of them goes to stdout, one after the other: a line of JSON,
then the bytes whose sizes it names.

    {"elf": 4336, "stdin": 12, "limit": 50000000}
    {"ended": "exit", "exit": 0, "instructions": 42259, "why": "", "stdout": 318}

Every program starts on a machine of its own with all registers zero, so that nothing but its bytes
and its input decides what it does. A block of instructions without a jump is counted when it
begins: exact to the instruction where a program exits, because an ecall ends a block; a program
that crashes is charged the whole block in which it did.

Agents get a copy of this file for their own tries, so it stands alone, counts by itself, and runs
on Python 3.10 too. `fast.py` is what programs are graded on.
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
"""What the segments of a program may need together, in bytes."""
STACK = 8 << 20
STACK_TOP = 0x7FFF_F000
STDOUT = 1 << 20
"""What a program may print, in bytes."""
ECALLS = 1 << 19
"""What it may ask for, since serving takes longer than an instruction."""

_BY_ECALL = (8, 9, 11)  # from user, supervisor and machine mode
_HEADER = Struct("<16xHHIQQQIHHHHHH")
_SEGMENT = Struct("<IIQQQQQQ")
_WORD = Struct("<I")
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


Said = dict[str, int | str | None]


class Counter(Protocol):
    """Counts what a machine executes, and stops it where that is too much."""

    size: int
    """Of all blocks begun, in bytes: four for each instruction."""
    most: int


Count = Callable[[Uc, int], Counter]


@dataclass(slots=True)
class Counted:
    """Counts in Python, which is slow and needs nothing."""

    most: int
    size: int = 0


def counting(machine: Uc, limit: int) -> Counted:
    """Count on this machine from now on, and stop it after `limit` instructions."""
    counted = Counted(most=4 * limit)

    def block(_: Uc, address: int, size: int, data: object) -> None:
        counted.size += size
        if counted.size > counted.most:
            machine.emu_stop()

    machine.hook_add(UC_HOOK_BLOCK, block)
    return counted


@dataclass(slots=True)
class Run:
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

    def ecall(self) -> None:
        """Serve read, write and exit, numbered as on Linux; any other is a crash."""
        asked = (UC_RISCV_REG_A0, UC_RISCV_REG_A1, UC_RISCV_REG_A2, UC_RISCV_REG_A7)
        first, address, size, number = (self.machine.reg_read(each) for each in asked)
        self.ecalls += 1
        match number:
            case _ if self.ecalls > ECALLS:
                self.end("limit", f"made more than {ECALLS} ecalls")
            case 63:
                given, self.stdin = self.stdin[:size], self.stdin[size:]
                self.machine.mem_write(address, given)
                self.machine.reg_write(UC_RISCV_REG_A0, len(given))
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

    def start(self, entry: int, limit: int, count: Count) -> None:
        """Go on until the program ends, by itself or because it may not go on."""

        def interrupt(_: Uc, number: int, data: object) -> None:
            if number not in _BY_ECALL:
                at = self.machine.reg_read(UC_RISCV_REG_PC)
                self.end("crash", f"an instruction that is none, at {at:#x}")
                return
            try:
                self.ecall()
            except UcError as error:
                self.end("crash", f"an ecall {_ACCESS.get(error.errno, str(error))}")

        counter = count(self.machine, limit)
        self.machine.hook_add(UC_HOOK_INTR, interrupt)
        try:
            self.machine.emu_start(entry, 0)
        except UcError as error:
            at = self.machine.reg_read(UC_RISCV_REG_PC)
            self.end("crash", f"{_ACCESS.get(error.errno, str(error))}, at {at:#x}")
        self.instructions = counter.size // 4
        if counter.size > counter.most:
            self.end("limit", f"more than {limit} instructions")
        elif not self.ended:
            self.end("crash", "jumped to address 0")


def run(elf: bytes, stdin: bytes, limit: int, count: Count = counting) -> tuple[Said, bytes]:
    """What became of a program, and what it printed."""
    run = Run(machine=Uc(UC_ARCH_RISCV, UC_MODE_RISCV64), stdin=stdin)
    try:
        entry = load(run.machine, elf)
    except MemoryError as error:
        run.end("limit", str(error))
    except (StructError, UcError, ValueError) as error:
        run.end("crash", f"no program that can be loaded: {error}")
    else:
        run.start(entry, limit, count)
    said: Said = {"ended": run.ended, "exit": run.exit, "instructions": run.instructions}
    return said | {"why": run.why, "stdout": len(run.stdout)}, bytes(run.stdout)


def load(machine: Uc, elf: bytes) -> int:
    """Put the segments of a static ELF and a stack where they belong; its entry."""
    _, _, _, entry, table, _, _, _, size, count, _, _, _ = _HEADER.unpack_from(elf)
    places = [_SEGMENT.unpack_from(elf, table + size * number) for number in range(count)]
    wanted = [place for place in places if place[0] == _LOAD]
    if (needed := sum(place[6] for place in wanted)) > MEMORY:
        raise MemoryError(f"needs {needed} bytes of memory; the machine has {MEMORY}")
    for _, flags, offset, address, _, filled, extent, _ in wanted:
        low, high = address & -PAGE, (address + extent + PAGE - 1) & -PAGE
        allowed = sum(given for flag, given in _PERMISSION.items() if flags & flag)
        machine.mem_map(low, high - low, allowed)
        data = elf[offset : offset + filled]
        if flags & _EXECUTE:
            _check(data, address, flags)
        machine.mem_write(address, data)
    machine.mem_map(STACK_TOP - STACK, STACK, UC_PROT_READ | UC_PROT_WRITE)
    machine.reg_write(UC_RISCV_REG_SP, STACK_TOP)
    return int(entry)


def _check(code: bytes, address: int, flags: int) -> None:
    """Refuse what would make two runs of a program differ, which time in a register does; and code
    that can be written, in which that could be hidden."""
    if flags & _WRITE:
        raise ValueError(f"code that can be written to, at {address:#x}")
    for number, (word,) in enumerate(_WORD.iter_unpack(code[: len(code) & -4])):
        if word & 0x7F == _SYSTEM and word not in _HARMLESS:
            raise ValueError(f"an instruction for control registers, at {address + 4 * number:#x}")


def main(count: Count = counting) -> None:
    """Serve programs until there are no more."""
    source, sink = sys.stdin.buffer, sys.stdout.buffer
    while line := source.readline():
        asked = json.loads(line)
        elf, stdin = source.read(asked["elf"]), source.read(asked["stdin"])
        said, printed = run(elf, stdin, asked["limit"], count)
        sink.write(json.dumps(said).encode() + b"\n" + printed)
        sink.flush()
        gc.collect()  # a machine and its hooks hold one another, and a gigabyte of addresses


if __name__ == "__main__":
    main()
