"""An agent on raw sockets: python raw_socket_agent.py ASKED HEARD, both JSON.

ASKED is a list of `[name, url, method, size, end]`; HEARD is written as `{name: [bytes, how]}`: the
received bytes as latin-1, and how the connection ended. If `end` is `stays`, one more request is
sent after `size` bytes on the same connection; it stayed open if its answer follows.
"""

import json
import os
import socket
import ssl
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from urllib.parse import urlsplit

LAST = b"the end"
WAIT = 30.0
SILENCE = 1.0
"""Seconds without data after which no more is expected."""


def dialled(url: str) -> tuple[socket.socket, str]:
    """Return a connection for requesting a URL, and the prefix of a path on it."""
    parts = urlsplit(url)
    proxy = os.environ.get(f"{parts.scheme}_proxy")
    to = urlsplit(proxy) if proxy else parts
    line = socket.create_connection((to.hostname, to.port), timeout=WAIT)
    line.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    if parts.scheme == "http":
        return line, f"http://{parts.netloc}" if proxy else ""
    if proxy:
        line.sendall(f"CONNECT {parts.netloc} HTTP/1.1\r\nHost: {parts.netloc}\r\n\r\n".encode())
        said = b""
        while not said.endswith(b"\r\n\r\n"):
            said += line.recv(1)
    return ssl.create_default_context().wrap_socket(line, server_hostname=parts.hostname), ""


def ask(asked: tuple[str, str, str, int, str]) -> tuple[str, tuple[str, str]]:
    name, url, method, size, end = asked
    line, origin = dialled(url)
    host, path = urlsplit(url).netloc, urlsplit(url).path
    with line:
        line.sendall(f"{method} {origin}{path} HTTP/1.1\r\nHost: {host}\r\n\r\n".encode())
        got, how = heard(line, size)
        if how == "more":
            line.settimeout(SILENCE if end == "silence" else WAIT)
            if end == "stays":
                line.sendall(f"GET {origin}/last HTTP/1.1\r\nHost: {host}\r\n\r\n".encode())
            more, how = heard(line, 1 << 30)
            if how == "last":
                more, how = more[: more.rindex(b"HTTP/1.1")], "stays"
            got += more
    return name, (got.decode("latin-1"), how)


def heard(line: socket.socket, size: int) -> tuple[bytes, str]:
    """Read until this size, the last answer, or the end of the connection."""
    got = b""
    while len(got) < size:
        if got.endswith(LAST):
            return got, "last"
        try:
            piece = line.recv(min(size - len(got), 1 << 16))
        except TimeoutError:
            return got, "silence"
        except ssl.SSLEOFError:
            return got, "end"
        except ConnectionError:
            return got, "reset"
        if not piece:
            return got, "end"
        got += piece
    return got, "more"


if __name__ == "__main__":
    asks, hears = map(Path, sys.argv[1:])
    with ThreadPoolExecutor(16) as pool:
        hears.write_text(json.dumps(dict(pool.map(ask, json.loads(asks.read_text())))))
