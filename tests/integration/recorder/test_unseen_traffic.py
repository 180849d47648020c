"""What the watch of a recording sees of processes, connections and servers past the recorder."""

import asyncio
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from recorder.agent.process_table import list_descendants, read_command
from recorder.agent.tcp_table import find_listener, read_tcp_table
from recorder.agent.unseen_traffic import UnseenTrafficWatch
from stumble.runs.unseen_traffic import (
    describe_connections,
    describe_earlier_servers,
    describe_unteed_servers,
)
from traces.model import Request

CONNECT = "import socket, sys; s = socket.create_connection(('127.0.0.1', {})); sys.stdin.read()"


@pytest.fixture
def listener() -> Iterator[socket.socket]:
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server


@contextmanager
def child(*command: str) -> Iterator[subprocess.Popen[bytes]]:
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        try:
            yield process
        finally:
            process.kill()


def get_port(server: socket.socket) -> int:
    port: int = server.getsockname()[1]
    return port


def test_a_listener_is_known_with_its_process(listener: socket.socket) -> None:
    found = find_listener(get_port(listener))
    assert found is not None
    assert (found.pid, found.command) == (os.getpid(), read_command(os.getpid()))
    with socket.create_server(("::1", 0), family=socket.AF_INET6) as other:
        assert find_listener(get_port(other)) is not None


def test_a_connection_past_the_recorder_is_named_with_who_serves_it(
    listener: socket.socket,
) -> None:
    port = get_port(listener)
    watch = UnseenTrafficWatch(lambda: False)
    ours = UnseenTrafficWatch(lambda: False, (port,))
    with child(sys.executable, "-c", CONNECT.format(port)):
        accepted, _ = listener.accept()
        with accepted:
            watch.look()
            ours.look()
    assert [(each.address, each.port) for each in watch.connections] == [("127.0.0.1", port)]
    assert ours.connections == {}
    (line,) = describe_connections(watch.connections)
    assert f"127.0.0.1:{port} tcp, served by " in line
    assert f"--host model.test=127.0.0.1:{port}" in line
    assert f"process {os.getpid()}" in line


def test_connections_within_a_run_are_none_past_the_recorder() -> None:
    script = (
        "import socket, sys, threading; s = socket.create_server(('127.0.0.1', 0));"
        "c = socket.create_connection(s.getsockname()); a = s.accept(); print('up', flush=True);"
        "sys.stdin.read()"
    )
    watch = UnseenTrafficWatch(lambda: False)
    with child(sys.executable, "-c", script) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"up\n"
        watch.look()
    assert watch.connections == {}


def test_nothing_of_connections_is_kept_once_model_traffic_came(listener: socket.socket) -> None:
    watch = UnseenTrafficWatch(lambda: True)
    with child(sys.executable, "-c", CONNECT.format(get_port(listener))):
        accepted, _ = listener.accept()
        with accepted:
            watch.look()
    assert watch.connections == {}


@pytest.mark.parametrize(("text", "is_seen"), [("import mcp\n", True), ("import json\n", False)])
def test_a_server_on_pipes_that_names_mcp_is_seen(tmp_path: Path, text: str, is_seen: bool) -> None:
    script = tmp_path / "server.py"
    script.write_text(f"if False:\n    {text}print('up', flush=True)\ninput()\n")
    watch = UnseenTrafficWatch(lambda: True)
    with child(sys.executable, str(script)) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"up\n"
        assert process.pid in list_descendants(os.getpid())
        watch.look()
        watch.look()
    command = (sys.executable, str(script))
    assert watch.servers == ({command: 1} if is_seen else {})
    (line,) = describe_unteed_servers([command])
    assert line.endswith(f"`stumble mcp -- {sys.executable} {script}`")


def test_an_earlier_server_of_the_agents_program_is_named(tmp_path: Path) -> None:
    script = tmp_path / "cline"
    script.write_text(
        "import socket, sys; s = socket.create_server(('127.0.0.1', 0));"
        "print(s.getsockname()[1], flush=True); sys.stdin.read()"
    )
    with child(sys.executable, str(script), "--hub") as hub:
        assert hub.stdout is not None
        port = int(hub.stdout.readline())
        request = Request(method="GET", url=f"http://127.0.0.1:{port}/status")
        (line,) = describe_earlier_servers([request, request])
        assert line.startswith(f"127.0.0.1:{port} is served by {sys.executable} {script} --hub")
        assert f"kill {hub.pid}" in line
        assert list(describe_earlier_servers([request], ("cline", "-p", "x"))) == [line]
        assert list(describe_earlier_servers([request], ("node", "other.js"))) == []
    assert list(describe_earlier_servers([request])) == []


def test_the_watch_ends_with_its_block() -> None:
    async def run() -> None:
        watch = UnseenTrafficWatch(lambda: True)
        async with watch.look_around(()):
            await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert len(asyncio.all_tasks()) == 1

    asyncio.run(run())


def test_the_table_of_sockets_is_the_kernels(listener: socket.socket) -> None:
    port = get_port(listener)
    with socket.create_connection(("127.0.0.1", port)) as client:
        mine = [each for each in read_tcp_table() if each.peer_port == port]
        assert [(str(each.peer), each.port) for each in mine] == [
            ("127.0.0.1", client.getsockname()[1])
        ]
