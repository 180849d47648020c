"""Environments for real agents, apart from ours because they pin what we do not.

`NAME.in` says what an agent needs, `NAME.txt` locks it (`make lock`). `python -m tests.agents`
installs all of them.
"""

import fcntl
import hashlib
import shutil
import subprocess
import sys
from pathlib import Path

from bootstrap import find_uv

LOCKS = Path(__file__).parent
CACHE = LOCKS.parent.parent / ".cache" / "agents"
LIMIT = 900
"""Seconds that one step of an installation may take."""


def environment(name: str) -> Path:
    """The interpreter of an agent's environment, which is installed at the first call."""
    lock = LOCKS / f"{name}.txt"
    digest = hashlib.sha256(sys.version.encode() + lock.read_bytes()).hexdigest()[:12]
    home = CACHE / f"{name}-{digest}"
    CACHE.mkdir(parents=True, exist_ok=True)
    with (CACHE / f"{name}.lock").open("w") as turn:
        fcntl.flock(turn, fcntl.LOCK_EX)
        if not home.exists():
            install(lock, home)
    return home / "bin" / "python"


def install(lock: Path, home: Path) -> None:
    """Under another name first: what has the right name is whole."""
    making = home.with_name(f"{home.name}.making")
    shutil.rmtree(making, ignore_errors=True)
    uv = find_uv()
    run(uv, "venv", "--quiet", "--relocatable", "--python", sys.executable, making)
    into = ("--quiet", "--python", making / "bin" / "python")
    run(uv, "pip", "sync", *into, "--require-hashes", lock)
    making.rename(home)


def run(*command: str | Path) -> None:
    subprocess.run(command, check=True, timeout=LIMIT)
