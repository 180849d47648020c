"""What an agent sees of the store and the tape in its folder, it sees in a replay; no contents.

The agents list their folder, as coding agents do for their prompt.
"""

import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.practice_shop import Said, Shop, shop
from tests.support.warm_stumble import run_stumble

SEND = """
import json, os, subprocess, sys, urllib.request
asked = {"order_id": "ord-7100", "seen": seen}
request = urllib.request.Request("http://shop.practice/tools/get_order", json.dumps(asked).encode())
try:
    urllib.request.urlopen(request, timeout=30).read()
except urllib.error.HTTPError as error:
    if error.code == 422:
        sys.exit(1)
"""
WAYS = {
    "walk": "seen = sorted(map(str, __import__('pathlib').Path('.').rglob('*')))",
    "ls": "import os; seen = os.popen('ls -laR . | grep -v \"tapes\\\\|tape$\\\\|total\"').read()",
    "sizes": "import os; seen = os.popen('find .stumble/index .stumble/.gitignore -ls').read()"
    ".split(' ', 1)[0]",
    "git": "import os; seen = os.popen('git init -q; git status --porcelain').read()",
    "ignored": "import os; seen = os.popen('cat .stumble/.gitignore').read()",
}


class Place:
    """A folder with a store of its own, as a user has it."""

    def __init__(self, served: Shop) -> None:
        self.served, self.folder = served, served.folder

    def stumble(self, *arguments: str) -> Said:
        env = self.served.environment() | {"HOME": str(self.folder.with_name("home"))}
        del env["STUMBLE_STORE"]
        return run_stumble(arguments, cwd=self.folder, env=env, timeout=90)

    def record(self, name: str) -> Said:
        host = self.served.host_options()
        agent = ("--", sys.executable, "agent.py")
        return self.stumble("record", "-o", name, "--times", "1", *host, *agent)


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    (tmp_path / "home").mkdir()
    (tmp_path / "work").mkdir()
    with shop(tmp_path / "work") as served:
        yield Place(served)


@pytest.mark.many(2)
@pytest.mark.parametrize("way", WAYS)
def test_a_folder_that_holds_the_store_looks_the_same_in_a_replay(place: Place, way: str) -> None:
    (place.folder / "agent.py").write_text(WAYS[way] + SEND)
    for name in ("first.tape", "second.tape"):  # then the store has a recording already
        assert place.record(name).code == 0
    shutil.rmtree(place.folder / ".git", ignore_errors=True)
    for name in ("first.tape", "second.tape"):
        again = place.stumble("replay", name)
        assert again.code == 0, again.err


READS = """
import pathlib
found = [path for path in pathlib.Path(".").rglob("*") if path.is_file()]
of_store = [path for path in found if ".stumble" in path.parts or path.name == "second.tape"]
seen = sorted(str(path) for path in of_store if path.suffix != ".tape")
print(len(of_store), sum(len(p.read_bytes().strip(bytes(1))) for p in of_store))
"""


def test_the_stand_ins_hold_nothing_of_the_store_and_leave_a_kept_copy(place: Place) -> None:
    (place.folder / "agent.py").write_text(READS + SEND)
    assert place.record("first.tape").code == 0
    recorded = place.record("second.tape")
    again = place.stumble("replay", "second.tape", "--keep-workspace")
    assert again.code == 0, again.err
    files, held = map(int, recorded.out.split())
    assert files > 5
    assert held > 1000
    assert again.out.split() == [str(files), "2"], "what .gitignore holds"
    copy = Path(again.err.partition("the copy is in ")[2].partition("\n")[0])
    names = {path.name for path in copy.iterdir()}
    assert names >= {"agent.py", "first.tape"}
    assert names.isdisjoint({".stumble", "second.tape"})
    shutil.rmtree(copy.parent)
