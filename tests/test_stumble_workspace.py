"""Where a run takes place, as a user sees it: real agents, real folders, a real server.

The agent tells a server all that it sees of its folder, with times; so a replay follows the
recording only where the copy is the same to it.
"""

import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from tests.shop import Said
from traces.tape import read

AGENT = """
import json, os, pathlib, socket, subprocess, sys, urllib.request

def tell(what):
    request = urllib.request.Request("http://api.test/note", json.dumps(what).encode())
    with urllib.request.urlopen(request, timeout=20) as answer:
        return answer.read().decode()

def look():
    said = []
    for path in sorted(pathlib.Path(".").rglob("*")):
        if path.parts[0] in (".stumble", "home"):
            continue
        info = path.lstat()
        said.append((str(path), info.st_mode, info.st_mtime_ns if path.name != "log" else 0))
    return said

tell(look())
if sys.argv[1:] and sys.argv[1] == "wait":
    pathlib.Path(sys.argv[2]).write_text(str(os.getpid()))
    import time; time.sleep(1000)
notes = pathlib.Path("notes.txt")
tell(notes.read_text())
notes.write_text(notes.read_text() + "seen\\n")
pathlib.Path("new").mkdir()
pathlib.Path("new/log").write_text("x")
tell(os.listdir("modules.cache"))
pathlib.Path("modules.cache/built").write_text("by the agent")
tell([subprocess.run(["cat", "notes.txt", ".env"], capture_output=True, text=True).stdout])
for port in sys.argv[1:]:
    try:
        with socket.create_connection(("127.0.0.2", int(port)), 5) as there:
            print("reached", there.recv(100))
    except OSError as error:
        print("refused")
print("in", os.getcwd(), os.environ.get("STUMBLE_WORKSPACE", "-"))
"""


class Api(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        length = int(self.headers["Content-Length"])
        self.rfile.read(length)
        self.send_response(200)
        self.send_header("Content-Length", "2")
        self.end_headers()
        self.wfile.write(b"ok")

    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture
def api() -> Iterator[int]:
    with ThreadingHTTPServer(("127.0.0.1", 0), Api) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield server.server_address[1]
        server.shutdown()
        thread.join(timeout=10)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The agent's folder; home and temporary files lie elsewhere."""
    root = tmp_path / "folder"
    (root / "empty").mkdir(parents=True)
    (root / "agent.py").write_text(AGENT)
    (root / "notes.txt").write_text("first\n")
    (root / "modules.cache").mkdir()
    (root / "modules.cache" / "lib").write_text("a library")
    (root / ".env").write_text("KEY=1\n")
    (root / ".stumbleignore").write_text("*.cache/\n")
    (tmp_path / "home").mkdir()
    (tmp_path / "tmp").mkdir()
    return root


def environment(folder: Path) -> dict[str, str]:
    kept = {k: v for k, v in os.environ.items() if not k.startswith("STUMBLE")}
    home, temporary = folder.parent / "home", folder.parent / "tmp"
    return kept | {"HOME": str(home), "TMPDIR": str(temporary)}


def stumble(folder: Path, *arguments: str, before: tuple[str, ...] = ()) -> Said:
    done = subprocess.run(
        [*before, sys.executable, "-m", "stumble", *arguments],
        capture_output=True,
        text=True,
        cwd=folder,
        env=environment(folder),
        timeout=100,
    )
    return Said(code=done.returncode, out=done.stdout, err=done.stderr)


def record(folder: Path, api: int, *options: str, agent: tuple[str, ...] = ()) -> Said:
    command = ("--host", f"api.test=127.0.0.1:{api}", *options, "--", sys.executable, "agent.py")
    return stumble(folder, "record", "-o", "../a.tape", *command, *agent)


def seen(root: Path) -> dict[str, tuple[int, int, bytes | None]]:
    return {
        str(path.relative_to(root)): (
            path.lstat().st_mode,
            path.lstat().st_mtime_ns,
            path.read_bytes() if path.is_file() else None,
        )
        for path in root.rglob("*")
        if ".stumble" not in path.parts
    }


def copies(folder: Path) -> list[Path]:
    return list((folder.parent / "tmp").iterdir())


def test_a_strict_replay_sees_the_folder_as_it_was_and_leaves_it_as_it_is(
    folder: Path, api: int
) -> None:
    recorded = record(folder, api)
    assert recorded.code == 0, recorded.err
    assert ".env not kept (by name it holds secrets" in recorded.err
    assert "modules.cache not kept (.stumbleignore" in recorded.err
    assert recorded.out == f"in {folder} -\n"
    tape = read(folder.parent / "a.tape").trajectory
    assert tape.workspace == str(folder)
    (folder / "modules.cache" / "built").unlink()  # left out, so it is there as it is now
    os.utime(folder / "modules.cache", ns=(0, _mtime(folder, "modules.cache")))
    was = seen(folder)

    again = stumble(folder, "replay", "../a.tape")

    assert again.code == 0, again.err
    assert again.out == recorded.out
    assert "4 answered from the tape, 0 upstream, 0 diverged" in again.err
    assert "isolated: nothing but the recording could be reached" in again.err
    assert "workspace: a fresh copy, as recorded" in again.err
    assert seen(folder) == was
    assert copies(folder) == []

    in_place = stumble(folder, "replay", "../a.tape", "--in-place")
    assert in_place.code == 3, "its own notes are there by now"
    assert "workspace: in place, --in-place; local commands really run again" in in_place.err


def _mtime(folder: Path, name: str) -> int:
    """When a path of the recorded folder was changed, as the agent saw it."""
    first = read(folder.parent / "a.tape").exchanges[0].request.body
    return next(int(mtime) for path, _, mtime in json.loads(first) if path == name)
