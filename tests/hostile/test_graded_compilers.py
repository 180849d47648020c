"""Programs that call a compiler while they are graded: one of the machine, or one they carry."""

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from sandbox.limited_process import WALLS
from scenarios.pipeline.compiler import golden, graded_cell, machine_code, toolchain
from scenarios.pipeline.compiler.grading import grade_stage
from scenarios.pipeline.compiler.scoring.execution import score_execution
from scenarios.pipeline.compiler.submission import copy_submission
from tests.support.compiler_workspaces import given, script

CASE = golden.list_graded_cases()[:1]
IR = golden.load_golden_slot("T4").artifacts[CASE[0].name]
RIGHT = golden.load_golden_slot("T5").artifacts[CASE[0].name]
COMPILE = f'{{compiler}} clang {" ".join(toolchain.TARGET)} -O1 -w -S "$1" -o "$2"'
COMPILERS = ("gcc", "cc", "c++", "clang", "tcc", "as", "ld", "rustc", "go", "java", "node", "perl")


def grade(workspace: Path, text: str, build: str | None = None) -> tuple[float | None, str]:
    """Score and reason of a T5 in shell; `../own` is the right answer."""
    script(workspace, "T5", f"#!/bin/sh\n{text}\n")
    if build:
        script(workspace, "T5", f"#!/bin/sh\n{build}\n", "build")
    (workspace / "own").write_bytes(RIGHT)
    done = grade_stage("T5", workspace, given("T5"), jobs=1, cases=CASE)
    assert done.walls == WALLS
    return done.cases[0].score, done.cases[0].why


@pytest.fixture(params=["its package", "/usr/local/bin", "/opt", "/usr/lib"])
def zig(request: pytest.FixtureRequest) -> Iterator[Path]:
    """The program zig, in its package or in a folder of the system."""
    if request.param == "its package" or not os.access(request.param, os.W_OK):
        yield toolchain.find_zig()
        return
    path = Path(request.param, f"zig-of-a-test-{os.getpid()}")
    shutil.copy(toolchain.find_zig(), path)
    try:
        yield path
    finally:
        path.unlink()


def test_a_compiler_of_the_machine_is_not_there(tmp_path: Path, zig: Path) -> None:
    (tmp_path / "program.ll").write_bytes(IR)
    compile_it = f"#!/bin/sh\n{COMPILE.format(compiler=zig)}"
    command = ["sh", "-c", compile_it, "sh", str(tmp_path / "program.ll"), str(tmp_path / "out.s")]
    subprocess.run(command, check=True)
    made = (tmp_path / "out.s").read_bytes()
    assert score_execution(CASE[0], made, "assembly").score == 100  # where it is seen
    score, why = grade(tmp_path / "workspace", COMPILE.format(compiler=zig))
    assert score == 0
    assert why.endswith(f"{zig}: not found")


@pytest.mark.parametrize("name", COMPILERS)
def test_no_other_compiler_or_runtime_is_there(tmp_path: Path, name: str) -> None:
    assert grade(tmp_path, f'command -v {name} && cp ../own "$2"')[0] == 0


def test_what_is_there_is_what_is_named(tmp_path: Path) -> None:
    script(
        tmp_path, "T5", '#!/bin/sh\nfind / -path /proc -prune -o -type f -perm /111 -print > "$2"\n'
    )
    with copy_submission(tmp_path, "T5") as submission:
        listed = submission.run_on_input(b"").artifact
    assert listed
    own = (str(submission.copy), str(submission.origin))
    paths = [Path(line) for line in listed.decode().splitlines() if not line.startswith(own)]
    programs = {path for path in paths if ".so" not in path.name}
    named = {path for path in graded_cell.list_cell_paths() if path.is_file()}
    modules = {path for path in programs if "/lib/python3" in str(path)}
    assert programs - modules <= named
    assert {"bash", "sed", "cat"} <= {path.name for path in programs}
    assert not any(path.read_bytes().startswith(b"\x7fELF") for path in modules)


@pytest.mark.parametrize("module", ["pip", "ziglang", "unicorn", "llvmlite"])
def test_python_has_its_standard_library_only(tmp_path: Path, module: str) -> None:
    used = "import ctypes, json, lzma, multiprocessing, sqlite3, ssl, zoneinfo"
    assert grade(tmp_path, f'python3 -c "{used}" && cp ../own "$2"') == (100.0, "")
    score, why = grade(tmp_path, f'python3 -c "import {module}" && cp ../own "$2"')
    assert (score, why) == (
        0.0,
        f"exit code 1: ModuleNotFoundError: No module named '{module}'",
    )


def test_a_compiler_that_is_carried_is_removed_by_name(tmp_path: Path) -> None:
    tmp_path.joinpath("t4").mkdir()
    shutil.copy(toolchain.find_zig(), tmp_path / "t4" / "helper")
    score, why = grade(tmp_path, COMPILE.format(compiler="../t4/helper"))
    assert score == 0
    assert "; not there when graded: t4/helper, 101 MiB of machine code, more than 8" in why


def test_a_build_that_fetches_a_program_of_the_machine_gets_no_further(tmp_path: Path) -> None:
    source = shutil.which("gcc") or shutil.which("perl")
    assert source
    build = f"mkdir in; cp {source} in/a; printf changed >> in/a; chmod 111 in/a; chmod 555 in"
    score, why = grade(tmp_path, './in/a --version && cp ../own "$2"', build)
    assert score == 0
    assert "; not there when graded: t5/in/a, " in why
    assert why.endswith(("it cannot be read", f"a copy of {source}"))


def test_what_a_build_compiles_is_its_own(tmp_path: Path) -> None:
    build = "echo 'int main(void) { return 7; }' > a.c && cc a.c -o a"
    assert grade(tmp_path, './a; [ $? = 7 ] && cp ../own "$2"', build) == (100.0, "")


def test_code_is_told_from_data(tmp_path: Path) -> None:
    big, text = tmp_path / "big", tmp_path / "text"
    big.write_bytes(Path("/bin/sh").read_bytes() + bytes(machine_code.MOST_CODE))
    text.write_bytes(b"\x7fELF\x02\x01 is how such a file begins")
    assert machine_code.find_reason_against(big) is None  # a shell, which the cell has
    assert machine_code.find_reason_against(text) is None


WRITTEN_CODE = {
    "a file": 'cp /bin/true "$TMPDIR/a" && "$TMPDIR/a"',
    "a file in shared memory": "cp /bin/true /dev/shm/a && /dev/shm/a",
    "a file for the loader": 'cp /bin/true "$TMPDIR/a" && /lib64/ld-linux-x86-64.so.2 "$TMPDIR/a"',
    "a file of memory": "python3 -c 'import os; os.memfd_create(\"a\")'",
    "memory": "python3 -c 'import mmap; mmap.mmap(-1, 4096, prot=7)'",
    "its own code": 'python3 -c \'open("/proc/self/mem", "r+b")\'',
    "shared memory": "python3 -c 'import ctypes, sys; a = ctypes.CDLL(None); "
    "sys.exit(a.shmat(a.shmget(0, 4096, 0o1700), None, 0o100000) == -1)'",
    "another process": "python3 -c 'import ctypes, sys; sys.exit(ctypes.CDLL(None).ptrace(0) < 0)'",
}


@pytest.mark.parametrize("name", WRITTEN_CODE)
def test_what_a_program_writes_is_not_executed(tmp_path: Path, name: str) -> None:
    assert grade(tmp_path, f'{WRITTEN_CODE[name]} && cp ../own "$2"')[0] == 0
