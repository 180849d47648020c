"""A corporate proxy as a separate program: mitmproxy with a login, intercepting TLS.

As a script of mitmdump this file connects the hosts in `hosts.json` to their actual addresses, and
writes each permitted request and CONNECT as a line of `passed.log`, both in the folder `COMPANY`.
"""

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from mitmproxy import http
from mitmproxy.proxy.server_hooks import ServerConnectionHookData

USER, PASSWORD = "jane", "p@ss/w0rd-3141"
LOGIN = "jane:p%40ss%2Fw0rd-3141"


@dataclass(frozen=True, slots=True, kw_only=True)
class Company:
    """The proxy, listening."""

    port: int
    certificate: Path
    folder: Path

    def url(self, login: str = LOGIN, scheme: str = "http") -> str:
        return f"{scheme}://{login}@127.0.0.1:{self.port}"

    def leads(self, hosts: Mapping[str, tuple[str, int]]) -> None:
        """Connect these hosts to their actual addresses, and clear the log."""
        (self.folder / "hosts.json").write_text(json.dumps(hosts))
        (self.folder / "passed.log").write_text("")

    def passed(self) -> list[str]:
        """Return the log as `METHOD host path`, marking requests with a credential for the
        proxy.
        """
        return (self.folder / "passed.log").read_text().splitlines()


@contextmanager
def company(folder: Path, server_ca: Path) -> Iterator[Company]:
    """Run the proxy for the block; `server_ca` signs the servers that it trusts."""
    options = {
        "confdir": str(folder),
        "listen_host": "127.0.0.1",
        "listen_port": "0",
        "proxyauth": f"{USER}:{PASSWORD}",
        "connection_strategy": "lazy",
        "ssl_verify_upstream_trusted_ca": str(server_ca),
    }
    words = [word for key, value in options.items() for word in ("--set", f"{key}={value}")]
    process = subprocess.Popen(
        [Path(sys.executable).with_name("mitmdump"), *words, "-s", __file__],
        env=os.environ | {"COMPANY": str(folder)},
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stdout is not None
        said = next(line for line in process.stdout if "listening at" in line)
        port = int(said.rstrip(".\n").rpartition(":")[2])
        certificate = folder / "mitmproxy-ca-cert.pem"
        yield Company(port=port, certificate=certificate, folder=folder)
    finally:
        process.kill()
        process.wait(timeout=10)
        if process.stdout is not None:
            process.stdout.close()


def requestheaders(flow: http.HTTPFlow) -> None:
    """Redirect plain requests; changing the connection's address would prevent its reuse."""
    flow.metadata["named"] = named = flow.request.host
    if flow.request.scheme == "http":
        data = flow.request.data
        data.host, data.port = _really().get(named, (data.host, data.port))


def server_connect(data: ServerConnectionHookData) -> None:
    if data.server.address:
        host, port = data.server.address[:2]
        data.server.address = _really().get(host, (host, port))


def http_connected(flow: http.HTTPFlow) -> None:
    _note(flow, flow.request.host)


def request(flow: http.HTTPFlow) -> None:
    if flow.response is None:
        _note(flow, flow.metadata["named"])


def _really() -> dict[str, tuple[str, int]]:
    hosts = json.loads((Path(os.environ["COMPANY"]) / "hosts.json").read_text())
    return {name: (host, port) for name, (host, port) in hosts.items()}


def _note(flow: http.HTTPFlow, host: str) -> None:
    given = " with a login" if "proxy-authorization" in flow.request.headers else ""
    with (Path(os.environ["COMPANY"]) / "passed.log").open("a") as log:
        print(flow.request.method, host, flow.request.path + given, file=log)
