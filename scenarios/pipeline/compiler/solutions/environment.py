"""T0: report whether the tools of all stages are present. Usage: run HELLO.c ENV.json."""

import json
import os
import platform
import re
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

TARGET = ("--target=riscv64-unknown-elf", "-march=rv64im", "-mabi=lp64", "-O1")
CHECK = str(Path("..", "check").resolve())
TOOLS = Path("..", "tools").resolve()


def read_command_output(*command: str) -> str:
    """Return the output of a command."""
    return subprocess.run(command, capture_output=True, text=True, timeout=60).stdout


def find_command_version(*command: str) -> str:
    """Return the version that a command prints."""
    found = re.search(r"\d+\.\d+(\.\d+)?", read_command_output(*command, "--version"))
    return found[0] if found else ""


def run_hello_program(zig: str, program: str) -> int:
    """Compile, link and run a program; return its exit code."""
    with TemporaryDirectory() as made:
        objects = ["runtime.o", "hello.o"]
        for source, output in zip([TOOLS / "runtime.c", program], objects, strict=True):
            options = [*TARGET, "-ffreestanding", "-fno-builtin", f"-I{TOOLS}", "-x", "c", "-c"]
            compiled = [zig, "clang", *options, str(source), "-o", output]
            subprocess.run(compiled, cwd=made, check=True, timeout=60)
        linked = [zig, "ld.lld", "-static", *objects, "-o", "hello"]
        subprocess.run(linked, cwd=made, check=True, timeout=60)
        ran = [CHECK, "machine", str(Path(made) / "hello")]
        return subprocess.run(
            ran, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, timeout=60
        ).returncode


def main(given: str, to: str) -> None:
    """Write the environment report."""
    zig = os.environ.get("ZIG", "zig")
    environment = {
        "language": {"command": "python3", "version": platform.python_version()},
        "clang": find_command_version(zig, "clang"),
        "lld": find_command_version(zig, "ld.lld"),
        "unicorn": find_command_version(CHECK, "machine"),
        "hello": {"exit": run_hello_program(zig, str(Path(given).resolve()))},
    }
    Path(to).write_text(json.dumps(environment))


if __name__ == "__main__":
    main(*sys.argv[1:])
