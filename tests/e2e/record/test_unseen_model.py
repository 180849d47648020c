"""A recording without model traffic says what went past it, who has it, and the way out."""

import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

DIRECT = """
import sys, urllib.request
opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
print(opener.open(sys.argv[1], b'{"model": "m", "messages": []}').read().decode())
"""
ASKS_ITS_HUB = """
import sys, urllib.request
if sys.argv[1:] == ["--hub"]:
    import socket
    server = socket.create_server(("127.0.0.1", 0))
    print(server.getsockname()[1], flush=True)
    while True:
        end, _ = server.accept()
        end.recv(65536)
        end.sendall(b"HTTP/1.1 200 OK\\r\\nContent-Length: 2\\r\\nConnection: close\\r\\n\\r\\nup")
        end.close()
print(urllib.request.urlopen(f"http://127.0.0.1:{sys.argv[1]}/status").read().decode())
"""


class SlowModel(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["content-length"]))
        time.sleep(0.6)  # as long as a model takes
        self.send_response(200)
        self.send_header("content-length", "2")
        self.end_headers()
        self.wfile.write(b"hi")

    def log_message(self, *_: object) -> None:
        """Log nothing."""


@contextmanager
def slow_model() -> Iterator[int]:
    with ThreadingHTTPServer(("127.0.0.1", 0), SlowModel) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield server.server_port
        finally:
            server.shutdown()
            thread.join()


def stumble(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    own = {"HOME": str(folder), "STUMBLE_STORE": str(folder / ".stumble")}
    env = {k: v for k, v in os.environ.items() if not k.startswith("STUMBLE")} | own
    command = [sys.executable, "-m", "stumble", *words]
    return subprocess.run(
        command, capture_output=True, text=True, cwd=folder, env=env, timeout=120, check=False
    )


@pytest.mark.gate
def test_a_client_that_leaves_loopback_out_of_its_proxy_gets_the_way_out(tmp_path: Path) -> None:
    (tmp_path / "agent.py").write_text(DIRECT)
    with slow_model() as port:
        command = (sys.executable, "agent.py", f"http://127.0.0.1:{port}/v1/chat/completions")
        recorded = stumble(tmp_path, "record", "-o", "a.tape", "--", *command)
        assert recorded.stdout == "hi\n"
        examined = stumble(tmp_path, "doctor", "--", *command)
    for said in (recorded.stderr, examined.stdout):
        assert f"past the proxy: 127.0.0.1:{port} tcp" in said
        assert f"(process {os.getpid()})" in said
        assert f"--host model.test=127.0.0.1:{port}" in said
    assert "next: stumble doctor -- " in recorded.stderr
    assert examined.returncode == 1


@pytest.mark.gate
def test_the_agents_own_process_of_an_earlier_day_is_named(tmp_path: Path) -> None:
    (tmp_path / "agent.py").write_text(ASKS_ITS_HUB)
    hub_command = [sys.executable, "agent.py", "--hub"]
    with subprocess.Popen(hub_command, cwd=tmp_path, stdout=subprocess.PIPE, text=True) as hub:
        try:
            assert hub.stdout is not None
            port = hub.stdout.readline().strip()
            command = (sys.executable, "agent.py", port)
            recorded = stumble(tmp_path, "record", "-o", "a.tape", "--", *command)
            assert recorded.stdout == "up\n", recorded.stderr
            examined = stumble(tmp_path, "doctor", "--", *command)
        finally:
            hub.kill()
    for said in (recorded.stderr, examined.stdout):
        assert f"127.0.0.1:{port} is served by {sys.executable} agent.py --hub" in said
        assert f"stop it first (kill {hub.pid})" in said
