"""T0: finds out whether the tools of all stages are there. Usage: run HELLO.c ENV.json."""

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


def said(*command: str) -> str:
    """What a command prints."""
    return subprocess.run(command, capture_output=True, text=True, timeout=60).stdout


def version(*command: str) -> str:
    """The version that a command says it is."""
    found = re.search(r"\d+\.\d+(\.\d+)?", said(*command, "--version"))
    return found[0] if found else ""


def ends(zig: str, program: str) -> int:
    """The exit code of a program, compiled, linked and run."""
    with TemporaryDirectory() as made:
        subprocess.run(
            [zig, "clang", *TARGET, "-x", "c", "-c", program, "-o", "hello.o"],
            cwd=made,
            check=True,
            timeout=60,
        )
        linked = [zig, "ld.lld", "-static", "hello.o", "-o", "hello"]
        subprocess.run(linked, cwd=made, check=True, timeout=60)
        ran = [CHECK, "machine", str(Path(made) / "hello")]
        return subprocess.run(ran, stdin=subprocess.DEVNULL, timeout=60).returncode


def main(given: str, to: str) -> None:
    """All that can be found out."""
    zig = os.environ.get("ZIG", "zig")
    environment = {
        "language": {"command": "python3", "version": platform.python_version()},
        "clang": version(zig, "clang"),
        "lld": version(zig, "ld.lld"),
        "unicorn": version(CHECK, "machine"),
        "hello": {"exit": ends(zig, str(Path(given).resolve()))},
    }
    Path(to).write_text(json.dumps(environment))


if __name__ == "__main__":
    main(*sys.argv[1:])
