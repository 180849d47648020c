"""Where a run takes place, as a user sees it: real agents, real folders, a real server.

The agent tells a server all that it sees of its folder, with times; so a replay follows the
recording only where the copy is the same to it.
"""

import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from tests.support.practice_shop import Said
from traces.tape.reader import read_tape

AGENT = """
import json, os, pathlib, socket, subprocess, sys, urllib.request

def tell(what):
    request = urllib.request.Request("http://api.test/note", json.dumps(what).encode())
    with urllib.request.urlopen(request, timeout=20) as answer:
        return answer.read().decode()

def look():
    said = []
    for path in sorted(pathlib.Path(".").rglob("*")):
        if path.parts[0] in (".stumble", "modules.cache"):  # not kept: it is there as it is now
            continue
        info = path.stat()
        said.append((str(path), info.st_mode, info.st_mtime_ns))
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
built = pathlib.Path("modules.cache/built")
built.write_text("by the agent")
tell(built.read_text())
built.unlink()
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
def folder() -> Iterator[Path]:
    """The agent's folder; home and temporary files lie elsewhere, at paths short enough for
    the sockets in them."""
    with TemporaryDirectory(prefix="s-") as short:
        above = Path(short)
        root = above / "folder"
        (root / "empty").mkdir(parents=True)
        (root / "agent.py").write_text(AGENT)
        (root / "notes.txt").write_text("first\n")
        (root / "modules.cache").mkdir()
        (root / "modules.cache" / "lib").write_text("a library")
        (root / ".env").write_text("KEY=1\n")
        (root / ".stumbleignore").write_text("*.cache/\n")
        (above / "home").mkdir()
        (above / "tmp").mkdir()
        yield root


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
    tape = read_tape(folder.parent / "a.tape").trajectory
    assert tape.workspace == str(folder)
    assert tape.snapshot is not None
    was = seen(folder)

    again = stumble(folder, "replay", "../a.tape")

    assert again.code == 0, again.err
    assert again.out == recorded.out
    assert "5 answered from the tape, 0 upstream, 0 diverged" in again.err
    assert "isolated: nothing but the recording could be reached" in again.err
    assert "workspace: a fresh copy, as recorded" in again.err
    assert seen(folder) == was
    assert copies(folder) == []

    in_place = stumble(folder, "replay", "../a.tape", "--in-place")
    assert in_place.code == 3, "its own notes are there by now"
    assert "workspace: in place, --in-place; local commands really run again" in in_place.err


def test_what_the_agent_reaches_past_the_proxy_is_reported_and_can_be_required_not_to_be(
    folder: Path, api: int
) -> None:
    with socket.create_server(("127.0.0.2", 0)) as server:
        port = server.getsockname()[1]
        threading.Thread(target=_greet, args=(server, 2)).start()
        assert "reached b'hi'" in record(folder, api, agent=(str(port),)).out

        completed = stumble(folder, "replay", "../a.tape", "--json")
        result = json.loads(completed.out)
        assert (completed.code, result["isolated"], result["not_isolated"]) == (0, True, None)
        assert result["attempts"] == [
            {"address": "127.0.0.2", "port": port, "protocol": "tcp", "name": None, "count": 1}
        ]
        assert Path(result["agent_output"]).read_text().startswith("refused\n")

        completed = stumble(folder, "replay", "../a.tape", "--isolation", "require")
        assert completed.code == 1
        assert f"isolated: 1 attempt to reach the network past the proxy got nothing: " \
            f"127.0.0.2:{port} tcp" in completed.err  # fmt: skip

        completed = stumble(folder, "replay", "../a.tape", "--isolation", "off")
        assert (completed.code, completed.out) == (0, f"reached b'hi'\nin {folder} -\n")
        assert "not isolated: --isolation off; traffic that does not honour" in completed.err


def _greet(server: socket.socket, times: int) -> None:
    for _ in range(times):
        there, _ = server.accept()
        with there:
            there.sendall(b"hi")


def test_where_isolation_cannot_be_had_that_is_said_and_what_requires_it_does_not_start(
    folder: Path, api: int
) -> None:
    assert record(folder, api).code == 0
    result = stumble(folder, "replay", "../a.tape", before=POWERLESS)
    assert "not isolated: Operation not permitted; traffic" in result.err
    assert result.code == 0, result.err
    [mapped] = [line for line in result.err.splitlines() if line.startswith("workspace:")]
    assert "at a path of its own (STUMBLE_WORKSPACE), since Operation not permitted" in mapped
    assert f"in {folder.parent / 'tmp'}" in result.out
    assert copies(folder) == []

    result = stumble(folder, "replay", "../a.tape", "--isolation", "require", before=POWERLESS)
    assert (result.code, result.out) == (2, "")
    assert "--isolation require cannot be had: Operation not permitted" in result.err

    result = stumble(folder, "replay", "../a.tape", "--isolation", "require", "--live", "tools")
    assert (result.code, result.out) == (2, "")
    assert "--live tools needs the network" in result.err


# A system call filter, as containers have: no new namespaces, whoever asks.
POWERLESS = (sys.executable, str(Path(__file__).parents[2] / "support" / "without_namespaces.py"))


@pytest.mark.thorough
def test_a_folder_that_is_not_kept_is_said_and_not_replayed(folder: Path, api: int) -> None:
    (folder / "big").write_bytes(bytes(2 << 20))
    said = record(folder, api, "--snapshot-mb", "1")
    assert said.code == 0
    assert "workspace not kept: it is over 1 MB; most of what was seen is in big" in said.err
    said = stumble(folder, "replay", "../a.tape")
    assert (said.code, said.out) == (2, "")
    assert "can be made: the recording has no snapshot" in said.err

    (folder.parent / "a.tape").unlink()
    said = record(folder, api, "--no-snapshot")
    assert "workspace" not in said.err
    assert read_tape(folder.parent / "a.tape").trajectory.snapshot is None


def test_a_copy_is_kept_where_it_is_asked_for(folder: Path, api: int) -> None:
    assert record(folder, api).code == 0
    result = stumble(folder, "replay", "../a.tape", "--keep-workspace", "--json")
    kept = Path(json.loads(result.out)["kept_workspace"])
    assert (kept / "notes.txt").read_text() == "first\nseen\n"
    assert (kept / ".env").read_text() == "", "no secret is in it"
    assert not (kept / ".stumble").exists()
    result = stumble(folder, "replay", "../a.tape", "--keep-workspace", "--in-place")
    assert result.code == 2


def test_an_agent_that_was_changed_since_is_run_as_it_is_and_that_is_said(
    folder: Path, api: int
) -> None:
    assert record(folder, api).code == 0
    (folder / "agent.py").write_text("print('changed')")
    result = stumble(folder, "replay", "../a.tape")
    assert "with your edits to agent.py" in result.err
    assert (result.code, result.out) == (3, "changed\n")
    result = stumble(folder, "replay", "../a.tape", "--as-recorded")
    assert (result.code, result.out) == (0, f"in {folder} -\n")


def test_when_we_are_killed_nothing_is_left(folder: Path, api: int, tmp_path: Path) -> None:
    pid = tmp_path / "pid"
    assert record(folder, api).code == 0
    command = [sys.executable, "-m", "stumble", "replay", "../a.tape", "--"]
    agent = [sys.executable, "agent.py", "wait", str(pid)]
    env = environment(folder) | {"NAMED": str(tmp_path)}
    with subprocess.Popen([*command, *agent], cwd=folder, env=env) as process:
        try:
            wait_for(pid.exists)
            assert copies(folder) != []
            assert running(str(pid)) != []
        finally:
            process.send_signal(signal.SIGKILL)
    wait_for(lambda: running(str(pid)) == [])
    wait_for(lambda: not list((folder.parent / "tmp").glob("stumble-copy-*")), 20)
    assert str(folder) not in Path("/proc/mounts").read_text()


def running(mark: str) -> list[int]:
    """The processes of this machine, by its own numbers, that name this in their command."""
    found = []
    for each in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            found += [int(each.parent.name)] if mark in each.read_text() else []
        except OSError:
            continue
    return found


def wait_for(condition: Callable[[], bool], seconds: float = 60) -> None:
    until = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < until
        time.sleep(0.01)
