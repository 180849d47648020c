"""An agent in a cage reaches nobody but us, sees a copy of its folder, and leaves nothing there.

The servers that must not be reached are real, on loopback and on the host's own address, and
each test shows that without the cage they are.
"""

import json
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from recorder.agent.blocked_connections import BlockedConnection
from recorder.agent.isolation import (
    ENTER_NAMESPACES,
    AgentIsolation,
    MountedCopy,
    find_missing_capabilities,
)
from recorder.agent.process import AgentExit, AgentStreams, run_agent_process
from recorder.event_loop import run_event_loop as on_loop
from tests.integration.recorder.test_recorder_process import gone, number

ENV = {"PATH": os.environ["PATH"], "LANG": "C.UTF-8"}
PORT = 8123
WHO = ("--reuid=65534", "--regid=65534", "--clear-groups")
READS = ("--inh-caps=+dac_read_search", "--ambient-caps=+dac_read_search")
NOBODY = ("setpriv", *WHO, *READS)
"""Another user, who may look into the interpreter's folder, wherever that is."""
UNPRIVILEGED = ("setpriv", "--bounding-set=-sys_admin", "--inh-caps=-sys_admin")


def strangers() -> tuple[str, ...]:
    """Addresses of this machine that a program may try instead of the proxy."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as way:
        try:
            way.connect(("192.0.2.77", 9))
        except OSError:
            return ("127.0.0.2",)
        return ("127.0.0.2", way.getsockname()[0])


@contextmanager
def tcp(address: str) -> Iterator[tuple[int, list[bytes]]]:
    """A server that says `reached` and keeps what it was told."""
    heard: list[bytes] = []
    with socket.create_server((address, 0)) as server:

        def serve() -> None:
            while True:
                try:
                    there, _ = server.accept()
                except OSError:
                    return
                with there:
                    there.settimeout(5)
                    heard.append(there.recv(100))
                    there.sendall(b"reached")

        thread = threading.Thread(target=serve)
        thread.start()
        try:
            yield server.getsockname()[1], heard
        finally:
            server.shutdown(socket.SHUT_RDWR)
            thread.join(timeout=10)


async def alone(
    script: str, *arguments: str, cage: bool = True, room: MountedCopy | None = None, out: Path
) -> tuple[AgentExit, dict[BlockedConnection, int]]:
    """Run a script in a network of its own, and with `cage` False in ours."""
    command = [sys.executable, "-c", script, *arguments]
    with out.open("wb") as file:
        if not cage:
            return await run_agent_process(
                command, env=ENV, streams=AgentStreams(stdout=file, stderr=file), grace=0.3
            ), {}
        async with AgentIsolation(ports=(PORT,), room=room) as held:
            ended = await run_agent_process(
                command,
                env=ENV,
                streams=AgentStreams(stdout=file, stderr=file),
                grace=0.3,
                cage=held,
            )
        return ended, dict(held.attempts)


TALKS = """
import socket, sys
address, port = sys.argv[1], int(sys.argv[2])
try:
    with socket.create_connection((address, port), 5) as there:
        there.sendall(b"hello")
        print(there.recv(100).decode())
except OSError as error:
    print(type(error).__name__)
"""


@pytest.mark.parametrize("address", strangers())
def test_a_raw_connection_past_the_proxy_reaches_nobody_and_is_reported(
    address: str, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    with tcp(address) as (port, heard):
        _, attempts = on_loop(alone(TALKS, address, str(port), out=out))
        assert out.read_text().strip() in ("ConnectionRefusedError", "OSError")
        assert attempts == {BlockedConnection(address, port, "tcp"): 1}
        assert heard == []

        on_loop(alone(TALKS, address, str(port), cage=False, out=out))
        assert out.read_text() == "reached\n"
        assert heard == [b"hello"]


SENDS = """
import socket, sys
address, port = sys.argv[1], int(sys.argv[2])
with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as way:
    way.settimeout(5)
    try:
        way.connect((address, port))
        way.send(b"hello")
        print(way.recv(100).decode())
    except OSError as error:
        print(type(error).__name__)
"""


@pytest.mark.parametrize("address", strangers())
def test_a_datagram_past_the_proxy_reaches_nobody_and_is_reported(
    address: str, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as server:
        server.bind((address, 0))
        server.settimeout(10)
        port = server.getsockname()[1]
        _, attempts = on_loop(alone(SENDS, address, str(port), out=out))
        assert out.read_text().strip() in ("ConnectionRefusedError", "OSError")
        assert attempts == {BlockedConnection(address, port, "udp"): 1}

        answering = threading.Thread(target=lambda: server.sendto(*_echo(server)))
        answering.start()
        on_loop(alone(SENDS, address, str(port), cage=False, out=out))
        answering.join(timeout=10)
        assert out.read_text() == "hello\n"


def _echo(server: socket.socket) -> tuple[bytes, tuple[str, int]]:
    said, (address, port) = server.recvfrom(100)
    return said, (address, port)


def test_a_name_is_not_resolved_and_is_reported_with_whom_it_was_asked_of(tmp_path: Path) -> None:
    script = "import socket\ntry: print(socket.getaddrinfo('api.example.com', 443))\n"
    script += "except OSError as error: print(type(error).__name__)"
    _, attempts = on_loop(alone(script, out=tmp_path / "out"))
    assert (tmp_path / "out").read_text() == "gaierror\n"
    asked = {attempt.name for attempt in attempts}
    assert "api.example.com" in asked
    assert {attempt.port for attempt in attempts} == {53}


def test_a_stranger_over_ipv6_is_reported_and_does_not_keep_the_agent_waiting(tmp_path) -> None:
    _, attempts = on_loop(alone(TALKS, "2001:db8:1::9", "443", out=tmp_path / "out"))
    assert (tmp_path / "out").read_text() == "OSError\n"
    assert attempts == {BlockedConnection("2001:db8:1::9", 443, "tcp"): 1}


LOCAL = """
import socket, sys, threading, time
port = int(sys.argv[1])
try:
    socket.create_connection(("127.0.0.1", port), 5)
except ConnectionRefusedError:
    print("not yet")
with socket.create_server(("127.0.0.1", port)) as server:
    threading.Thread(target=lambda: server.accept()[0].sendall(b"a tool of mine")).start()
    with socket.create_connection(("127.0.0.1", port), 5) as there:
        print(there.recv(100).decode())
"""


def test_a_tool_of_the_agents_own_on_loopback_works_and_is_no_attempt(tmp_path: Path) -> None:
    _, attempts = on_loop(alone(LOCAL, "9321", out=tmp_path / "out"))
    assert (tmp_path / "out").read_text() == "not yet\na tool of mine\n"
    assert attempts == {}


def test_we_are_reached_at_the_port_that_was_agreed(tmp_path: Path) -> None:
    out = tmp_path / "out"

    async def main() -> None:
        served: list[socket.socket] = []

        async def serve(listening: socket.socket) -> None:
            served.append(listening)
            listening.settimeout(10)
            thread = threading.Thread(target=_answer, args=(listening,))
            thread.start()

        command = [sys.executable, "-c", TALKS, "127.0.0.1", str(PORT)]
        async with AgentIsolation(ports=(PORT,), serve=serve) as held:
            with out.open("wb") as file:
                await run_agent_process(
                    command, env=ENV, streams=AgentStreams(stdout=file), cage=held
                )
        assert held.attempts == {}
        served[0].close()

    on_loop(main())
    assert out.read_text() == "it is us\n"


def _answer(listening: socket.socket) -> None:
    there, _ = listening.accept()
    with there:
        there.recv(100)
        there.sendall(b"it is us")


def folders(tmp_path: Path) -> MountedCopy:
    path, copy = tmp_path / "folder", tmp_path / "copy"
    for folder, text in ((path, "now"), (copy, "then")):
        folder.mkdir()
        (folder / "file").write_text(text)
    for name in ("modules", "odd,name"):
        (path / name).mkdir()
        (path / name / "lib").write_text("library")
        (copy / name).mkdir()
    (path / ".env").write_text("KEY=1")
    (copy / ".env").touch()
    through = (("modules", tmp_path / "layer"), ("odd,name", tmp_path / "other"), (".env", None))
    return MountedCopy(path=path, copy=copy, through=through)


INSIDE = """
import pathlib
here = pathlib.Path(".")
print(here.absolute(), *[(here / n).read_text() for n in ("file", "modules/lib", ".env")])
(here / "file").write_text("changed")
(here / "modules" / "lib").write_text("changed")
(here / "modules" / "new").write_text("new")
for name in (".env", "odd,name/lib"):
    try:
        (here / name).write_text("changed")
    except OSError as error:
        print(error.strerror)
"""


def test_a_folder_shows_its_copy_and_is_itself_untouched(tmp_path: Path) -> None:
    room = folders(tmp_path)
    ended, _ = on_loop(alone(INSIDE, room=room, out=tmp_path / "out"))
    said = (tmp_path / "out").read_text()
    assert said == f"{room.path} then library KEY=1\n" + "Read-only file system\n" * 2
    assert ended.code == 0
    assert {p.name: p.read_text() for p in room.path.rglob("*") if p.is_file()} == {
        "file": "now",
        "lib": "library",
        ".env": "KEY=1",
    }
    assert (room.copy / "file").read_text() == "changed"
    assert str(tmp_path) not in Path("/proc/mounts").read_text()


def test_who_is_not_root_is_shut_in_just_the_same_and_stays_who_they_are(tmp_path: Path) -> None:
    room, root = folders(tmp_path), os.getuid() == 0
    if root:
        for path in (*tmp_path.rglob("*"), tmp_path):
            os.chown(path, 65534, 65534)
        for path in tmp_path.parents[:3]:
            path.chmod(path.stat().st_mode | 0o005)
    order = json.dumps(room.to_namespace_order() | {"ports": [PORT]})
    script = "id -u; cat file modules/lib; echo x > modules/new; ls /sys/class/net > /dev/null;"
    script += "cat /proc/net/dev | wc -l; umount . 2>/dev/null || echo kept"
    done = subprocess.run(
        [*(NOBODY if root else ()), *ENTER_NAMESPACES, order, "/bin/sh", "sh", "-c", script],
        capture_output=True,
        text=True,
        timeout=30,
    )
    assert done.stderr == ""
    assert done.stdout == f"{65534 if root else os.getuid()}\nthenlibrary3\nkept\n"
    assert not (room.path / "modules" / "new").exists()


def test_root_without_the_power_to_mount_is_shut_in_too(tmp_path: Path) -> None:
    room = folders(tmp_path)
    order = json.dumps(room.to_namespace_order() | {"ports": [PORT]})
    done = subprocess.run(
        [
            *(UNPRIVILEGED if os.getuid() == 0 else ()),
            *ENTER_NAMESPACES,
            order,
            "/bin/sh",
            "sh",
            "-c",
            "cat file",
        ],
        capture_output=True,
        text=True,
        timeout=30,
    )
    assert (done.stdout, done.stderr) == ("then", "")


def test_a_wall_that_cannot_be_built_is_said_and_nothing_is_run(tmp_path: Path) -> None:
    room = MountedCopy(path=tmp_path, copy=tmp_path / "nowhere")
    with pytest.raises(ChildProcessError, match="No such file or directory"):
        on_loop(alone("print('ran')", room=room, out=tmp_path / "out"))
    assert (tmp_path / "out").read_text() == ""


def test_this_machine_lacks_nothing() -> None:
    assert (find_missing_capabilities().alone, find_missing_capabilities().room) == (None, None)


def test_our_own_kill_leaves_no_process_and_no_mount(tmp_path: Path) -> None:
    room, pid = folders(tmp_path), tmp_path / "pid"
    code = (
        "import asyncio, os, sys; from pathlib import Path;"
        "from recorder.agent.isolation import AgentIsolation, MountedCopy;"
        "from recorder.agent.process import run_agent_process as run\n"
        "async def main():\n"
        "    room = MountedCopy(path=Path(sys.argv[1]), copy=Path(sys.argv[2]))\n"
        "    async with AgentIsolation(ports=(8123,), room=room) as cage:\n"
        "        script = f'echo $$ > {sys.argv[3]}; sleep 1000'\n"
        "        await run(['sh', '-c', script], env=dict(os.environ), grace=0.3, cage=cage)\n"
        "asyncio.run(main())"
    )
    root = Path(__file__).resolve().parents[3]
    command = [sys.executable, "-c", code, str(room.path), str(room.copy), str(pid)]
    with subprocess.Popen(command, cwd=root) as process:
        agent = number(pid)
        assert "copy" in Path(f"/proc/{agent}/mountinfo").read_text()
        process.send_signal(signal.SIGKILL)
    gone(agent)
    assert str(tmp_path) not in Path("/proc/mounts").read_text()
