#!/usr/bin/env python3
"""Runs the stages on the samples, and shows what was expected and what came.

    ./check [t0 ... t5]       these stages, or all that are there
    ./check machine FILE      run an executable for RV64 here, as `FILE < input` would
    ./check machine --version

It needs Python 3.10, zig (ZIG, or `zig` on PATH) and unicorn (the folder UNICORN, or installed).
"""

import atexit
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import IO, TypedDict

HERE = Path(__file__).resolve().parent
SAMPLES, TOOLS = HERE / "samples", HERE / "tools"
TARGET = ("--target=riscv64-unknown-elf", "-march=rv64im", "-mabi=lp64", "-w")
AS_IT_IS = (".ll", ("-O1", "-Xclang", "-disable-llvm-passes"))
CODE: dict[str, tuple[str, tuple[str, ...]]] = {"t3": AS_IT_IS, "t4": AS_IT_IS, "t5": (".s", ())}
BEFORE = {"t1": ".c", "t2": ".T1", "t3": ".T2", "t4": ".T3", "t5": ".T4"}
HELLO = 'void _start(void) { __asm__ volatile("li a0, 37; li a7, 93; ecall"); }\n'
LIMIT = 50_000_000
PATIENCE = 30
"""Seconds that one call may take here; when it is graded, 10 of processor time."""

Said = tuple[str, str]
"""What is wrong with a sample, or nothing; and a note."""


class Ended(TypedDict):
    """What the machine says of a program."""

    ended: str
    exit: int
    instructions: int
    why: str


def main(words: list[str]) -> int:
    """The exit code: 0 where every sample is right."""
    if words[:1] == ["machine"] and len(words) == 2:
        return machine(words[1])
    names = words or [name for name in ("t0", *BEFORE) if (HERE / name / "run").exists()]
    if any(name not in ("t0", *BEFORE) for name in names):
        print(__doc__, file=sys.stderr)
        return 2
    try:
        return 0 if all([stage(name) for name in names]) else 1
    except FileNotFoundError as error:
        print(error, file=sys.stderr)
        return 2


def stage(name: str) -> bool:
    """Whether a stage is right on every sample; says so for each."""
    folder = HERE / name
    if (folder / "build").exists() and (said := trouble(["./build"], folder)):
        print(f"{name}: build: {said}")
        return False
    if name == "t0":
        return environment(folder)
    judge, right = JUDGES.get(name, code), 0
    samples = sorted(SAMPLES.glob("*.c"))
    for sample in samples:
        with tempfile.TemporaryDirectory() as made:
            output = Path(made) / "output"
            given = sample.with_suffix(BEFORE[name])
            said = trouble(["./run", str(given), str(output)], folder)
            if not said and not output.is_file():
                said = "nothing was written to OUTPUT"
            wrong, note = (said, "") if said else judge(sample, output, name)
        right += not wrong
        print(f"{name} {sample.stem:<12} {wrong or 'right'}{note}")
    print(f"{name}: {right} of {len(samples)} samples are right")
    return right == len(samples)


def environment(folder: Path) -> bool:
    """T0, with a program that ends with 37."""
    with tempfile.TemporaryDirectory() as made:
        hello, output = Path(made) / "hello.c", Path(made) / "output"
        hello.write_text(HELLO)
        if said := trouble(["./run", str(hello), str(output)], folder):
            print(f"t0: {said}")
            return False
        found = parsed(read(output).decode(errors="replace"))
    if not isinstance(found, dict):
        print("t0: ENV.json is no object")
        return False
    tools = {"clang": version(zig(), "clang"), "lld": version(zig(), "ld.lld")}
    expected = {**tools, "unicorn": unicorn_version(), "hello": {"exit": 37}}
    wrong = [
        f"{key}: expected {value!r}, got {found.get(key)!r}"
        for key, value in expected.items()
        if found.get(key) != value
    ]
    if not isinstance(found.get("language"), dict):
        wrong.append("language: expected an object")
    print(f"t0: {'; '.join(wrong) or 'right'}")
    return not wrong


def tokens(sample: Path, output: Path, _: str) -> Said:
    """The first token that differs."""
    expected = sample.with_suffix(".T1").read_text().splitlines()
    got = output.read_text(errors="replace").splitlines()
    for number in range(max(len(expected), len(got))):
        pair = [lines[number] if number < len(lines) else "nothing" for lines in (expected, got)]
        if parsed(pair[0]) != parsed(pair[1]):
            return f"token {number + 1}:\n    expected {pair[0]}\n    got      {pair[1][:200]}", ""
    return "", ""


def tree(sample: Path, output: Path, _: str) -> Said:
    """The first node that differs, from the top down."""
    expected = json.loads(sample.with_suffix(".T2").read_text())
    got = parsed(output.read_text(errors="replace"))
    return next(differences("", expected, got), ""), ""


JUDGES: dict[str, Callable[[Path, Path, str], Said]] = {"t1": tokens, "t2": tree}


def differences(path: str, expected: object, got: object) -> Iterator[str]:
    """Where two trees differ."""
    own, theirs = (plain(each) for each in (expected, got))
    here = f"{path}/{own.get('kind')}" if own else path
    if own != theirs:
        yield f"{here}:\n    expected {own or 'nothing'}\n    got      {theirs or 'nothing'}"
        return
    inner, other = children(expected), children(got)
    for number in range(max(len(inner), len(other))):
        pair = [nodes[number] if number < len(nodes) else None for nodes in (inner, other)]
        yield from differences(f"{here}[{number}]", pair[0], pair[1])


def children(node: object) -> list[object]:
    """What is in a node."""
    inner = node.get("inner") if isinstance(node, dict) else None
    return inner if isinstance(inner, list) else []


def plain(node: object) -> dict[str, object]:
    """A node without its children; {} for one that is left out."""
    if node is None:
        return {}
    if not isinstance(node, dict):
        return {"kind": f"no node: {str(node)[:60]}"}
    return {key: value for key, value in node.items() if key != "inner"}


def parsed(text: str) -> object:
    """JSON, or the text itself where it is none."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text.strip()


def code(sample: Path, output: Path, name: str) -> Said:
    """What a program printed and how it ended, and for T4 what it executed."""
    suffix, how = CODE[name]
    with tempfile.TemporaryDirectory() as made:
        text = re.sub(rb"(?m)^target (triple|datalayout) = .*$", b"", output.read_bytes())
        source = Path(made) / f"program{suffix}"
        source.write_bytes(text)
        Path(made, "runtime.o").write_bytes(runtime())
        tool = [zig(), "clang", *TARGET]
        for command in (
            [*tool, *how, "-c", str(source), "-o", "program.o"],
            [zig(), "ld.lld", "-static", "-o", "program", "runtime.o", "program.o"],
        ):
            if said := trouble(command, Path(made)):
                return said, ""
        given = read(sample.with_suffix(".in"))
        ended, printed = executed(Path(made, "program").read_bytes(), given)
    wanted = read(sample.with_suffix(".out")), int(read(sample.with_suffix(".exit")) or 0)
    if ended["ended"] != "exit":
        return f"it did not end by itself: {ended['why']}", ""
    if (printed, ended["exit"]) != wanted:
        both = (wanted, (printed, ended["exit"]))
        shown = [f"{said[-300:]!r} and exit code {number}" for said, number in both]
        return f"\n    expected {shown[0]}\n    got      {shown[1]}", ""
    if name != "t4":
        return "", ""
    counts = json.loads(sample.with_suffix(".counts").read_text())
    count = ended["instructions"]
    note = f", {count} instructions (given {counts['plain']}, clang -O2 {counts['optimised']})"
    return "", note


@cache
def runtime() -> bytes:
    """The object file that every program is linked with."""
    with tempfile.TemporaryDirectory() as made:
        how = ("-O2", "-ffreestanding", "-fno-builtin", "-c", str(TOOLS / "runtime.c"))
        if said := trouble([zig(), "clang", *TARGET, *how], Path(made)):
            raise FileNotFoundError(f"zig clang does not work: {said}")
        return Path(made, "runtime.o").read_bytes()


def machine(path: str) -> int:
    """Run an executable on the machine, and end as it does."""
    if path == "--version":
        print(unicorn_version())
        return 0
    ended, printed = executed(
        Path(path).read_bytes(), b"" if os.isatty(0) else sys.stdin.buffer.read()
    )
    sys.stdout.buffer.write(printed)
    if ended["ended"] != "exit":
        print(f"{ended['ended']}: {ended['why']}", file=sys.stderr)
        return 126
    return ended["exit"]


def executed(elf: bytes, given: bytes) -> tuple[Ended, bytes]:
    """What the machine says of a program, and what that printed."""
    source, sink = worker()
    asked = json.dumps({"elf": len(elf), "stdin": len(given), "limit": LIMIT}).encode() + b"\n"
    with suppress(BrokenPipeError):
        sink.write(asked + elf + given)
        sink.flush()
    if not (line := source.readline()):
        raise FileNotFoundError("the machine does not work: install unicorn, or set UNICORN")
    ended: Ended = json.loads(line)
    return ended, source.read(json.loads(line)["stdout"])


@cache
def worker() -> tuple[IO[bytes], IO[bytes]]:
    """Where a machine answers and where it is asked; it ends with us."""
    command = [sys.executable, str(TOOLS / "machine.py")]
    pipe = subprocess.PIPE
    running = subprocess.Popen(command, stdin=pipe, stdout=pipe, env=with_unicorn())
    assert running.stdin is not None
    assert running.stdout is not None
    atexit.register(running.communicate)
    return running.stdout, running.stdin


def unicorn_version() -> str:
    """Of the machine, or why there is none."""
    told = "from importlib.metadata import version; print(version('unicorn'))"
    command = [sys.executable, "-c", told]
    done = subprocess.run(command, capture_output=True, text=True, env=with_unicorn(), timeout=60)
    return done.stdout.strip() if not done.returncode else "not installed"


def with_unicorn() -> dict[str, str]:
    """Our environment, in which unicorn is found."""
    found = where("UNICORN", "unicorn")
    return {**os.environ, "PYTHONPATH": found} if found else dict(os.environ)


def zig() -> str:
    """The program zig; FileNotFoundError saying what to do."""
    found = where("ZIG", "zig") or shutil.which("zig")
    if not found:
        raise FileNotFoundError("zig is not here: install ziglang, or set ZIG to the program")
    return found


def where(variable: str, name: str) -> str | None:
    """A path from the environment, or as it was when this folder was made."""
    if found := os.environ.get(variable):
        return found
    known = TOOLS / "where.json"
    path = json.loads(known.read_text()).get(name) if known.exists() else None
    return path if path and Path(path).exists() else None


def version(*command: str) -> str:
    """What a tool says its version is."""
    words = [*command, "--version"]
    said = subprocess.run(words, capture_output=True, text=True, timeout=60).stdout
    found = re.search(r"\d+\.\d+(\.\d+)?", said)
    return found[0] if found else "none"


def trouble(command: list[str], folder: Path) -> str:
    """Why a command failed, or nothing; it and all that it started is ended."""
    known = {"PYTHONHASHSEED": "0", "PYTHONDONTWRITEBYTECODE": "1"}
    if found := where("ZIG", "zig"):
        known["ZIG"] = found
    if found := where("UNICORN", "unicorn"):
        known["UNICORN"] = found
    with started(command, folder, {**os.environ, **known}) as running:
        if isinstance(running, str):
            return running
        try:
            _, said = running.communicate(timeout=PATIENCE)
        except subprocess.TimeoutExpired:
            return f"not at its end after {PATIENCE} s"
    if not running.returncode:
        return ""
    lines = said.decode(errors="replace").strip().splitlines()
    named = [line for line in lines if "error:" in line]
    return f"exit code {running.returncode}: {(named[:1] or lines[-1:] or [''])[0]}"


@contextmanager
def started(
    command: list[str], folder: Path, env: dict[str, str]
) -> Iterator[subprocess.Popen[bytes] | str]:
    """A process in a group of its own, which is ended; or why there is none."""
    try:
        running = subprocess.Popen(
            command,
            cwd=folder,
            env=env,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
    except OSError as error:
        yield f"{command[0]} cannot be started: {error.strerror}"
        return
    with running:
        try:
            yield running
        finally:
            with suppress(ProcessLookupError):
                os.killpg(running.pid, signal.SIGKILL)


def read(path: Path) -> bytes:
    """A file, or nothing where there is none."""
    return path.read_bytes() if path.exists() else b""


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
