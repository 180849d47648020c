"""The workspace that an agent starts with: tasks, samples, a local check, and a skeleton."""

import json
import shutil
from collections.abc import Mapping
from pathlib import Path

from scenarios.pipeline.compiler import golden, toolchain
from scenarios.pipeline.compiler.program_cases import list_sample_cases
from scenarios.pipeline.compiler.types import STAGES

HERE = Path(__file__).parent
STARTERS = HERE / "starters"
LANGUAGES = ("python", "cpp")
EXECUTABLE = ("run", "build", "check")
BASELINE: Mapping[str, float] = {
    "T0": 0.0,
    "T1": 0.0,
    "T2": 0.0,
    "T3": 0.0,
    "T4": 0.0,
    "T5": 0.0,
}
"""Scores of the unchanged starters, each stage on golden input: the value of doing nothing.

Their first build fails, they write no token and no node of a tree, leave IR unchanged, and make
programs that do nothing.
"""


def create_starter_workspace(folder: Path, language: str, *, bare: bool) -> None:
    """Create the workspace; `bare` omits the skeletons, so the language does not matter.

    It contains no graded program and no golden artifact of one. Raises ValueError for a language
    without a starter, FileExistsError if the folder exists and is not empty.
    """
    if not bare and language not in LANGUAGES:
        raise ValueError(f"no starter in {language}; there are {', '.join(LANGUAGES)}")
    folder.mkdir(parents=True, exist_ok=True)
    if any(folder.iterdir()):
        raise FileExistsError(f"{folder} is not empty")
    shutil.copytree(STARTERS / "tasks", folder, dirs_exist_ok=True)
    if not bare:
        shutil.copytree(STARTERS / language, folder, dirs_exist_ok=True)
    shutil.copy(HERE / "language.md", folder / "LANGUAGE.md")
    shutil.copy(STARTERS / "check.py", folder / "check")
    _copy_check_tools(folder / "tools")
    _write_sample_files(folder / "samples")
    for path in folder.rglob("*"):
        if path.is_file():
            path.chmod(0o755 if path.name in EXECUTABLE else 0o644)


def _copy_check_tools(folder: Path) -> None:
    """Copy the tools of `check`: the emulator, the runtime, and the paths of zig and unicorn."""
    folder.mkdir()
    shutil.copy(HERE / "emulator.py", folder / "machine.py")
    for name in ("runtime.c", "runtime.h"):
        shutil.copy(toolchain.RUNTIME / name, folder / name)
    if toolchain.explain_missing_tools() is None:
        paths = {"zig": str(toolchain.find_zig()), "unicorn": str(toolchain.find_unicorn())}
        (folder / "where.json").write_text(json.dumps(paths) + "\n")


def _write_sample_files(folder: Path) -> None:
    folder.mkdir()
    for case in list_sample_cases():
        parts = {"c": case.source, "out": case.stdout}
        if case.stdin:
            parts["in"] = case.stdin
        if case.exit:
            parts["exit"] = f"{case.exit}\n".encode()
        for stage in STAGES[1:]:
            parts[stage] = golden.load_golden_slot(stage, sample=True).artifacts[case.name]
        counts = golden.count_instructions(case)
        shown_counts = {"plain": counts.plain, "optimised": counts.optimised}
        parts["counts"] = json.dumps(shown_counts).encode() + b"\n"
        for suffix, data in parts.items():
            (folder / f"{case.name}.{suffix}").write_bytes(data)
