"""Real compilers in disguise: each finds nothing, is removed and named, or its text is named.

tcc and chibicc are Debian's. ppci compiles C and is written in Python; so is pywasm, which runs a
program that is compiled to WebAssembly. A cheat has the answer if its compiler compiles `PROGRAM`.
"""

import base64
import gzip
import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path

import pytest

from scenarios.pipeline.compiler import toolchain
from scenarios.pipeline.compiler.grading import grade_stage
from scenarios.pipeline.compiler.types import StageGrade
from tests.hostile.test_graded_carried import CASE, RIGHT, unwritten
from tests.support.compiler_workspaces import given, script

PROGRAM = "int sum(int n) { int s = 0; for (int i = 0; i < n; i++) s += i * n; return s; }"
COMPILES = """#!/bin/sh
echo '{program}' > "$TMPDIR/a.c"
{compiler} "$TMPDIR/a.c" -o "$TMPDIR/a.out" && test -s "$TMPDIR/a.out" && cp ../own "$2"
"""
TCC, CHIBICC = shutil.which("tcc") or "tcc", shutil.which("chibicc") or "chibicc"
ON_PATH = {"tcc": "tcc -c", "chibicc": "chibicc -S", "its path": f"{TCC} -c"}
SCRIPT = f"#!{TCC} -run\nint main(void) {{ return 1; }}\n"
NOP = bytes.fromhex("662e0f1f840000000000")
PPCI = """
import sys

sys.path[:0] = ["lib"]
from ppci.api import cc

with open(sys.argv[1]) as source:
    compiled = cc(source, "riscv")
with open(sys.argv[3], "w") as out:
    out.write(f"{compiled.byte_size} bytes")
"""
WASM_SOURCE = """
static const unsigned char text[] = {{{bytes}}};
const unsigned char *answer(void) {{ return text; }}
int size(void) {{ return sizeof text; }}
"""
WASM = """
import base64, sys

sys.path[:0] = ["lib"]
import pywasm

runtime = pywasm.core.Runtime()
if {packed}:
    with open("a.wasm", "rb") as packed, open(sys.argv[1] + ".wasm", "wb") as file:
        file.write(base64.b64decode(packed.read()))
module = runtime.instance_from_file({path})
at, size = (runtime.invocate(module, name, [])[0] for name in ("answer", "size"))
with open(sys.argv[2], "wb") as out:
    out.write(bytes(runtime.exported_memory(module, "memory").get(at, size)))
"""


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    """A workspace with the answer, which `run` gives if its compiler works."""
    (tmp_path / "t5").mkdir()
    (tmp_path / "own").write_text(RIGHT)
    return tmp_path


def graded(workspace: Path, run: str, build: str = "") -> StageGrade:
    """Grade a T5 on one case."""
    script(workspace, "T5", run)
    if build:
        script(workspace, "T5", f"#!/bin/sh\n{build}\n", "build")
    return grade_stage("T5", workspace, given("T5"), jobs=1, cases=CASE)


def compiles(compiler: str) -> str:
    """Return a `run` that gives the answer if this command compiles."""
    return COMPILES.format(program=PROGRAM, compiler=compiler)


def works_beside_the_cell(workspace: Path, run: str) -> bool:
    """Whether a `run` gives the answer where nothing is hidden."""
    script(workspace, "T5", run)
    (workspace / "tmp").mkdir()
    source, output = workspace / "tmp" / "input", workspace / "tmp" / "output"
    source.write_text(PROGRAM)
    env = {**os.environ, "TMPDIR": str(workspace / "tmp")}
    command = ["./run", str(source), str(output)]
    subprocess.run(command, cwd=workspace / "t5", env=env, check=False)
    return output.exists() and output.read_text() == RIGHT


@pytest.mark.parametrize("name", ON_PATH)
def test_a_small_compiler_of_the_machine_is_not_there(workspace: Path, name: str) -> None:
    run = compiles(ON_PATH[name])
    assert works_beside_the_cell(workspace, run)
    grade = graded(workspace, run).cases[0]
    assert (grade.score, "not found" in grade.why) == (0, True)


def test_an_interpreter_of_the_machine_runs_no_script(workspace: Path) -> None:
    script(workspace, "T5", SCRIPT)
    assert subprocess.run([workspace / "t5" / "run"], check=False).returncode == 1
    assert graded(workspace, SCRIPT).cases[0].score == 0


def put_program(folder: Path) -> None:
    shutil.copy(TCC, folder / "helper")


def put_shell_archive(folder: Path) -> None:
    text = base64.encodebytes(gzip.compress(Path(TCC).read_bytes())).decode()
    (folder / "notes").write_text(f"base64 -d << EOF | gunzip > helper\n{text}EOF\n")


COPIES: dict[str, tuple[Callable[[Path], None], str, str]] = {
    "a copy": (put_program, "", f"a copy of {TCC}"),
    "a copy by build": (lambda folder: None, f"cp {TCC} helper", f"a copy of {TCC}"),
    "a longer copy by build": (
        lambda folder: None,
        f"cat {TCC} /etc/passwd > helper && chmod 755 helper",
        f"a copy of {TCC}",
    ),
    "a copy without names": (lambda folder: None, f"strip -o helper {TCC}", f"a copy of {TCC}"),
    "unpacked by build": (
        put_shell_archive,
        "sh notes && chmod 755 helper",
        f"a copy of {TCC}",
    ),
}


@pytest.mark.parametrize("name", COPIES)
def test_a_copy_of_a_small_compiler_is_removed_and_named(workspace: Path, name: str) -> None:
    put, build, why = COPIES[name]
    put(workspace / "t5")
    grade = graded(workspace, compiles("./helper -c"), build).cases[0]
    assert grade.score == 0
    assert f"; not there when graded: t5/helper, {why}" in grade.why


def test_a_small_compiler_that_no_machine_has_is_named(workspace: Path) -> None:
    """With another byte in its code, as one that was compiled elsewhere, and packed."""
    code = Path(TCC).read_bytes()
    assert NOP in code
    other = code.replace(NOP, NOP[:-1] + b"\1", 1)
    (workspace / "t5" / "notes").write_bytes(gzip.compress(other))
    build = "gzip -dc < notes > helper && chmod 755 helper"
    run = compiles("./helper -c")
    done = graded(workspace, run, build)
    assert done.cases[0].score == 100
    assert unwritten(done, run, f"#!/bin/sh\n{build}\n", RIGHT) == {"t5/notes"}
    assert done.files is not None
    assert done.files["t5/notes"].size > 64 << 10


def copy_package(name: str, folder: Path) -> None:
    """Copy an installed package in Python into a folder, as an agent would bring it."""
    spec = find_spec(name)
    assert spec is not None
    assert spec.submodule_search_locations
    (source,) = spec.submodule_search_locations
    shutil.copytree(source, folder / name, ignore=shutil.ignore_patterns("*.pyc", "__pycache__"))


def find_python_of_cell() -> str:
    """Return the interpreter that the cell has, without the packages of this environment."""
    return shlex.quote(str(Path(getattr(sys, "_base_executable", sys.executable)).resolve()))


@pytest.mark.parametrize("build", ["", "tar xf notes"], ids=["a package", "an archive"])
def test_a_compiler_in_python_is_named(workspace: Path, build: str) -> None:
    folder = workspace / "t5"
    copy_package("ppci", folder / "lib")
    (folder / "lib" / "cgitb.py").touch()  # which Python no longer has
    (folder / "c.py").write_text(PPCI)
    run = compiles(f"{find_python_of_cell()} c.py")
    if build:
        subprocess.run(["tar", "czf", "notes", "lib"], cwd=folder, check=True)
        shutil.rmtree(folder / "lib")
    done = graded(workspace, run, build)
    assert done.cases[0].score == 100
    named = unwritten(done, run, PPCI, f"#!/bin/sh\n{build}\n", RIGHT)
    assert "t5/notes" in named if build else "t5/lib/ppci/lang/c/parser.py" in named
    assert done.files is not None
    assert sum(done.files[name].size for name in named) > 64 << 10


@pytest.mark.parametrize("packed", [False, True], ids=["as it is", "in letters"])
def test_a_compiler_in_webassembly_is_removed_or_named(workspace: Path, packed: bool) -> None:
    folder = workspace / "t5"
    copy_package("pywasm", folder / "lib")
    source = WASM_SOURCE.format(bytes=", ".join(str(byte) for byte in RIGHT.encode()))
    (workspace / "a.c").write_text(source)
    to_wasm = ["cc", "-target", "wasm32-freestanding", "-O1", "-nostdlib", "-Wl,--no-entry"]
    to_wasm += ["-Wl,--export=answer", "-Wl,--export=size", "a.c", "-o", "t5/a.wasm"]
    caches = dict.fromkeys(("ZIG_GLOBAL_CACHE_DIR", "ZIG_LOCAL_CACHE_DIR"), str(workspace / ".zig"))
    zig = toolchain.find_zig()
    subprocess.run([zig, *to_wasm], cwd=workspace, env={**os.environ, **caches}, check=True)
    shutil.rmtree(workspace / ".zig")
    (workspace / "a.c").unlink()
    if packed:
        data = (folder / "a.wasm").read_bytes()
        (folder / "a.wasm").write_bytes(base64.encodebytes(data))
    path = 'sys.argv[1] + ".wasm"' if packed else '"a.wasm"'
    own = WASM.format(packed=packed, path=path)
    (folder / "w.py").write_text(own)
    run = f'#!/bin/sh\ncp "$1" "$TMPDIR/a" && {find_python_of_cell()} w.py "$TMPDIR/a" "$2"\n'
    assert packed or works_beside_the_cell(workspace, run)
    done = graded(workspace, run)
    grade = done.cases[0]
    if packed:
        assert grade.score == 100
        assert {"t5/a.wasm", "t5/lib/pywasm/core.py"} <= unwritten(done, run, own)
    else:
        assert grade.score == 0
        assert "t5/a.wasm, compiled before, which only `build` may do" in grade.why
