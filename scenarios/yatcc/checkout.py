"""A configured checkout of YatCC: what has to be in it, and copies of it to work and to grade in.

The checkout itself is never changed. A copy leaves out `build` and `.git`; the folders with LLVM
and the like are links to those of the checkout. Which input a stage gets is a `set()` in
`config.cmake`: a `-D` on the command line of cmake has no effect on it, so the copy's file is
rewritten, and all else in it stays.
"""

import os
import re
import shutil
import subprocess
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

NOTICE = (
    "YatCC is under the GPL 3 and a further licence of its own, which forbids its use to train or "
    "to validate machine-learning systems. stumble holds nothing of it and gives no permission. "
    "Have an agent work on a checkout only where its authors allowed you to; then say so with "
    "--i-have-permission."
)
LINKED = ("llvm", "antlr", "pybind11")
LEFT_OUT = ("build", ".git", ".cache")
KEPT = (
    "CMAKE_BUILD_TYPE",
    "CMAKE_C_COMPILER",
    "CMAKE_CXX_COMPILER",
    "CMAKE_MAKE_PROGRAM",
    "CMAKE_PREFIX_PATH",
)
"""What is handed on of how the user configured it."""
PATIENCE = 60.0
"""Seconds that asking cmake or git may take."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Checkout:
    """One checkout, where the user has it."""

    folder: Path

    def missing(self) -> str | None:
        """What keeps it from being used, and what to do; None where nothing does."""
        if shutil.which("cmake") is None:
            return "cmake is not here, and YatCC is built by it: install cmake"
        if not self.folder.is_dir():
            return f"{self.folder} is no folder: --checkout names a checkout of YatCC"
        lacking = [name for name in _needed() if not (self.folder / name).exists()]
        if lacking:
            branch = f" (on branch {found})" if (found := self._branch()) else ""
            what = ", ".join(lacking[:3]) + (" and more" if len(lacking) > 3 else "")
            return f"{self.folder}{branch} has no {what}: check out a branch that has all six tasks"
        if not self._cache().is_file():
            return (
                f"{self.folder} is not configured, there is no build/CMakeCache.txt: follow its "
                "own instructions until `cmake -S . -B build` ends well"
            )
        return self._untargeted()

    def _untargeted(self) -> str | None:
        targets = self.targets(self.folder / "build")
        wanted = [names for stage in range(6) for names in (built(stage), scored(stage))]
        lacking = [names[-1] for names in wanted if not targets & set(names)]
        if not lacking:
            return None
        return f"{self.folder}/build has no target {', '.join(lacking)}: configure it anew"

    def _branch(self) -> str | None:
        command = ["git", "-C", str(self.folder), "rev-parse", "--abbrev-ref", "HEAD"]
        if shutil.which("git") is None:
            return None
        said = subprocess.run(
            command, capture_output=True, text=True, timeout=PATIENCE, check=False
        )
        return said.stdout.strip() or None

    def targets(self, build: Path) -> frozenset[str]:
        """The targets of a configured build."""
        command = ["cmake", "--build", str(build), "--target", "help"]
        said = subprocess.run(
            command, capture_output=True, text=True, timeout=PATIENCE, check=False
        )
        return frozenset(re.findall(r"(?m)^(?:\.\.\. )?([\w.+-]+)(?:: |\s|$)", said.stdout))

    def configured(self) -> tuple[str, ...]:
        """How the user configured it, as arguments to cmake."""
        told = dict(re.findall(r"(?m)^(\w+):\w+=(.+)$", self._cache().read_text("utf-8")))
        given = tuple(f"-D{name}={told[name]}" for name in KEPT if name in told)
        return ("-G", told.get("CMAKE_GENERATOR", "Unix Makefiles"), *given)

    def _cache(self) -> Path:
        return self.folder / "build" / "CMakeCache.txt"

    def copy(self, to: Path, *, without: Iterable[str] = ()) -> None:
        """A copy of it at `to`, which may be an empty folder."""
        out = {*LEFT_OUT, *LINKED, *without}
        shutil.copytree(
            self.folder,
            to,
            symlinks=True,
            dirs_exist_ok=True,
            ignore=lambda folder, names: out & set(names) if Path(folder) == self.folder else (),
        )
        for name in LINKED:
            if (self.folder / name).exists():
                (to / name).symlink_to((self.folder / name).resolve())


def _needed() -> tuple[str, ...]:
    tasks = (f"{kind}{number}" for number in range(6) for kind in ("task/", "test/task"))
    return ("CMakeLists.txt", "config.cmake", *tasks)


def built(stage: int) -> tuple[str, ...]:
    """The targets that build a stage's program, the first that there is."""
    return (f"task{stage}-classic", f"task{stage}") if stage > 3 else (f"task{stage}",)


def scored(stage: int) -> tuple[str, ...]:
    """The targets that score a stage, the first that there is."""
    plain = f"task{stage}-score"
    return (f"task{stage}-classic-score", plain) if stage > 3 else (plain,)


def settings(config: str) -> Mapping[str, str]:
    """What a `config.cmake` sets."""
    return dict(re.findall(r"(?m)^\s*set\(\s*(\w+)\s+\"?([^\s\")]+)", config))


def rewritten(config: str, wanted: Mapping[str, str]) -> str:
    """The same file with these set, and nothing else changed; what it does not set is added."""
    for name, value in wanted.items():
        line = re.compile(rf"(?m)^(\s*set\(\s*{re.escape(name)}\s+)(\"[^\"]*\"|[^\s)]+)")
        config, times = line.subn(rf"\g<1>{value}", config)
        if not times:
            config = f"{config.rstrip()}\nset({name} {value})\n"
    return config


def environment() -> Mapping[str, str]:
    """What of ours a build is given."""
    named = ("PATH", "LANG", "LC_ALL")
    return {
        name: value
        for name, value in os.environ.items()
        if name in named or name.startswith("YatCC_")
    }
