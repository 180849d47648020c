"""Runs every group of checks, or those named, and says how long each took.

All groups run even where one fails, so that one run shows all there is to mend. The last line
is pytest's own count.
"""

import os
import signal
import subprocess
import sys
import threading
import time
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BUDGET = 2400
"""Seconds that all groups together should stay under on two cores; more is said, not failed."""
LIMIT = 2400
"""Seconds after which a group is ended."""
LAST_WORDS = 60
"""Seconds that it then has to say what has failed so far."""

PYTHON = (sys.executable, "-m")
GROUPS: dict[str, tuple[str, ...]] = {
    "lint": (*PYTHON, "ruff", "check"),
    "format": (*PYTHON, "ruff", "format", "--check"),
    "types": (*PYTHON, "mypy"),
    "install": (*PYTHON, "tests.agents"),
    "alone": (*PYTHON, "pytest", "-m", "alone"),
    "agents": (*PYTHON, "pytest", "-m", "agents", "-n", "2"),
    "tests": (*PYTHON, "pytest", "-m", "not alone and not agents", "-n", "2"),
    "selftest": (*PYTHON, "stumble", "selftest"),
    "mutants": (sys.executable, "tests/mutation/run.py"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Ran:
    """What a group came to; `last` is the last line it printed."""

    name: str
    seconds: float
    passed: bool
    last: str


def main(names: list[str]) -> int:
    unknown = [name for name in names if name not in GROUPS]
    if unknown:
        print(f"no group {unknown[0]}; there are {', '.join(GROUPS)}", file=sys.stderr)
        return 2
    ran = [run(name, GROUPS[name]) for name in names or GROUPS]
    print()
    for group in ran:
        verdict = "ok" if group.passed else "FAILED"
        print(f"{group.name:8} {group.seconds:6.1f} s  {verdict:6}  {group.last.strip('= ')}")
    total = sum(group.seconds for group in ran)
    over = " (OVER)" if total > BUDGET else ""
    print(f"{'total':8} {total:6.1f} s  of a budget of {BUDGET} s{over}")
    print("".join(group.last for group in ran if group.name == "tests"))
    return 0 if all(group.passed for group in ran) else 1


def run(name: str, command: tuple[str, ...]) -> Ran:
    print(f"\n--- {name}", flush=True)
    began, last = time.monotonic(), ""
    with subprocess.Popen(
        command,
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    ) as process:
        bells = (
            threading.Timer(LIMIT, os.killpg, (process.pid, signal.SIGINT)),
            threading.Timer(LIMIT + LAST_WORDS, os.killpg, (process.pid, signal.SIGKILL)),
        )
        for bell in bells:
            bell.start()
        try:
            assert process.stdout
            for line in process.stdout:
                print(line, end="", flush=True)
                last = line.rstrip() or last
            process.wait()
        finally:
            for bell in bells:
                bell.cancel()
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
    seconds = time.monotonic() - began
    return Ran(name=name, seconds=seconds, passed=process.returncode == 0, last=last)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
