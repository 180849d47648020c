"""An isolated run is ended if it uses more memory, processes or disk than it may."""

from pathlib import Path

import pytest

from stumble.cli.options import parse_limits
from stumble.errors import UsageError
from tests.hostile.test_isolated_devices import folder, run_stumble, user
from tests.hostile.test_isolated_scratch import PYTHON, record

__all__ = ["folder", "user"]
ATTACKS = {
    "memory": "kept = []\nwhile True: kept.append(bytearray(b'x') * 20_000_000)",
    "shared memory": """
with open("/dev/shm/file", "wb") as file:
    while True: file.write(b"x" * 10_000_000); file.flush()
""",
    "memory of many": """
import os, time
for _ in range(12): os.fork() or (setattr(os, "kept", bytearray(b"x") * 30_000_000), time.sleep(60))
time.sleep(60)
""",
    "processes": "import os, time\nwhile True: os.fork() or time.sleep(60)",
    "detached processes": """
import os, time
while True:
    if not os.fork(): os.setsid(); os.fork() and os._exit(0); time.sleep(60)
""",
    "disk": """
with open("/tmp/" + "file", "wb") as file:
    while True: file.write(b"x" * 10_000_000)
""",
    "disk of many": """
import itertools, os, pathlib
for number in itertools.count():
    folder = "/opt" if os.geteuid() == 0 else "/tmp"
    pathlib.Path(f"{folder}/file{number}").write_bytes(b"x" * 1_000_000)
""",
    "disk of a workspace": """
import itertools, pathlib
for number in itertools.count(): pathlib.Path(f"file{number}").write_bytes(b"x" * 1_000_000)
""",
}


@pytest.mark.gate
@pytest.mark.parametrize("attack", ATTACKS)
def test_a_run_that_uses_too_much_is_ended(attack: str, folder: Path, user: str) -> None:
    record(folder, user)
    replay = ("replay", "a.tape", "--limits", "memory=0.3,processes=60,disk=0.1", "--budget", "60")
    done = run_stumble(folder, user, *replay, "--", PYTHON, "-c", ATTACKS[attack])
    limit = attack.removeprefix("shared ").removeprefix("detached ").split(" ")[0]
    assert f"too much {limit} (--limits)" in done.stderr
    assert "(--budget)" not in done.stderr
    assert done.returncode == 3


def test_address_space_that_is_not_used_is_free(folder: Path, user: str) -> None:
    record(folder, user)
    reserve = "import mmap; m = mmap.mmap(-1, 1 << 40, flags=mmap.MAP_PRIVATE | mmap.MAP_NORESERVE)"
    replay = ("replay", "a.tape", "--limits", "memory=0.3,processes=9,disk=0.1", "--")
    code = f"{reserve}; import time; time.sleep(1); print('ran')"
    assert run_stumble(folder, user, *replay, PYTHON, "-c", code).stdout == "ran\n"


@pytest.mark.parametrize(
    "text", ["memory", "memory=0", "disk=-1", "cpu=3", "processes=x", "disk=inf"]
)
def test_a_wrong_limit_is_named(text: str) -> None:
    with pytest.raises(UsageError, match=text.split("=")[0]):
        parse_limits(text)
    assert parse_limits("memory=2,disk=3")[::2] == (2_000_000_000, 3_000_000_000)
    assert parse_limits(None).processes == 4096
