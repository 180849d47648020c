"""A configured copy of the stand-in for a YatCC checkout, with a real clang, g++ and java."""

import platform
import shutil
import subprocess
from pathlib import Path

from scenarios.pipeline.compiler import toolchain

STANDIN = Path(__file__).parents[1] / "data" / "yatcc"


def configure_checkout(folder: Path) -> None:
    """Copy the stand-in to `folder` and configure it, with the clang of the extra as its clang."""
    shutil.copytree(STANDIN, folder)
    clang = folder / "llvm" / "bin" / "clang"
    clang.parent.mkdir(parents=True)
    target = f"{platform.machine()}-linux-gnu"
    clang.write_text(f'#!/bin/sh\nexec {toolchain.find_zig()} clang --target={target} "$@"\n')
    clang.chmod(0o755)
    run_cmake(folder)


def run_cmake(folder: Path) -> None:
    """Configure a copy as its user does."""
    clang = folder / "llvm" / "bin" / "clang"
    command = ["cmake", "-S", str(folder), "-B", str(folder / "build"), "-G", "Unix Makefiles"]
    named = f"-DCLANG_EXECUTABLE={clang}"
    subprocess.run([*command, named], check=True, capture_output=True)


def hand_in(folder: Path, stage: str, word: str) -> None:
    """Let a stage's program print this many points, or be `slow`, `nothing`, or no program."""
    (folder / "task" / stage[1] / "points.txt").write_text(f"{word}\n")
