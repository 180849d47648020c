#!/usr/bin/env python3
"""Runs the stages on the samples, and shows what was expected and what came.

    ./check [t0 ... t5]       these stages, or all that are there
    ./check machine FILE      run an executable for RV64 here, as `FILE < input` would
    ./check machine --version

It needs Python 3.10, zig (ZIG, or `zig` on PATH) and unicorn (the folder UNICORN, or
installed).
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
UNOPTIMISED_IR = (".ll", ("-O1", "-Xclang", "-disable-llvm-passes"))
CODE: dict[str, tuple[str, tuple[str, ...]]] = {
    "t3": UNOPTIMISED_IR,
    "t4": UNOPTIMISED_IR,
    "t5": (".s", ()),
}
BEFORE = {"t1": ".c", "t2": ".T1", "t3": ".T2", "t4": ".T3", "t5": ".T4"}
HELLO = '#include "runtime.h"\nint main(void) { put_int(37); return 37; }\n'
LIMIT = 50_000_000
PATIENCE = 30
"""Seconds that one call may take here; in grading, 10 of processor time."""

CheckResult = tuple[str, str]
"""An error of a sample, or an empty text; and a note."""


class MachineReport(TypedDict):
    """The machine's report on a program."""

    ended: str
    exit: int
    instructions: int
    why: str


def main(words: list[str]) -> int:
    """Return the exit code: 0 if every sample is right."""
    if words[:1] == ["machine"] and len(words) == 2:
        return run_on_machine(words[1])
    names = words or [name for name in ("t0", *BEFORE) if (HERE / name / "run").exists()]
    if any(name not in ("t0", *BEFORE) for name in names):
        print(__doc__, file=sys.stderr)
        return 2
    try:
        return 0 if all([check_stage(name) for name in names]) else 1
    except FileNotFoundError as error:
        print(error, file=sys.stderr)
        return 2


def check_stage(name: str) -> bool:
    """Return whether a stage is right on every sample; print a line for each."""
    folder = HERE / name
    if (folder / "build").exists() and (said := find_command_error(["./build"], folder)):
        print(f"{name}: build: {said}")
        return False
    if name == "t0":
        return check_environment(folder)
    judge, right = COMPARERS.get(name, check_generated_code), 0
    samples = sorted(SAMPLES.glob("*.c"))
    for sample in samples:
        with tempfile.TemporaryDirectory() as made:
            output = Path(made) / "output"
            given = sample.with_suffix(BEFORE[name])
            said = find_command_error(["./run", str(given), str(output)], folder)
            if not said and not output.is_file():
                said = "nothing was written to OUTPUT"
            wrong, note = (said, "") if said else judge(sample, output, name)
        right += not wrong
        print(f"{name} {sample.stem:<12} {wrong or 'right'}{note}")
    print(f"{name}: {right} of {len(samples)} samples are right")
    return right == len(samples)


def check_environment(folder: Path) -> bool:
    """Check T0, with a program that exits with 37."""
    with tempfile.TemporaryDirectory() as made:
        hello, output = Path(made) / "hello.c", Path(made) / "output"
        hello.write_text(HELLO)
        if said := find_command_error(["./run", str(hello), str(output)], folder):
            print(f"t0: {said}")
            return False
        found = parse_json_or_text(read_if_present(output).decode(errors="replace"))
    if not isinstance(found, dict):
        print("t0: ENV.json is no object")
        return False
    tools = {
        "clang": read_tool_version(locate_zig(), "clang"),
        "lld": read_tool_version(locate_zig(), "ld.lld"),
    }
    expected = {**tools, "unicorn": read_unicorn_version(), "hello": {"exit": 37}}
    wrong = [
        f"{key}: expected {value!r}, got {found.get(key)!r}"
        for key, value in expected.items()
        if found.get(key) != value
    ]
    if not isinstance(found.get("language"), dict):
        wrong.append("language: expected an object")
    print(f"t0: {'; '.join(wrong) or 'right'}")
    return not wrong


def compare_tokens(sample: Path, output: Path, _: str) -> CheckResult:
    """Return the first token that differs."""
    expected = sample.with_suffix(".T1").read_text().splitlines()
    got = output.read_text(errors="replace").splitlines()
    for number in range(max(len(expected), len(got))):
        pair = [lines[number] if number < len(lines) else "nothing" for lines in (expected, got)]
        if parse_json_or_text(pair[0]) != parse_json_or_text(pair[1]):
            return f"token {number + 1}:\n    expected {pair[0]}\n    got      {pair[1][:200]}", ""
    return "", ""


def compare_trees(sample: Path, output: Path, _: str) -> CheckResult:
    """Return the first node that differs, in preorder."""
    expected = json.loads(sample.with_suffix(".T2").read_text())
    got = parse_json_or_text(output.read_text(errors="replace"))
    return next(find_node_differences("", expected, got), ""), ""


COMPARERS: dict[str, Callable[[Path, Path, str], CheckResult]] = {
    "t1": compare_tokens,
    "t2": compare_trees,
}


def find_node_differences(path: str, expected: object, got: object) -> Iterator[str]:
    """Yield the differences of two trees."""
    own, theirs = (strip_inner_nodes(each) for each in (expected, got))
    here = f"{path}/{own.get('kind')}" if own else path
    if own != theirs:
        yield f"{here}:\n    expected {own or 'nothing'}\n    got      {theirs or 'nothing'}"
        return
    inner, other = list_inner_nodes(expected), list_inner_nodes(got)
    for number in range(max(len(inner), len(other))):
        pair = [nodes[number] if number < len(nodes) else None for nodes in (inner, other)]
        yield from find_node_differences(f"{here}[{number}]", pair[0], pair[1])


def list_inner_nodes(node: object) -> list[object]:
    """Return the children of a node."""
    inner = node.get("inner") if isinstance(node, dict) else None
    return inner if isinstance(inner, list) else []


def strip_inner_nodes(node: object) -> dict[str, object]:
    """Return a node without its children; {} for an omitted one."""
    if node is None:
        return {}
    if not isinstance(node, dict):
        return {"kind": f"no node: {str(node)[:60]}"}
    return {key: value for key, value in node.items() if key != "inner"}


def parse_json_or_text(text: str) -> object:
    """Parse JSON; return the text itself if it is invalid."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text.strip()


def check_generated_code(sample: Path, output: Path, name: str) -> CheckResult:
    """Compare a program's output and exit code, and report T4's instruction count."""
    suffix, how = CODE[name]
    with tempfile.TemporaryDirectory() as made:
        text = re.sub(rb"(?m)^target (triple|datalayout) = .*$", b"", output.read_bytes())
        source = Path(made) / f"program{suffix}"
        source.write_bytes(text)
        Path(made, "runtime.o").write_bytes(build_runtime_object())
        tool = [locate_zig(), "clang", *TARGET]
        for command in (
            [*tool, *how, "-c", str(source), "-o", "program.o"],
            [locate_zig(), "ld.lld", "-static", "-o", "program", "runtime.o", "program.o"],
        ):
            if said := find_command_error(command, Path(made)):
                return said, ""
        given = read_if_present(sample.with_suffix(".in"))
        ended, printed = execute_elf(Path(made, "program").read_bytes(), given)
    wanted = (
        read_if_present(sample.with_suffix(".out")),
        int(read_if_present(sample.with_suffix(".exit")) or 0),
    )
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
def build_runtime_object() -> bytes:
    """Return the object file that every program is linked with."""
    with tempfile.TemporaryDirectory() as made:
        how = ("-O2", "-ffreestanding", "-fno-builtin", "-c", str(TOOLS / "runtime.c"))
        if said := find_command_error([locate_zig(), "clang", *TARGET, *how], Path(made)):
            raise FileNotFoundError(f"zig clang does not work: {said}")
        return Path(made, "runtime.o").read_bytes()


def run_on_machine(path: str) -> int:
    """Run an executable on the machine, and exit with its code."""
    if path == "--version":
        print(read_unicorn_version())
        return 0
    ended, printed = execute_elf(
        Path(path).read_bytes(), b"" if os.isatty(0) else sys.stdin.buffer.read()
    )
    sys.stdout.buffer.write(printed)
    if ended["ended"] != "exit":
        print(f"{ended['ended']}: {ended['why']}", file=sys.stderr)
        return 126
    return ended["exit"]


def execute_elf(elf: bytes, given: bytes) -> tuple[MachineReport, bytes]:
    """Return the machine's report on a program, and the program's output."""
    source, sink = start_machine()
    asked = json.dumps({"elf": len(elf), "stdin": len(given), "limit": LIMIT}).encode() + b"\n"
    with suppress(BrokenPipeError):
        sink.write(asked + elf + given)
        sink.flush()
    if not (line := source.readline()):
        raise FileNotFoundError("the machine does not work: install unicorn, or set UNICORN")
    ended: MachineReport = json.loads(line)
    return ended, source.read(json.loads(line)["stdout"])


@cache
def start_machine() -> tuple[IO[bytes], IO[bytes]]:
    """Start the machine; return its stdout and stdin. It ends with this process."""
    command = [sys.executable, str(TOOLS / "machine.py")]
    pipe = subprocess.PIPE
    running = subprocess.Popen(command, stdin=pipe, stdout=pipe, env=make_unicorn_env())
    assert running.stdin is not None
    assert running.stdout is not None
    atexit.register(running.communicate)
    return running.stdout, running.stdin


def read_unicorn_version() -> str:
    """Return unicorn's version, or "not installed"."""
    told = "from importlib.metadata import version; print(version('unicorn'))"
    command = [sys.executable, "-c", told]
    done = subprocess.run(
        command, capture_output=True, text=True, env=make_unicorn_env(), timeout=60
    )
    return done.stdout.strip() if not done.returncode else "not installed"


def make_unicorn_env() -> dict[str, str]:
    """Return the environment with unicorn on PYTHONPATH."""
    found = find_tool_path("UNICORN", "unicorn")
    return {**os.environ, "PYTHONPATH": found} if found else dict(os.environ)


def locate_zig() -> str:
    """Return the path of zig. Raises FileNotFoundError with a hint."""
    found = find_tool_path("ZIG", "zig") or shutil.which("zig")
    if not found:
        raise FileNotFoundError("zig is not here: install ziglang, or set ZIG to the program")
    return found


def find_tool_path(variable: str, name: str) -> str | None:
    """Return a path from the environment, or from where.json of this folder."""
    if found := os.environ.get(variable):
        return found
    known = TOOLS / "where.json"
    path = json.loads(known.read_text()).get(name) if known.exists() else None
    return path if path and Path(path).exists() else None


def read_tool_version(*command: str) -> str:
    """Return the version that a tool prints."""
    words = [*command, "--version"]
    result = subprocess.run(words, capture_output=True, text=True, timeout=60).stdout
    found = re.search(r"\d+\.\d+(\.\d+)?", result)
    return found[0] if found else "none"


def find_command_error(command: list[str], folder: Path) -> str:
    """Return why a command failed, or an empty text; its process group is killed."""
    known = {"PYTHONHASHSEED": "0", "PYTHONDONTWRITEBYTECODE": "1"}
    if found := find_tool_path("ZIG", "zig"):
        known["ZIG"] = found
    if found := find_tool_path("UNICORN", "unicorn"):
        known["UNICORN"] = found
    with start_process_group(command, folder, {**os.environ, **known}) as running:
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
def start_process_group(
    command: list[str], folder: Path, env: dict[str, str]
) -> Iterator[subprocess.Popen[bytes] | str]:
    """Yield a process in a new process group, killed at the end; or why it cannot start."""
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


def read_if_present(path: Path) -> bytes:
    """Return a file's contents, empty if it does not exist."""
    return path.read_bytes() if path.exists() else b""


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
