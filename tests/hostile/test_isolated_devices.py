"""An isolated agent has a /dev of its own: no shared memory, disk or console of other programs."""

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

SHARED_MEMORY = Path("/dev/shm")  # noqa: S108
ATTACK = """
import os, stat, sys
open("/dev/shm/{name}", "w").write("overwritten")
kept = {{"null", "zero", "full", "random", "urandom", "tty", "pts", "ptmx", "shm", "fd"}}
print(sorted(set(os.listdir("/dev")) - kept - {{"stdin", "stdout", "stderr"}}))
for kind, major, minor in ((stat.S_IFBLK, 7, 0), (stat.S_IFCHR, 1, 11)):
    try:
        os.mknod("made", kind | 0o600, os.makedev(major, minor))
        print("made a device", open("made", "rb").read(1))
    except OSError:
        pass
"""
ORDINARY = """
import multiprocessing, os, pty
open("/dev/null", "w").write("x")
print(len(open("/dev/urandom", "rb").read(9)), len(open("/dev/zero", "rb").read(9)))
print(open("/dev/fd/0").read() + "through /dev/fd")
lock = multiprocessing.Lock()  # a semaphore in shared memory
first, second = pty.openpty()
os.write(second, b"over a terminal\\n")
print(os.ttyname(second).startswith("/dev/pts/"), os.read(first, 99).split())
"""


@pytest.fixture(params=["root", "plain"])
def user(request: pytest.FixtureRequest) -> str:
    if request.param == "plain" and os.geteuid() != 0:
        pytest.skip("this user is a plain one already")
    return str(request.param)


@pytest.fixture
def folder(user: str) -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="devices-") as name:
        Path(name).chmod(0o777)
        yield Path(name)


def run_stumble(folder: Path, user: str, *words: str) -> subprocess.CompletedProcess[str]:
    as_plain = (sys.executable, "-m", "tests.support.plain_user") if user == "plain" else ()
    script = f'cd {folder} && exec {sys.executable} -m stumble "$@" </dev/null'
    env = {k: v for k, v in os.environ.items() if not k.startswith("STUMBLE")}
    return subprocess.run(
        (*as_plain, "/bin/sh", "-c", script, "sh", *words),
        env={**env, "HOME": str(folder)},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def replay_program(folder: Path, user: str, program: str) -> subprocess.CompletedProcess[str]:
    (folder / "agent.py").write_text("print('recorded')")
    agent = (sys.executable, "agent.py")
    recorded = run_stumble(folder, user, "record", "--times", "1", "-o", "a.tape", "--", *agent)
    assert recorded.returncode == 0, recorded.stderr
    replayed = ("replay", "--isolation", "require", "a.tape", "--", sys.executable, "-c", program)
    return run_stumble(folder, user, *replayed)


def test_what_other_programs_share_is_neither_seen_nor_changed(folder: Path, user: str) -> None:
    with tempfile.NamedTemporaryFile("w+", dir=SHARED_MEMORY) as victim:
        Path(victim.name).chmod(0o666)
        victim.write("of another program")
        victim.flush()
        replayed = replay_program(folder, user, ATTACK.format(name=Path(victim.name).name))
        assert Path(victim.name).read_text() == "of another program"
    assert replayed.returncode == 0, replayed.stderr
    assert replayed.stdout == "[]\n"


def test_ordinary_programs_find_the_devices_that_they_use(folder: Path, user: str) -> None:
    replayed = replay_program(folder, user, ORDINARY)
    assert replayed.returncode == 0, replayed.stderr
    lines = ["9 9", "through /dev/fd", "True [b'over', b'a', b'terminal']"]
    assert replayed.stdout.splitlines() == lines


def test_a_workspace_in_shared_memory_is_where_it_was() -> None:
    with tempfile.TemporaryDirectory(dir=SHARED_MEMORY) as name:
        where = "import os; print(os.listdir('.'), open('agent.py').read())"
        replayed = replay_program(Path(name), "root", where)
        assert replayed.returncode == 0, replayed.stderr
        assert "agent.py" in replayed.stdout
        assert replayed.stdout.endswith("print('recorded')\n")
