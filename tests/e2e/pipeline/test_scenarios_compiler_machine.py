"""The RV64 machine: it counts exactly, it is the same each time, and programs crash, not it."""

import os
import signal
import threading
import time
from pathlib import Path

import pytest
from unicorn import UC_HOOK_CODE
from unicorn.unicorn_py3.unicorn import Uc

from scenarios.pipeline.compiler import emulator, emulator_pool, native_counter, toolchain
from scenarios.pipeline.compiler.emulator import CodeBytes, PythonCounter
from scenarios.pipeline.compiler.emulator_pool import EmulationResult, EmulatorProcess
from scenarios.pipeline.compiler.golden import list_graded_cases

ECHO = """
main:
    addi sp, sp, -16
    sd ra, 8(sp)
    call get_int
    call put_int
    li a0, 10
    call put_char
    call get_char
    call get_char
    ld ra, 8(sp)
    addi sp, sp, 16
    ret
"""


def assembled(body: str) -> bytes:
    return toolchain.link_executable(f".globl main\n{body}\n".encode(), "assembly")


def ran(body: str, stdin: bytes = b"", limit: int = 100_000) -> EmulationResult:
    return emulator_pool.run_emulated(assembled(body), stdin, limit)


def stepping(uc: Uc, _: CodeBytes, limit: int) -> PythonCounter:
    """Counts every instruction by itself, which nothing about blocks can bend."""
    counted = PythonCounter(most=limit)

    def step(_: Uc, address: int, size: int, data: object) -> None:
        counted.executed += 1

    uc.hook_add(UC_HOOK_CODE, step)
    return counted


def test_a_program_reads_prints_and_ends() -> None:
    did = ran(ECHO, b"  -120\nA")
    assert (did.stdout, did.exit, did.ended, did.why) == (b"-120\n", ord("A"), "exit", "")


def test_numbers_are_read_and_printed_as_the_page_says() -> None:
    read = "main: addi sp, sp, -16\nsd ra, 8(sp)\ncall get_int\ncall put_int\ncall get_char\n"
    program = read + "call put_int\nli a0, 0\nld ra, 8(sp)\naddi sp, sp, 16\nret"
    for stdin, printed in {
        b"\t\r\n 007x": b"7120",
        b"-2147483648": b"-2147483648-1",
        b"2147483648 ": b"-214748364832",
        b"-": b"0-1",
        b"": b"0-1",
        b"a": b"097",
    }.items():
        assert ran(program, stdin).stdout == printed, stdin


def test_an_exit_code_is_what_main_returns_modulo_256() -> None:
    assert [ran(f"main: li a0, {code}\nret").exit for code in (0, 255, 256, -1)] == [0, 255, 0, 255]


def test_arguments_with_rubbish_in_their_upper_halves_are_served() -> None:
    rubbish = "main: mv s0, ra\nli a0, 0x7700000005\ncall put_int\nli a0, 0\nmv ra, s0\nret"
    assert ran(rubbish).stdout == b"5"


def test_instructions_are_counted_exactly_and_alike_by_all_who_count() -> None:
    small = [case for case in list_graded_cases() if case.band == "easy"][::5]
    for case in small:
        elf = toolchain.link_executable(toolchain.compile_to_ir(case.source, "-O2"), "ir")
        steps, _ = emulator.emulate_elf(elf, case.stdin, 1_000_000, stepping)
        slow, _ = emulator.emulate_elf(elf, case.stdin, 1_000_000, emulator.start_python_counter)
        quick, _ = emulator.emulate_elf(
            elf, case.stdin, 1_000_000, native_counter.start_native_counter
        )
        assert steps == slow == quick, case.name
        assert emulator_pool.run_emulated(elf, case.stdin).instructions == steps["instructions"]


def test_straight_code_takes_as_many_instructions_as_it_has() -> None:
    none, ten = (ran(f"main:\n{'nop\n' * nops}li a0, 0\nret") for nops in (0, 10))
    assert ten.instructions - none.instructions == 10


def test_a_run_is_the_same_each_time_and_in_every_process() -> None:
    elf = assembled(ECHO)
    first = emulator_pool.run_emulated(elf, b"5 x")
    workers = (EmulatorProcess(), EmulatorProcess())
    try:
        runs = [
            worker.run(elf, b"5 x", emulator_pool.LIMIT) for worker in workers for _ in range(3)
        ]
    finally:
        for worker in workers:
            worker.close()
    assert {*runs} == {first}


def test_the_limit_is_the_last_instruction_that_is_allowed() -> None:
    needed = ran("main: li a0, 3\nret").instructions
    assert ran("main: li a0, 3\nret", limit=needed).ended == "exit"
    stopped = ran("main: li a0, 3\nret", limit=needed - 1)
    assert (stopped.ended, stopped.exit) == ("limit", None)
    assert stopped.why == f"more than {needed - 1} instructions"
    assert ran("main: j main").ended == "limit"


CRASHES = {
    "jumps to 0": ("main: jr zero", "jumped to where nothing is, at 0x0"),
    "jumps into nowhere": ("main: li a0, 0x40000\njr a0", "jumped to where nothing is, at 0x40000"),
    "jumps to data": ("main: mv a0, sp\naddi a0, a0, -64\njr a0", "executed what is no code"),
    "writes outside": ("main: sw zero, 0(zero)", "wrote where nothing is"),
    "reads outside": ("main: lw a0, 8(zero)", "read where nothing is"),
    "writes to its code": ("main: la a0, main\nsw a0, 0(a0)", "wrote to what cannot be written"),
    "runs out of stack": (
        "main: sd ra, -8(sp)\naddi sp, sp, -2032\nj main",
        "wrote where nothing is",
    ),
    "no instruction": ("main: .word 0", "an instruction that is none"),
    "instructions of two bytes": (
        ".option rvc\nmain: li a0, 0\nnop\nret",
        "an instruction of two bytes, at 0x",
    ),
    "unimp": ("main: unimp", "an instruction that is none"),
    "unknown ecall": ("main: li a7, 57\necall", "made an ecall of the unknown number 57"),
    "prints what is not its": ("main: li a7, 64\nli a1, 4\nli a2, 9\necall", "an ecall read"),
    "reads to nowhere": ("main: li a7, 63\nli a1, 4\nli a2, 9\necall", "an ecall wrote"),
    "reads the clock": ("main: rdcycle a0\nret", "an instruction for control registers"),
    "code that can be written": (
        '.section .own, "awx"\nmain: li a0, 0\nret',
        "code that can be written to",
    ),
}


@pytest.mark.many(4)
@pytest.mark.parametrize("name", CRASHES)
def test_a_crash_is_the_programs_own(name: str) -> None:
    body, why = CRASHES[name]
    did = ran(body, b"something")
    assert (did.ended, did.exit) == ("crash", None)
    assert why in did.why


@pytest.mark.parametrize("damage", [b"", b"\x7fELF", b"x" * 1000])
def test_what_is_no_program_crashes(damage: bytes) -> None:
    did = emulator_pool.run_emulated(damage)
    assert did.ended == "crash"
    assert did.why.startswith("no program that can be loaded")


def test_memory_output_and_ecalls_are_bounded() -> None:
    greedy = ran("main: ret\n.bss\nfield: .zero 100000000")
    assert (greedy.ended, "bytes of memory" in greedy.why) == ("limit", True)
    endless = "main: li a7, 64\nmv a1, sp\nlui a2, 16\nsub a1, a1, a2\nmore: ecall\nj more"
    talker = ran(endless)
    assert (talker.ended, talker.why) == ("limit", "printed more than 1048576 bytes")
    assert len(talker.stdout) == 1 << 20


def test_a_machine_that_dies_is_no_crash_of_the_program_and_the_next_one_lives() -> None:
    elf = assembled("main: j main")
    worker = EmulatorProcess()
    done: list[EmulationResult] = []
    waiting = threading.Thread(
        target=lambda: done.append(worker.run(elf, b"", 2_000_000_000_000)), daemon=True
    )
    waiting.start()
    while _ticks(worker.pid) < 5:
        time.sleep(0.01)
    os.kill(worker.pid, signal.SIGSEGV)
    waiting.join(30)
    worker.close()
    [ran_off] = done
    assert (ran_off.ended, ran_off.exit) == ("machine", None)
    assert ran_off.why == "the machine's process ended with -11"
    assert ran("main: li a0, 7\nret").exit == 7


def _ticks(pid: int) -> int:
    """Of processor time that a process has used."""
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[11])


@pytest.mark.parametrize("jumps", [200_000, 1_000_000, 4_000_000])
def test_jumps_that_keep_the_machine_busy_reach_a_limit(jumps: int) -> None:
    """Each word jumps to the next one, so that each is a block to translate."""
    body = f"main: .fill {jumps}, 4, 0x0040006f\nlui a0, 0\nla a1, main\njr a1"
    did = ran(body, limit=emulator_pool.LIMIT)
    assert (did.ended, did.exit) == ("limit", None)


def test_the_machine_is_tried_with_a_program_that_exits() -> None:
    did = emulator_pool.run_emulated(emulator_pool._IDLE_PROGRAM)
    assert (did.ended, did.exit, did.instructions) == ("exit", 0, 3)


def test_as_many_run_at_once_as_like() -> None:
    elf = assembled(ECHO)
    answers: dict[int, bytes] = {}

    def ask(number: int) -> None:
        answers[number] = emulator_pool.run_emulated(elf, f"{number} ".encode()).stdout

    threads = [threading.Thread(target=ask, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert answers == {number: f"{number}\n".encode() for number in range(8)}
