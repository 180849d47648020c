"""The outer proxy: the one that the user's own settings name, which is our way out.

The agent is told of our proxy only; what its user's HTTPS_PROXY, HTTP_PROXY, ALL_PROXY and
NO_PROXY say is for us. Programs read them differently; this is what curl, Go and Python's
requests have in common, where they do: lower case comes before upper case, each scheme has its
own proxy with ALL_PROXY for the rest, a name in NO_PROXY stands for its subdomains too, with or
without a dot in front, a port makes an entry narrower, networks are written as CIDR and are
compared with addresses only, `*` means everything. Loopback is never led to another machine.
"""

import asyncio
import errno
import ssl
from base64 import b64encode
from collections.abc import Mapping
from dataclasses import dataclass, field
from ipaddress import ip_address, ip_network
from urllib.parse import unquote, urlsplit

from traces.model import Chunk, Headers, Response, header

PORTS = {"http": 80, "https": 443}
ANSWERS_WITHIN = 60.0
"""Seconds that an outer proxy gets to dial and to answer a CONNECT."""

_HEAD, _BODY = 1 << 16, 1 << 16
_HOP = frozenset({"connection", "keep-alive", "proxy-connection", "transfer-encoding"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Outer:
    """An HTTP proxy, reached in the clear or over TLS."""

    scheme: str
    host: str
    port: int
    login: str | None = field(default=None, repr=False)
    """The value of `Proxy-Authorization`; no tape, no agent and no message may hold it."""

    @property
    def name(self) -> str:
        """Its URL without the login."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self.scheme}://{host}:{self.port}"


@dataclass(frozen=True, slots=True, kw_only=True)
class WayOut:
    """Which proxy leads to which server."""

    proxies: Mapping[str, Outer] = field(default_factory=dict)
    """By the scheme of the server, `http` or `https`."""
    direct: tuple[str, ...] = ()
    """The entries of NO_PROXY."""

    def proxy(self, scheme: str, host: str, port: int) -> Outer | None:
        """The proxy for a server; None where it is dialled directly."""
        outer = self.proxies.get(scheme)
        if outer is None or _loopback(host):
            return None
        return None if any(_matches(each, host, port) for each in self.direct) else outer


class Refused(ConnectionRefusedError):
    """The outer proxy did not want to lead us to a server; `answer` is what it said."""

    def __init__(self, outer: Outer, answer: Response) -> None:
        said = f"the proxy {outer.name} said {answer.status} {answer.reason}"
        super().__init__(errno.ECONNREFUSED, said)
        self.outer, self.answer = outer, answer


def way_out(base: Mapping[str, str]) -> WayOut:
    """The way out that an environment names; ValueError for a proxy that cannot be used."""
    proxies = {}
    for scheme in PORTS:
        for name in (f"{scheme}_proxy", f"{scheme}_proxy".upper(), "all_proxy", "ALL_PROXY"):
            if base.get(name):
                proxies[scheme] = _outer(name, base[name])
                break
    named = base.get("no_proxy") or base.get("NO_PROXY") or ""
    return WayOut(proxies=proxies, direct=tuple(named.replace(",", " ").split()))


def _outer(name: str, url: str) -> Outer:
    parts = urlsplit(url if "://" in url else f"http://{url}")
    try:
        port = parts.port
    except ValueError:
        port = -1
    if parts.scheme not in PORTS or not parts.hostname or port == -1:
        raise ValueError(
            f"{name} names no proxy that can be used: it must be http://HOST:PORT or "
            f"https://HOST:PORT, with USER:PASSWORD@ where a login is needed"
        )
    login = None
    if parts.username is not None:
        said = f"{unquote(parts.username)}:{unquote(parts.password or '')}".encode()
        login = f"Basic {b64encode(said).decode()}"
    return Outer(
        scheme=parts.scheme,
        host=parts.hostname,
        port=port or PORTS[parts.scheme],
        login=login,
    )


def _loopback(host: str) -> bool:
    name = host.rstrip(".").lower()
    if name == "localhost" or name.endswith(".localhost"):
        return True
    try:
        return ip_address(name).is_loopback
    except ValueError:
        return False


def _matches(entry: str, host: str, port: int) -> bool:
    """Whether an entry of NO_PROXY speaks of a server."""
    if entry == "*":
        return True
    host = host.rstrip(".").lower()
    try:
        return ip_address(host) in ip_network(entry.strip("[]"), strict=False)
    except ValueError:
        pass  # one of them is a name, or the entry has a port
    name, colon, number = entry.rpartition(":")
    if colon and number.isdecimal():
        return int(number) == port and _matches(name, host, port)
    name = entry.lower().removeprefix("*").removeprefix(".").rstrip(".")
    return bool(name) and (host == name or host.endswith(f".{name}"))


async def reach(
    outer: Outer, host: str, port: int, trust: ssl.SSLContext, *, tunnel: bool
) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """A connection to a server by way of the proxy, or with `tunnel` False to the proxy itself.

    OSError where there is none; Refused where the proxy said why.
    """
    try:
        async with asyncio.timeout(ANSWERS_WITHIN):
            reader, writer = await asyncio.open_connection(
                outer.host, outer.port, ssl=trust if outer.scheme == "https" else None
            )
            if tunnel:
                try:
                    await _connect(outer, host, port, reader, writer)
                except BaseException:
                    writer.transport.abort()
                    raise
    except TimeoutError:
        said = f"the proxy {outer.name} led nowhere within {ANSWERS_WITHIN:g} s"
        raise TimeoutError(errno.ETIMEDOUT, said) from None
    except Refused:
        raise
    except OSError as error:
        error.strerror = f"{error.strerror or error} (the proxy {outer.name})"
        raise
    return reader, writer


async def _connect(
    outer: Outer, host: str, port: int, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
) -> None:
    authority = f"[{host}]:{port}" if ":" in host else f"{host.encode('idna').decode()}:{port}"
    login = f"Proxy-Authorization: {outer.login}\r\n" if outer.login else ""
    asked = f"CONNECT {authority} HTTP/1.1\r\nHost: {authority}\r\n{login}\r\n"
    writer.write(asked.encode("latin-1"))
    try:
        head = await reader.readuntil(b"\r\n\r\n")
        answer = _answer(head)
        if 200 <= answer.status < 300:
            return
        length = int(header(answer.headers, "content-length") or 0)
        body = await reader.readexactly(min(length, _BODY))
    except (asyncio.IncompleteReadError, asyncio.LimitOverrunError, ValueError):
        raise ConnectionResetError("no whole answer to CONNECT") from None
    raise Refused(outer, _whole(answer, body))


def _answer(head: bytes) -> Response:
    """The head of an answer; ValueError where it is none."""
    first, *lines = head.decode("latin-1").split("\r\n")
    version, status, *reason = first.split(" ", 2)
    if not version.startswith("HTTP/1"):
        raise ValueError("no answer of HTTP/1")
    pairs = (line.partition(":") for line in lines if line)
    headers = tuple((name, value.strip()) for name, _, value in pairs)
    return Response(status=int(status), reason="".join(reason), headers=headers)


def _whole(answer: Response, body: bytes) -> Response:
    kept: Headers = tuple(
        (name, value)
        for name, value in answer.headers
        if name.lower() not in _HOP and name.lower() != "content-length"
    )
    headers = (*kept, ("Content-Length", str(len(body))))
    chunks = (Chunk(at=0.0, data=body),) if body else ()
    return Response(status=answer.status, reason=answer.reason, headers=headers, chunks=chunks)


def hint(outer: Outer, wanted: str | None) -> str:
    """What became of the login, and what to do; `wanted` is its `Proxy-Authenticate`."""
    where = outer.name.replace("://", "://USER:PASSWORD@", 1)
    said = f"the proxy {outer.name} "
    said += "did not take the login it was given" if outer.login else "wants a login"
    if wanted and not wanted.lower().startswith("basic"):
        kind = wanted.split(maxsplit=1)[0]
        return f"{said} by {kind}, which is not spoken here: name a helper that speaks it instead"
    return f"{said} (407): say HTTPS_PROXY={where} and the like, special characters as %XX"
