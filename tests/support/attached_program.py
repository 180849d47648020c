"""Programs that record themselves with `stumble_attach`, and a server for them."""

import gzip
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

ATTACH = Path(__file__).resolve().parents[2] / "attach"
# The intake gets no PYTHONPATH of the program, which a checkout that is not installed needs.
STUMBLE = f"env PYTHONPATH={os.environ.get('PYTHONPATH', '')} {sys.executable} -P -m stumble"


class EchoHandler(BaseHTTPRequestHandler):
    """Answers with the body of the request; a path may ask for gzip, a status, or silence."""

    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("content-length") or 0))
        if self.path == "/silence":
            self.close_connection = True
            return
        is_packed = self.path == "/gzip"
        answer = gzip.compress(body) if is_packed else body
        self.send_response(429 if self.path == "/busy" else 200)
        self.send_header("Content-Type", self.headers.get("content-type") or "application/json")
        self.send_header("Content-Length", str(len(answer)))
        if coding := "gzip" if is_packed else self.headers.get("content-encoding"):
            self.send_header("Content-Encoding", coding)
        self.end_headers()
        self.wfile.write(answer)

    do_GET = do_POST

    def log_message(self, format: str, *args: object) -> None:
        """Log nothing."""


@contextmanager
def serve_echo() -> Iterator[str]:
    """Serve echoes on loopback; yield the URL."""
    with ThreadingHTTPServer(("127.0.0.1", 0), EchoHandler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()


def run_attached(folder: Path, program: str, *arguments: str, **env: str) -> tuple[int, str]:
    """Run a program that imports none of `stumble`; return its exit code and its output."""
    (folder / "program.py").write_text(program)
    ran = subprocess.run(
        [sys.executable, "-P", "program.py", *arguments],
        cwd=folder,
        env={
            "PATH": os.environ["PATH"],
            "HOME": str(folder),
            "PYTHONPATH": str(ATTACH),
            "STUMBLE_COMMAND": STUMBLE,
        }
        | env,
        capture_output=True,
        text=True,
        timeout=120,
    )
    return ran.returncode, ran.stdout + ran.stderr
