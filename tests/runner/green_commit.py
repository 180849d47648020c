"""The last commit whose gate was green: mutants of the files that changed since then are run."""

import os
import subprocess
from pathlib import Path

from tests.runner.processes import ROOT

DAYS = 2
"""How far back changes count if no green commit is known on this machine."""


def green_file() -> Path:
    """The file that holds the id; in the user's cache, so that fresh clones share it."""
    cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(cache, "stumble-tests", "green-commit")


def store_green_commit() -> None:
    """Store the id of HEAD, unless files differ from it or this is no checkout."""
    head = _git("rev-parse", "HEAD")
    if head and not _git("status", "--porcelain", "--untracked-files=no"):
        green_file().parent.mkdir(parents=True, exist_ok=True)
        green_file().write_text(head)


def list_changed_files() -> frozenset[str]:
    """Return files that changed since the green commit, or in the last DAYS if it is unknown."""
    stored = green_file().read_text().strip() if green_file().exists() else ""
    base = stored if _git("cat-file", "-t", stored or "none") == "commit" else ""
    base = base or _git("rev-list", "-1", f"--before={DAYS} days ago", "HEAD")
    if not base:
        return frozenset(_git("ls-files").splitlines())
    return frozenset(_git("diff", "--name-only", base).splitlines())


def _git(*words: str) -> str:
    """The output of git, empty if it fails."""
    ran = subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True, check=False)
    return ran.stdout.strip() if ran.returncode == 0 else ""
