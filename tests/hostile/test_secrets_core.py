"""No process of ours leaves its memory in a file when it crashes."""

import resource
import subprocess
import sys
from pathlib import Path

CRASH = """
import os, signal, sys
sys.argv = ["stumble", "--version"]
from stumble.__main__ import disable_core_dumps
disable_core_dumps()
os.kill(os.getpid(), signal.SIGSEGV)
"""


def test_a_crash_leaves_no_core(tmp_path: Path) -> None:
    _, hard = resource.getrlimit(resource.RLIMIT_CORE)

    def allow() -> None:
        resource.setrlimit(resource.RLIMIT_CORE, (hard, hard))

    done = subprocess.run(
        [sys.executable, "-c", CRASH], cwd=tmp_path, preexec_fn=allow, timeout=30, check=False
    )
    assert done.returncode == -11
    assert not list(tmp_path.iterdir())


def test_the_command_line_has_a_limit_of_nothing(tmp_path: Path) -> None:
    said = (
        "import atexit, resource, sys; sys.argv = ['stumble', '--help']\n"
        "from stumble.__main__ import main\n"
        "atexit.register(lambda: print('core', resource.getrlimit(resource.RLIMIT_CORE)[0]))\n"
        "main()"
    )
    done = subprocess.run(
        [sys.executable, "-c", said], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.stdout.endswith("core 0\n")
