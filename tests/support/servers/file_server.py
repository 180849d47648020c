"""Files that agents' shells download: over TLS, and a git repository as plain files."""

import os
import ssl
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import override

from scenarios.practice.tasks import network

WHO = {
    name: value
    for role in ("AUTHOR", "COMMITTER")
    for name, value in {
        f"GIT_{role}_NAME": "Ada",
        f"GIT_{role}_EMAIL": "ada@files.practice",
        f"GIT_{role}_DATE": "2026-03-16T09:00:00Z",
    }.items()
}


class _Files(SimpleHTTPRequestHandler):
    @override
    def log_message(self, format: str, *args: object) -> None:
        """Log nothing: the requests are on the tape."""


@contextmanager
def file_server(folder: Path, pem: Path) -> Iterator[str]:
    """Serve the files of the task `work-fetch` for the block; yield `HOST=ADDRESS`."""
    _lay_out(folder)
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(_Files, directory=str(folder)))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(pem)
    # The handshake is left to the thread of the connection.
    server.socket = context.wrap_socket(
        server.socket, server_side=True, do_handshake_on_connect=False
    )
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    try:
        yield f"{network.FILES_HOST}=127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def _lay_out(folder: Path) -> None:
    east = folder / "east"
    east.mkdir(parents=True)
    for name, text in network.SERVED_FILES.items():
        ((east if name == "east.txt" else folder) / name).write_text(text)
    git(east, "init", "-q", "-b", "main")
    git(east, "add", "east.txt")
    git(east, "commit", "-q", "-m", "what the east has")
    git(folder, "clone", "-q", "--bare", "east", "east.git")
    git(folder / "east.git", "update-server-info")


def git(folder: Path, *words: str) -> None:
    """Run git with a neutral identity, ignoring the user's settings."""
    env = {**os.environ, **WHO, "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}
    subprocess.run(["git", *words], cwd=folder, env=env, check=True, timeout=60)
