"""Environments for real agents, apart from ours because they pin what we do not.

From pip: `NAME.in` says what an agent needs, `NAME.txt` locks it. From npm: NAME/package.json
and NAME/package-lock.json, which hold a hash of each package and no address of any registry.
The npm agents are named by their native package for Linux on x64 (235 MB for Claude Code,
404 MB for Codex, so the cache is worth keeping): npm is needed to install them, and nothing
of Node to run them. `make lock` renews all locks, `python -m tests.agents` installs all agents.
"""

import fcntl
import hashlib
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from bootstrap import find_uv

LOCKS = Path(__file__).parent
CACHE = LOCKS.parent.parent / ".cache" / "agents"
LIMIT = 900
"""Seconds that one step of an installation may take."""

NATIVE = {
    "claude-code": "@anthropic-ai/claude-code-linux-x64/claude",
    "aimock": "@copilotkit/aimock/dist/cli.js",
    "codex": "@openai/codex/vendor/x86_64-unknown-linux-musl/bin/codex",
}
"""The program of each npm agent, below node_modules; aimock is a model, which benches ask."""


def environment(name: str) -> Path:
    """The interpreter of a pip agent's environment, which is installed at the first call."""
    lock = LOCKS / f"{name}.txt"
    return _installed(name, sys.version.encode() + lock.read_bytes(), _pip) / "bin" / "python"


def native(name: str) -> Path:
    """The program of an npm agent, which is installed at the first call."""
    lock = LOCKS / name / "package-lock.json"
    return _installed(name, lock.read_bytes(), _npm) / "node_modules" / NATIVE[name]


def _installed(name: str, lock: bytes, install: Callable[[str, Path], None]) -> Path:
    """Under another name first: what has the right name is whole."""
    home = CACHE / f"{name}-{hashlib.sha256(lock).hexdigest()[:12]}"
    CACHE.mkdir(parents=True, exist_ok=True)
    with (CACHE / f"{name}.lock").open("w") as turn:
        fcntl.flock(turn, fcntl.LOCK_EX)
        if not home.exists():
            making = home.with_name(f"{home.name}.making")
            shutil.rmtree(making, ignore_errors=True)
            install(name, making)
            making.rename(home)
    return home


def _pip(name: str, making: Path) -> None:
    uv = find_uv()
    run(uv, "venv", "--quiet", "--relocatable", "--python", sys.executable, making)
    into = ("--quiet", "--python", making / "bin" / "python")
    run(uv, "pip", "sync", *into, "--require-hashes", LOCKS / f"{name}.txt")


def _npm(name: str, making: Path) -> None:
    making.mkdir()
    for file in ("package.json", "package-lock.json"):
        shutil.copy(LOCKS / name / file, making)
    quiet = ("--no-audit", "--no-fund", "--no-update-notifier", "--loglevel=error")
    run("npm", "ci", "--ignore-scripts", *quiet, folder=making)


def run(*command: str | Path, folder: Path | None = None) -> None:
    subprocess.run(command, check=True, timeout=LIMIT, cwd=folder)
