"""The C compiler and linker inside the package ziglang, as plain functions from bytes to bytes.

`zig clang` and `zig ld.lld` are the programs of LLVM and need nothing but their arguments. Never
`zig cc`: it builds a C library first, which takes minutes, and keeps a cache in the user's home.

What a tool refuses is a ValueError with its words. What it does not finish is a TimeoutError.
"""

import importlib.util
import re
import resource
import signal
import subprocess
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Literal

from scenarios.compiler import extra

RUNTIME = Path(__file__).parent / "runtime"
TARGET = ("--target=riscv64-unknown-elf", "-march=rv64im", "-mabi=lp64")
MEANING = ("-std=c11", "-fwrapv", "-w", "-include", str(RUNTIME / "runtime.h"))
"""int wraps around, and the functions of the runtime are known."""

CPU_SECONDS = 20
WALL_SECONDS = 120
MEMORY = 4 << 30
FILE = 64 << 20

type Level = Literal["-O0", "-O2"]
type Kind = Literal["ir", "assembly"]

_SUFFIX = {"ir": ".ll", "assembly": ".s"}
_OBEYED_WHEN_READ = re.compile(
    rb"(?<![%@.$\w])(?:[%@i]?\d+)?asm\b(?![.$:])"
    rb"|\.(?i:incbin|include|macro|altmacro|irpc?|rept?)\b"
    rb"|^(?:BC\xc0\xde|\xde\xc0\x17\x0b)"
)
"""Inline assembly in IR, which LLVM also reads in `i32asm` and `%0asm`; directives, in any case of
their letters, with which the assembler reads other files or grows; and bitcode, which hides both.
"""


def missing() -> str | None:
    """What to type so that this workload can run; None where all is there."""
    absent = [name for name in ("unicorn", "ziglang") if importlib.util.find_spec(name) is None]
    return extra.advice(absent) if absent else None


@cache
def zig() -> Path:
    """The program zig, found in the package, which need not be on PATH."""
    found = importlib.util.find_spec("ziglang")
    if found is None or not found.submodule_search_locations:
        raise FileNotFoundError(missing())
    return Path(found.submodule_search_locations[0]) / "zig"


@cache
def unicorn() -> Path:
    """The folder that unicorn is imported from."""
    found = importlib.util.find_spec("unicorn")
    if found is None or found.origin is None:
        raise FileNotFoundError(missing())
    return Path(found.origin).parents[1]


@cache
def version() -> str:
    """Of clang: `22.1.8`."""
    said = _tool(".", "clang", "--version").stdout.decode()
    found = re.search(r"clang version (\d[\d.]*)", said)
    if found is None:
        raise ValueError(f"zig clang --version says no version: {said!r}")
    return found[1]


def dump_tokens(source: bytes) -> bytes:
    """What clang says of the tokens, which it says on stderr."""
    return _front_end(source, "-dump-tokens").stderr


def dump_tree(source: bytes) -> bytes:
    """clang's syntax tree, as JSON."""
    return _front_end(source, "-ast-dump=json").stdout


def _front_end(source: bytes, action: str) -> subprocess.CompletedProcess[bytes]:
    told = ("-cc1", "-triple", "riscv64-unknown-elf", *MEANING)
    with TemporaryDirectory(prefix="stumble-cc-") as folder:
        (Path(folder) / "program.c").write_bytes(source)
        return _tool(folder, "clang", *told, action, "program.c")


def ir(source: bytes, level: Level) -> bytes:
    """LLVM IR as clang gives it: -O0 without the mark that forbids to optimise it later."""
    how = ("-Xclang", "-disable-O0-optnone") if level == "-O0" else ()
    calm = ("-fno-vectorize", "-fno-slp-vectorize", "-fno-strict-aliasing", "-fno-finite-loops")
    with TemporaryDirectory(prefix="stumble-cc-") as folder:
        (Path(folder) / "program.c").write_bytes(source)
        told = (*TARGET, *MEANING, *calm, level, *how)
        return _tool(folder, "clang", *told, "-S", "-emit-llvm", "program.c", "-o", "-").stdout


def assembly(ir: bytes) -> bytes:
    """Assembly of IR whose optimising is left as it is."""
    with TemporaryDirectory(prefix="stumble-cc-") as folder:
        (Path(folder) / "program.ll").write_bytes(ir)
        told = (*TARGET, "-O1", "-Xclang", "-disable-llvm-passes", "-fno-ident", "-fno-addrsig")
        return _tool(folder, "clang", *told, "-w", "-S", "program.ll", "-o", "-").stdout


def executable(text: bytes, kind: Kind) -> bytes:
    """A static ELF of IR or assembly and the runtime; ValueError where it cannot be had.

    IR gets code generation at -O1 and no pass of LLVM's: at -O0 better IR can make worse code.
    """
    if obeyed := _OBEYED_WHEN_READ.search(text):
        found = obeyed.group().decode(errors="backslashreplace")
        raise ValueError(f"{found!r} is not accepted in {kind}")
    name = f"program{_SUFFIX[kind]}"
    how = ("-O1", "-Xclang", "-disable-llvm-passes") if kind == "ir" else ()
    with TemporaryDirectory(prefix="stumble-cc-") as folder:
        (Path(folder) / name).write_bytes(text)
        (Path(folder) / "runtime.o").write_bytes(_runtime())
        _tool(folder, "clang", *TARGET, *how, "-w", "-c", name, "-o", "program.o")
        alone = ("-static", "--no-dependent-libraries")  # objects may name files to be linked
        _tool(folder, "ld.lld", *alone, "-o", "program", "runtime.o", "program.o")
        return (Path(folder) / "program").read_bytes()


def shared(source: Path, folder: Path) -> Path:
    """A shared library for this machine itself, of C that needs no other."""
    made = folder / f"{source.stem}.so"
    _tool(str(folder), "clang", "-O2", "-fPIC", "-ffreestanding", "-c", source, "-o", "shared.o")
    _tool(str(folder), "ld.lld", "-shared", "-o", made, "shared.o")
    return made


@cache
def _runtime() -> bytes:
    with TemporaryDirectory(prefix="stumble-cc-") as folder:
        told = (*TARGET, "-O2", "-ffreestanding", "-fno-builtin", "-fno-ident", "-w", "-c")
        _tool(folder, "clang", *told, RUNTIME / "runtime.c", "-o", "runtime.o")
        return (Path(folder) / "runtime.o").read_bytes()


def _tool(folder: str, *words: str | Path) -> subprocess.CompletedProcess[bytes]:
    """Run to its end in `folder`, with bounds on time, memory and what it writes."""
    pipe = subprocess.PIPE
    with subprocess.Popen([zig(), *words], cwd=folder, stdout=pipe, stderr=pipe) as running:
        try:
            for what, most in (
                (resource.RLIMIT_CPU, CPU_SECONDS),
                (resource.RLIMIT_AS, MEMORY),
                (resource.RLIMIT_FSIZE, FILE),
            ):
                resource.prlimit(running.pid, what, (most, most))
            out, said = running.communicate(timeout=WALL_SECONDS)
        except subprocess.TimeoutExpired as late:
            raise TimeoutError(f"{words[0]} took longer than {WALL_SECONDS} s") from late
        finally:
            if running.poll() is None:
                running.kill()
    if running.returncode in (-signal.SIGXCPU, -signal.SIGKILL):
        raise TimeoutError(f"{words[0]} used {CPU_SECONDS} s of processor time")
    if running.returncode:
        raise ValueError(_words(words[0], running.returncode, said))
    return subprocess.CompletedProcess(running.args, 0, out, said)


def _words(tool: str | Path, code: int, said: bytes) -> str:
    """The first error that a tool named, or else how it ended."""
    lines = said.decode(errors="replace").splitlines()
    errors = [line for line in lines if "error:" in line]
    if errors:
        return errors[0]
    ended = f"signal {-code}" if code < 0 else f"exit {code}"
    return f"{tool} ended with {ended}{': ' + lines[0] if lines else ''}"
