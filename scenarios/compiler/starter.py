"""The workspace that an agent starts with: tasks, samples, a local check, and a skeleton."""

import json
import shutil
from collections.abc import Mapping
from pathlib import Path

from scenarios.compiler import golden, toolchain
from scenarios.compiler.contract import STAGES
from scenarios.compiler.programs import samples

HERE = Path(__file__).parent
STARTERS = HERE / "starters"
LANGUAGES = ("python", "cpp")
EXECUTABLE = ("run", "build", "check")
BASELINE: Mapping[str, float] = {
    "T0": 0.0,
    "T1": 10.36927415366833,
    "T2": 0.4170793960676588,
    "T3": 0.0,
    "T4": 76.94182091808125,
    "T5": 0.0,
}
"""What the untouched starters score, each stage on golden input: what doing nothing is worth.

They know one kind of token and the root of the tree, leave IR as it is, and make programs that do
nothing. T4 measures the square root of a ratio, so unchanged IR passes: its fact `corrected` is 0.
"""


def lay_out(folder: Path, language: str, *, bare: bool) -> None:
    """Make the workspace; `bare` leaves the skeletons out, so the language does not matter.

    It holds no graded program and no golden artifact of one. ValueError for a language without
    a starter, FileExistsError where the folder is there and is not empty.
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
    _tools(folder / "tools")
    _samples(folder / "samples")
    for path in folder.rglob("*"):
        if path.is_file():
            path.chmod(0o755 if path.name in EXECUTABLE else 0o644)


def _tools(folder: Path) -> None:
    """What the check needs besides Python: the machine, the runtime, and where the tools are."""
    folder.mkdir()
    shutil.copy(HERE / "emulator.py", folder / "machine.py")
    for name in ("runtime.c", "runtime.h"):
        shutil.copy(toolchain.RUNTIME / name, folder / name)
    if toolchain.missing() is None:
        where = {"zig": str(toolchain.zig()), "unicorn": str(toolchain.unicorn())}
        (folder / "where.json").write_text(json.dumps(where) + "\n")


def _samples(folder: Path) -> None:
    folder.mkdir()
    for case in samples():
        parts = {"c": case.source, "out": case.stdout}
        if case.stdin:
            parts["in"] = case.stdin
        if case.exit:
            parts["exit"] = f"{case.exit}\n".encode()
        for stage in STAGES[1:]:
            parts[stage] = golden.slot(stage, sample=True).artifacts[case.name]
        counts = golden.counts()[case.name]
        shown = {"plain": counts.plain, "optimised": counts.optimised}
        parts["counts"] = json.dumps(shown).encode() + b"\n"
        for suffix, data in parts.items():
            (folder / f"{case.name}.{suffix}").write_bytes(data)
