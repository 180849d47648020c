"""An agent of bare sockets: python raw_agent.py ASKED HEARD, both JSON.

ASKED is a list of `[name, url, method, size, end]`, HEARD gets `{name: [bytes, how]}`: the bytes as
latin-1, and how they ended. Where the end is to be `stays`, one more answer is asked for after
`size` bytes on the same connection; it stayed if that comes next.
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
"""Seconds after which nothing more is to come."""


def dialled(url: str) -> tuple[socket.socket, str]:
    """A connection by which a URL can be asked for, and what to put before a path there."""
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
    """What comes, until it is so much, or the last answer, or the end."""
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
