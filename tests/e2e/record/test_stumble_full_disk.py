"""A disk that is full, or may not be written: said in one line, and nothing half is left.

The disk is a tmpfs of 2 MB where mounting is allowed; elsewhere no file may grow beyond a limit,
which is another reason for the same refusal.
"""

import os
import resource
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from random import Random

import pytest

from traces.tape.reader import read_tape

ROOT = Path(__file__).parents[3]
MB = 1 << 20


class Shop(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        data = Random(self.path).randbytes(60_000)
        self.send_response(200)
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""


@pytest.fixture
def shop() -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), Shop) as server:
        serving = threading.Thread(target=server.serve_forever)
        serving.start()
        yield f"shop.test=127.0.0.1:{server.server_port}"
        server.shutdown()
        serving.join()


class Disk:
    """A small disk: what fits on it is given in bytes."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        mount = ["mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", str(folder)]
        self.mounted = subprocess.run(mount, capture_output=True, timeout=30).returncode == 0
        self.limit: int | None = None

    def leave(self, size: int) -> None:
        """From now on a file may have this many bytes."""
        self.limit = size
        if self.mounted:
            (self.folder / "fill").write_bytes(b"\0" * (self.room() - size))

    def room(self) -> int:
        """How many bytes are free."""
        said = os.statvfs(self.folder)
        return said.f_bavail * said.f_frsize

    def free(self) -> None:
        """There is room again."""
        self.limit = None
        (self.folder / "fill").unlink(missing_ok=True)

    def bound(self) -> None:
        """Called in a new process, before its program."""
        if self.limit is not None and not self.mounted:
            resource.setrlimit(resource.RLIMIT_FSIZE, (self.limit, self.limit))


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Disk]:
    folder = tmp_path / "disk"
    folder.mkdir()
    made = Disk(folder)
    yield made
    if made.mounted:
        subprocess.run(["umount", str(folder)], check=True, timeout=30)


AGENT = """
import itertools, sys, urllib.request
for n in itertools.islice(itertools.count(), int(sys.argv[1]) or None):
    urllib.request.urlopen(f"http://shop.test/{n}").read()
print("agent done")
"""


def stumble(disk: Disk, store: Path, *words: str) -> subprocess.CompletedProcess[str]:
    home = store.parent
    env = {"PATH": os.environ["PATH"], "HOME": str(home), "STUMBLE_STORE": str(store)}
    env["XDG_CACHE_HOME"] = os.environ["XDG_CACHE_HOME"]  # not on this disk: it takes half of it
    return subprocess.run(
        [sys.executable, "-m", "stumble", *words],
        cwd=home,
        env=env | {"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=100,
        preexec_fn=disk.bound,
    )


def record(
    disk: Disk, store: Path, shop: str, path: Path, count: int
) -> subprocess.CompletedProcess[str]:
    agent = [sys.executable, "-c", AGENT, str(count)]
    return stumble(disk, store, "record", "-o", str(path), "--host", shop, "--", *agent)


def halves(folder: Path) -> list[str]:
    """The names of what was not finished."""
    every = [path.name for path in folder.rglob("*")]
    return [name for name in every if ".part" in name or name.endswith((".sealing", ".wal"))]


def test_a_full_disk_ends_the_agent_and_says_what_there_is(
    disk: Disk, shop: str, tmp_path: Path
) -> None:
    path = disk.folder / "a.tape"
    disk.leave(MB // 2)

    said = record(disk, tmp_path / "store", shop, path, count=0)

    assert said.returncode == 6, said.stderr
    assert "agent done" not in said.stdout
    size = path.stat().st_size
    assert f"{path}: " in said.stderr
    assert f"the {size:,} bytes written before can be read. Make room there" in said.stderr
    tape = read_tape(path)
    assert (tape.damage, tape.ending) == ((), None)
    assert len(tape.exchanges) >= 5
    assert "not closed" in stumble(disk, tmp_path / "store", "show", str(path)).stderr
    assert halves(disk.folder) == []


def test_a_disk_with_no_room_at_all_leaves_no_tape(disk: Disk, shop: str, tmp_path: Path) -> None:
    disk.leave(0)
    said = record(disk, tmp_path / "store", shop, disk.folder / "a.tape", count=1)

    assert said.returncode == 6, said.stderr
    assert not (disk.folder / "a.tape").exists()


def test_where_the_sealed_tape_does_not_fit_the_other_one_stays(
    disk: Disk, shop: str, tmp_path: Path
) -> None:
    if not disk.mounted:
        return  # one file of this size fits, so no limit on files keeps out the second one
    path = disk.folder / "a.tape"
    said = record(disk, tmp_path / "store", shop, path, count=24)

    assert said.returncode == 0, said.stderr
    assert f"{path} was not sealed: No space left on device; it is whole" in said.stderr
    assert len(read_tape(path).exchanges) == 24
    assert read_tape(path).ending is not None
    assert halves(disk.folder) == []


@pytest.mark.many(2)
@pytest.mark.parametrize("room", [20_000, 60_000, 120_000, 200_000, 300_000])
def test_an_index_that_does_not_fit_is_made_once_it_does(
    room: int, disk: Disk, shop: str, tmp_path: Path
) -> None:
    path, store = tmp_path / "a.tape", disk.folder / "store"
    count = ("sql", "--format", "csv", "select count(*) n from exchanges")
    assert record(disk, store, shop, path, count=1).returncode == 0

    # A limit on each file must be below the largest, the views.
    disk.leave(room if disk.mounted else room // 2)
    result = stumble(disk, store, *count)

    assert result.returncode == 6, result.stderr
    assert f"{store} could not be written: " in result.stderr
    assert "No tape is lost; make room there" in result.stderr
    assert halves(disk.folder) == []
    disk.free()
    rows = stumble(disk, store, *count)
    assert (rows.returncode, rows.stdout) == (0, "n\n1\n"), rows.stderr


def test_a_run_that_cannot_be_put_into_the_store_says_so_and_keeps_its_tape(
    disk: Disk, shop: str, tmp_path: Path
) -> None:
    path, store = tmp_path / "a.tape", disk.folder / "store"
    store.mkdir()
    (store / "tapes").touch()  # instead of the folder, which has no room for one more name
    said = record(disk, store, shop, path, count=1)

    assert said.returncode == 6, said.stderr
    assert f"recorded {path}: 1 exchange" in said.stderr
    assert f"{store} could not be written: " in said.stderr
    assert read_tape(path).ending is not None


def test_a_folder_that_may_only_be_read_is_refused_before_anything_starts(
    disk: Disk, shop: str, tmp_path: Path
) -> None:
    if disk.mounted:
        subprocess.run(["mount", "-o", "remount,ro", str(disk.folder)], check=True, timeout=30)
    else:
        disk.folder.chmod(0o500)

    said = record(disk, tmp_path / "store", shop, disk.folder / "a.tape", count=1)
    assert said.returncode == 2
    assert said.stderr == f"stumble: {disk.folder / 'a.tape'}: {disk.folder} is not writable\n"

    said = record(disk, disk.folder / "store", shop, tmp_path / "a.tape", count=1)
    assert said.returncode == 6
    assert len(said.stderr.splitlines()) == 1
    assert not (tmp_path / "a.tape").exists()


def test_a_tape_that_is_there_is_never_written_over(disk: Disk, shop: str, tmp_path: Path) -> None:
    path = tmp_path / "a.tape"
    path.write_bytes(b"mine")
    said = record(disk, tmp_path / "store", shop, path, count=1)

    assert said.returncode == 2
    assert "exists already" in said.stderr
    assert path.read_bytes() == b"mine"
