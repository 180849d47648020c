"""A stream that is open when the agent ends is open in its replay: no end comes before."""

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

AGENT = """
import os, threading, time, urllib.request
base, ended = os.environ["BASE"], threading.Event()
stream = urllib.request.urlopen(base + "/events")
def read():
    for line in stream:
        print(line.decode().strip(), flush=True)
    ended.set()
threading.Thread(target=read, daemon=True).start()
time.sleep(0.3)
print(urllib.request.urlopen(base + "/tool", b"x").read().decode())
print("ended before", ended.wait(0.7), flush=True)
os._exit(0)
"""


class Streaming(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    kind = "application/x-ndjson"
    over = threading.Event()

    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("content-type", self.kind)
        self.send_header("transfer-encoding", "chunked")
        self.end_headers()
        for line in (b"one\n", b"two\n"):
            self.wfile.write(b"4\r\n" + line + b"\r\n")
            self.wfile.flush()
            time.sleep(0.05)
        self.over.wait(60)

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["content-length"]))
        self.send_response(200)
        self.send_header("content-length", "4")
        self.end_headers()
        self.wfile.write(b"done")

    def log_message(self, *_: object) -> None:
        """Log nothing."""


@contextmanager
def streaming(kind: str) -> Iterator[str]:
    class Handler(Streaming):
        over = threading.Event()

    Handler.kind = kind
    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        server.daemon_threads = True
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            Handler.over.set()
            server.shutdown()
            thread.join()


def stumble(folder: Path, base: str, *words: str) -> subprocess.CompletedProcess[str]:
    own = {"HOME": str(folder), "STUMBLE_STORE": str(folder / ".stumble"), "BASE": base}
    env = {k: v for k, v in os.environ.items() if not k.startswith("STUMBLE")} | own
    command = [sys.executable, "-m", "stumble", *words]
    return subprocess.run(
        command, capture_output=True, text=True, cwd=folder, env=env, timeout=120, check=False
    )


@pytest.mark.gate
@pytest.mark.parametrize("kind", ["application/x-ndjson", "text/event-stream", "text/plain"])
def test_a_stream_open_at_the_end_stays_open(tmp_path: Path, kind: str) -> None:
    (tmp_path / "agent.py").write_text(AGENT)
    with streaming(kind) as base:
        command = ("record", "-o", "a.tape", "--times", "1", "--", sys.executable, "agent.py")
        recorded = stumble(tmp_path, base, *command)
        assert recorded.returncode == 0, recorded.stderr
        assert "ended before False" in recorded.stdout
        replayed = stumble(tmp_path, base, "replay", "--times", "2", "a.tape")
    assert replayed.returncode == 0, replayed.stdout + replayed.stderr
    assert replayed.stdout.count(recorded.stdout) == 2
