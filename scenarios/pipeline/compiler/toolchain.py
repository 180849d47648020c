"""The C compiler and linker of the package ziglang, as functions from bytes to bytes.

`zig clang` and `zig ld.lld` are LLVM's programs and need nothing but their arguments. Never use
`zig cc`: it builds a C library first, which takes minutes, and keeps a cache in the user's home.

A tool's error is a ValueError with its message; a tool that exceeds its limits is a TimeoutError.
"""

import importlib.util
import re
import resource
import signal
import subprocess
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory, TemporaryFile
from typing import Literal

from scenarios.pipeline.compiler import install_hint

RUNTIME = Path(__file__).parent / "runtime"
TARGET = ("--target=riscv64-unknown-elf", "-march=rv64im", "-mabi=lp64")
LANGUAGE_OPTIONS = ("-std=c11", "-fwrapv", "-w", "-include", str(RUNTIME / "runtime.h"))
"""int wraps around, and the runtime's functions are declared."""

CPU_SECONDS = 20
WALL_SECONDS = 120
MEMORY = 4 << 30
FILE = 64 << 20
"""Bytes of each file that a tool writes, and of its output."""
MOST_MESSAGES = 1 << 20
"""Bytes of a tool's messages that are looked at."""

type OptimisationLevel = Literal["-O0", "-O2"]
type CodeKind = Literal["ir", "assembly"]

_SUFFIX = {"ir": ".ll", "assembly": ".s"}
_FORBIDDEN_IN_CODE = re.compile(
    rb"(?<![%@.$\w])(?:[%@i]?\d+)?asm\b(?![.$:])"
    rb"|\.(?i:incbin|include|macro|altmacro|irpc?|rept?)\b"
    rb"|^(?:BC\xc0\xde|\xde\xc0\x17\x0b)"
)
"""Inline assembly in IR, which LLVM also accepts as `i32asm` and `%0asm`; assembler directives, in
upper or lower case, that read other files or multiply code; and bitcode, which hides both.
"""


def explain_missing_tools() -> str | None:
    """Return the command that installs the missing tools; None if none are missing."""
    absent = [name for name in ("unicorn", "ziglang") if importlib.util.find_spec(name) is None]
    return install_hint.format_install_hint(absent) if absent else None


@cache
def find_zig() -> Path:
    """Return the path of zig in the package ziglang, which need not be on PATH."""
    spec = importlib.util.find_spec("ziglang")
    if spec is None or not spec.submodule_search_locations:
        raise FileNotFoundError(explain_missing_tools())
    return Path(spec.submodule_search_locations[0]) / "zig"


@cache
def find_unicorn() -> Path:
    """Return the folder that unicorn is imported from."""
    spec = importlib.util.find_spec("unicorn")
    if spec is None or spec.origin is None:
        raise FileNotFoundError(explain_missing_tools())
    return Path(spec.origin).parents[1]


@cache
def read_clang_version() -> str:
    """Return clang's version, such as `22.1.8`."""
    output = _run_zig(".", "clang", "--version").stdout.decode()
    match = re.search(r"clang version (\d[\d.]*)", output)
    if match is None:
        raise ValueError(f"zig clang --version says no version: {output!r}")
    return match[1]


def dump_tokens(source: bytes) -> bytes:
    """Return clang's token dump, which it writes to stderr."""
    return _run_front_end(source, "-dump-tokens").stderr


def dump_tree(source: bytes) -> bytes:
    """Return clang's AST as JSON."""
    return _run_front_end(source, "-ast-dump=json").stdout


def _run_front_end(source: bytes, action: str) -> subprocess.CompletedProcess[bytes]:
    options = ("-cc1", "-triple", "riscv64-unknown-elf", *LANGUAGE_OPTIONS)
    with TemporaryDirectory(prefix="stumble-cc-") as folder:
        (Path(folder) / "program.c").write_bytes(source)
        return _run_zig(folder, "clang", *options, action, "program.c")


def compile_to_ir(source: bytes, level: OptimisationLevel) -> bytes:
    """Return clang's LLVM IR; at -O0 without the attribute optnone, which blocks later
    optimisation.
    """
    level_options = ("-Xclang", "-disable-O0-optnone") if level == "-O0" else ()
    conservative = (
        "-fno-vectorize",
        "-fno-slp-vectorize",
        "-fno-strict-aliasing",
        "-fno-finite-loops",
    )
    with TemporaryDirectory(prefix="stumble-cc-") as folder:
        (Path(folder) / "program.c").write_bytes(source)
        options = (*TARGET, *LANGUAGE_OPTIONS, *conservative, level, *level_options)
        return _run_zig(
            folder, "clang", *options, "-S", "-emit-llvm", "program.c", "-o", "-"
        ).stdout


def compile_to_assembly(ir: bytes) -> bytes:
    """Return the assembly of IR, without running optimisation passes."""
    with TemporaryDirectory(prefix="stumble-cc-") as folder:
        (Path(folder) / "program.ll").write_bytes(ir)
        options = (*TARGET, "-O1", "-Xclang", "-disable-llvm-passes", "-fno-ident", "-fno-addrsig")
        return _run_zig(folder, "clang", *options, "-w", "-S", "program.ll", "-o", "-").stdout


def link_executable(text: bytes, kind: CodeKind) -> bytes:
    """Return a static ELF of IR or assembly and the runtime. Raises ValueError if it is invalid.

    IR is compiled with code generation at -O1 and no LLVM pass: at -O0 better IR can give worse
    code.
    """
    if forbidden := _FORBIDDEN_IN_CODE.search(text):
        quoted = forbidden.group().decode(errors="backslashreplace")
        raise ValueError(f"{quoted!r} is not accepted in {kind}")
    name = f"program{_SUFFIX[kind]}"
    ir_options = ("-O1", "-Xclang", "-disable-llvm-passes") if kind == "ir" else ()
    with TemporaryDirectory(prefix="stumble-cc-") as folder:
        (Path(folder) / name).write_bytes(text)
        (Path(folder) / "runtime.o").write_bytes(_compile_runtime())
        _run_zig(folder, "clang", *TARGET, *ir_options, "-w", "-c", name, "-o", "program.o")
        link_options = ("-static", "--no-dependent-libraries")  # ignore libraries named in objects
        _run_zig(folder, "ld.lld", *link_options, "-o", "program", "runtime.o", "program.o")
        return (Path(folder) / "program").read_bytes()


def compile_shared_library(source: Path, folder: Path) -> Path:
    """Compile C without dependencies into a shared library for this machine; return its path."""
    library = folder / f"{source.stem}.so"
    _run_zig(str(folder), "clang", "-O2", "-fPIC", "-ffreestanding", "-c", source, "-o", "shared.o")
    _run_zig(str(folder), "ld.lld", "-shared", "-o", library, "shared.o")
    return library


@cache
def _compile_runtime() -> bytes:
    with TemporaryDirectory(prefix="stumble-cc-") as folder:
        options = (*TARGET, "-O2", "-ffreestanding", "-fno-builtin", "-fno-ident", "-w", "-c")
        _run_zig(folder, "clang", *options, RUNTIME / "runtime.c", "-o", "runtime.o")
        return (Path(folder) / "runtime.o").read_bytes()


def _run_zig(folder: str, *words: str | Path) -> subprocess.CompletedProcess[bytes]:
    """Run zig to its end in `folder`, with limits on time, memory and file size."""
    with TemporaryFile() as out, TemporaryFile() as errors:
        with subprocess.Popen([find_zig(), *words], cwd=folder, stdout=out, stderr=errors) as tool:
            try:
                for kind, limit in (
                    (resource.RLIMIT_CPU, CPU_SECONDS),
                    (resource.RLIMIT_AS, MEMORY),
                    (resource.RLIMIT_FSIZE, FILE),
                ):
                    resource.prlimit(tool.pid, kind, (limit, limit))
                code = tool.wait(timeout=WALL_SECONDS)
            except subprocess.TimeoutExpired as expired:
                raise TimeoutError(f"{words[0]} took longer than {WALL_SECONDS} s") from expired
            finally:
                if tool.poll() is None:
                    tool.kill()
        out.seek(0)
        errors.seek(0)
        printed, messages = out.read(), errors.read() if not code else errors.read(MOST_MESSAGES)
    if code in (-signal.SIGXCPU, -signal.SIGKILL):
        raise TimeoutError(f"{words[0]} used {CPU_SECONDS} s of processor time")
    if code:
        raise ValueError(_describe_tool_failure(words[0], code, messages))
    return subprocess.CompletedProcess(tool.args, 0, printed, messages)


def _describe_tool_failure(tool: str | Path, code: int, data: bytes) -> str:
    """Return the first error line of a tool, or else its exit status."""
    lines = data.decode(errors="replace").splitlines()
    errors = [line for line in lines if "error:" in line]
    if errors:
        return errors[0]
    status = f"signal {-code}" if code < 0 else f"exit {code}"
    return f"{tool} ended with {status}{': ' + lines[0] if lines else ''}"
