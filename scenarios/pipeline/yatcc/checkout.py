"""A configured YatCC checkout: checks that it is usable, and copies to work and to grade in.

The checkout itself is never changed. A copy leaves out `build` and `.git`; the folders with LLVM
and other dependencies are links to those of the checkout. A stage's input is selected by a `set()`
in `config.cmake`: a `-D` on cmake's command line does not override it, so only that line of the
copy's file is rewritten.
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
_CACHE_ENTRY = re.compile(r"(?m)^([\w.+-]+):(PATH|FILEPATH|STRING|BOOL|UNINITIALIZED)=(.*)$")
"""An entry of CMake's cache that a user can set; INTERNAL and STATIC ones are CMake's own."""
PATIENCE = 60.0
"""Timeout of a query to cmake or git in seconds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class YatccCheckout:
    """A YatCC checkout on disk."""

    folder: Path

    def find_obstacle(self) -> str | None:
        """Return why the checkout cannot be used and what to do about it; None if it is usable."""
        if shutil.which("cmake") is None:
            return "cmake is not here, and YatCC is built by it: install cmake"
        if not self.folder.is_dir():
            return f"{self.folder} is no folder: --checkout names a checkout of YatCC"
        lacking = [name for name in _list_required_paths() if not (self.folder / name).exists()]
        if lacking:
            branch = f" (on branch {branch_name})" if (branch_name := self._read_branch()) else ""
            shown = ", ".join(lacking[:3]) + (" and more" if len(lacking) > 3 else "")
            return (
                f"{self.folder}{branch} has no {shown}: check out a branch that has all six tasks"
            )
        if not self._cache_path().is_file():
            return (
                f"{self.folder} is not configured, there is no build/CMakeCache.txt: follow its "
                "own instructions until `cmake -S . -B build` ends well"
            )
        return self._find_missing_targets()

    def _find_missing_targets(self) -> str | None:
        targets = self.list_targets(self.folder / "build")
        required = [
            names
            for stage in range(6)
            for names in (list_build_targets(stage), list_score_targets(stage))
        ]
        lacking = [names[-1] for names in required if not targets & set(names)]
        if not lacking:
            return None
        return f"{self.folder}/build has no target {', '.join(lacking)}: configure it anew"

    def _read_branch(self) -> str | None:
        command = ["git", "-C", str(self.folder), "rev-parse", "--abbrev-ref", "HEAD"]
        if shutil.which("git") is None:
            return None
        completed = subprocess.run(
            command, capture_output=True, text=True, timeout=PATIENCE, check=False
        )
        return completed.stdout.strip() or None

    def list_targets(self, build: Path) -> frozenset[str]:
        """Return the targets of a configured build."""
        command = ["cmake", "--build", str(build), "--target", "help"]
        completed = subprocess.run(
            command, capture_output=True, text=True, timeout=PATIENCE, check=False
        )
        return frozenset(re.findall(r"(?m)^(?:\.\.\. )?([\w.+-]+)(?:: |\s|$)", completed.stdout))

    def read_cmake_arguments(self) -> tuple[str, ...]:
        """Return the user's configuration as cmake arguments, without paths into its build."""
        text = self._cache_path().read_text("utf-8")
        generator = re.search(r"(?m)^CMAKE_GENERATOR:INTERNAL=(.+)$", text)
        build = str(self.folder / "build")
        definitions = tuple(
            f"-D{name}:{kind}={value}"
            for name, kind, value in _CACHE_ENTRY.findall(text)
            if value and not value.endswith("NOTFOUND") and build not in value
        )
        return ("-G", generator[1] if generator else "Unix Makefiles", *definitions)

    def _cache_path(self) -> Path:
        return self.folder / "build" / "CMakeCache.txt"

    def copy_to(self, to: Path, *, without: Iterable[str] = ()) -> None:
        """Copy the checkout to `to`, which may be an empty folder."""
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


def _list_required_paths() -> tuple[str, ...]:
    tasks = (f"{kind}{number}" for number in range(6) for kind in ("task/", "test/task"))
    return ("CMakeLists.txt", "config.cmake", *tasks)


def list_build_targets(stage: int) -> tuple[str, ...]:
    """Return the targets that build a stage's program; the first existing one is used."""
    return (f"task{stage}-classic", f"task{stage}") if stage > 3 else (f"task{stage}",)


def list_score_targets(stage: int) -> tuple[str, ...]:
    """Return the targets that score a stage; the first existing one is used."""
    plain = f"task{stage}-score"
    return (f"task{stage}-classic-score", plain) if stage > 3 else (plain,)


def parse_cmake_settings(config: str) -> Mapping[str, str]:
    """Return the variables that a `config.cmake` sets."""
    return dict(re.findall(r"(?m)^\s*set\(\s*(\w+)\s+\"?([^\s\")]+)", config))


def rewrite_cmake_settings(config: str, wanted: Mapping[str, str]) -> str:
    """Return the file with these variables set; missing ones are appended, the rest is
    unchanged.
    """
    for name, value in wanted.items():
        line = re.compile(rf"(?m)^(\s*set\(\s*{re.escape(name)}\s+)(\"[^\"]*\"|[^\s)]+)")
        config, times = line.subn(rf"\g<1>{value}", config)
        if not times:
            config = f"{config.rstrip()}\nset({name} {value})\n"
    return config


def select_build_env() -> Mapping[str, str]:
    """Return the variables of the environment that a build gets, without its temporary folder."""
    named = ("PATH", "LANG", "LC_ALL", "JAVA_HOME", "LD_LIBRARY_PATH", "PKG_CONFIG_PATH")
    return {
        name: value
        for name, value in os.environ.items()
        if name in named or name.startswith("YatCC_")
    }
