"""What the way out of a sandbox lets through, and what hides in no other request."""

import asyncio
import ipaddress
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sandbox.egress.allowlist import (
    INTERNAL_ADDRESS,
    NOT_LISTED,
    EgressAllowlist,
    is_internal_address,
)
from sandbox.egress.egress_proxy import EgressProxy
from tests.support.servers.docker_sandboxes import on_loop
from tests.support.servers.raw_servers import (
    Notes,
    converse,
    recording,
    says,
    serving,
)

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"


@asynccontextmanager
async def relaying(*allow: str, proxy: int | None) -> AsyncIterator[tuple[int, EgressProxy]]:
    """A relay on a port, in front of the proxy at another."""
    relay = EgressProxy(EgressAllowlist(allow), ("127.0.0.1", proxy) if proxy else None)
    with socket.create_server(("127.0.0.1", 0)) as listening:
        await relay.serve(listening)
        try:
            yield listening.getsockname()[1], relay
        finally:
            await relay.close()


async def heard(*requests: bytes, allow: tuple[str, ...] = ()) -> tuple[bytes, list[bytes]]:
    """What comes back through relay and recorder, and what a server was asked; {port} is its."""
    async with serving(says(OK)) as server, recording(Notes()) as proxy:
        host = f"localhost:{server.port}"
        async with relaying(host, *allow, proxy=proxy.port) as (port, _):
            asked = b"".join(requests).replace(b"{host}", host.encode())
            got, _ = await converse(port, asked)
        return got, server.requests


def get(target: bytes, *headers: bytes) -> bytes:
    return b"\r\n".join((b"GET " + target + b" HTTP/1.1", b"Host: x.example", *headers, b"", b""))


def test_what_is_asked_comes_as_it_was_said() -> None:
    body = b"POST http://{host}/v1?q=%C3%A4 HTTP/1.1\r\nhOST: x.example\r\nX-B: 1\r\n"
    body += b"Content-Length: 3\r\nX-A: 2\r\nConnection: close\r\n\r\nabc"
    got, asked = on_loop(heard(body))
    assert got == OK
    head, _, content = asked[0].partition(b"\r\n\r\n")
    assert content == b"abc"
    assert head.startswith(b"POST /v1?q=%C3%A4 HTTP/1.1\r\n")
    assert head.index(b"X-B: 1") < head.index(b"X-A: 2")


def test_one_connection_carries_many_requests_and_each_is_looked_at() -> None:
    async def main() -> None:
        async with serving(says(OK)) as server, recording(Notes()) as proxy:
            host = f"localhost:{server.port}"
            async with relaying(host, proxy=proxy.port) as (port, relay):
                reader, writer = await asyncio.open_connection("127.0.0.1", port)
                for _ in range(3):
                    writer.write(get(f"http://{host}/".encode()))
                    assert await reader.readexactly(len(OK)) == OK
                writer.write(get(b"http://other.example/"))
                assert (await reader.read()).startswith(b"HTTP/1.1 403 Forbidden\r\n")
                writer.close()
            assert len(server.requests) == 3
            assert relay.refused == {"other.example:80: not on the allow list": 1}

    on_loop(main())


@pytest.mark.parametrize(
    "request_",
    [
        get(b"http://other.example/"),
        get(b"http://localhost/"),  # another port
        b"CONNECT other.example:443 HTTP/1.1\r\nHost: other.example\r\n\r\n",
    ],
)
def test_who_is_not_listed_is_refused_by_name(request_: bytes) -> None:
    got, asked = on_loop(heard(request_))
    assert got.startswith(b"HTTP/1.1 403 Forbidden\r\n")
    assert got.endswith(b": not on the allow list\n")
    assert asked == []


@pytest.mark.parametrize(
    "request_",
    [
        get(b"/v1"),
        get(b"http://{host}@other.example/"),
        get(b"http://other.example\\@{host}/"),
        get(b"https://{host}/"),
        get(b"http://{host}/", b"Content-Length: 5", b"Transfer-Encoding: chunked")
        + b"0\r\n\r\n"
        + get(b"http://other.example/"),
        get(b"http://{host}/", b"Content-Length: 1", b"Content-Length: 2"),
        b"CONNECT {host}/ HTTP/1.1\r\nHost: x\r\n\r\n",
        b"\x16\x03\x01\x00\x05hello",
    ],
    ids=["origin", "user", "slash", "https", "two-lengths", "lengths", "connect", "tls"],
)
def test_what_two_could_read_in_two_ways_is_refused(request_: bytes) -> None:
    got, asked = on_loop(heard(request_))
    assert got.startswith(b"HTTP/1.1 400 Bad Request\r\n")
    assert asked == []


def test_behind_an_upgrade_nothing_goes_unseen() -> None:
    wanted = get(b"http://{host}/", b"Connection: Upgrade", b"Upgrade: websocket")
    got, asked = on_loop(heard(wanted, get(b"http://other.example/")))
    assert got.endswith(b"other.example:80: not on the allow list\n")
    assert not any(b"Upgrade: websocket" in each for each in asked)
    assert not any(b"other.example" in each for each in asked)


def test_a_tunnel_is_one_only_where_the_proxy_outside_agreed() -> None:
    async def main() -> None:
        no = b"HTTP/1.1 502 Bad Gateway\r\nContent-Length: 2\r\n\r\nno"
        async with serving(says(no)) as proxy, relaying("a.example", proxy=proxy.port) as (port, _):
            tunnel = b"CONNECT a.example:443 HTTP/1.1\r\nHost: a.example\r\n\r\n"
            assert await converse(port, tunnel + get(b"http://other.example/")) == (no, "fin")
            assert len(proxy.requests) == 1

    on_loop(main())


def test_without_a_proxy_outside_it_is_said_who_is_missing() -> None:
    async def main() -> None:
        with socket.create_server(("127.0.0.1", 0)) as unused:
            dead = unused.getsockname()[1]
        for proxy, why in (
            (dead, b"the proxy outside: "),
            (None, b"the environment names no proxy"),
        ):
            async with relaying("a.example", proxy=proxy) as (port, _):
                got, _ = await converse(port, get(b"http://a.example/"))
            assert got.startswith(b"HTTP/1.1 502 Bad Gateway\r\n")
            assert why in got

    on_loop(main())


def refusal(host: str, *entries: str, port: int = 443) -> str | None:
    return on_loop(EgressAllowlist(entries).find_refusal(host, port))


@pytest.mark.parametrize(
    "host",
    [
        "127.0.0.1",
        "localhost",
        "LOCALHOST.",
        "[::1]",
        "127.1",
        "2130706433",
        "0.0.0.0",
        "10.1.2.3",
        "172.17.0.1",
        "192.168.0.1",
        "169.254.169.254",
        "[fe80::1]",
        "[fd00::1]",
        "[::ffff:169.254.169.254]",
        "100.64.0.1",
        "224.0.0.1",
    ],
)
def test_a_pattern_opens_no_way_to_what_is_near(host: str) -> None:
    assert refusal(host, "*") == INTERNAL_ADDRESS
    assert refusal(host, host.lower().strip(".[]")) is None  # by its own name


def test_lists_know_hosts_ports_and_patterns() -> None:
    assert refusal("api.example", "api.example") is None
    assert refusal("API.example.", "api.example:443") is None
    assert refusal("api.example", "api.example:444") == NOT_LISTED
    assert refusal("a.b.invalid", "*.b.invalid") is None
    assert refusal("b.invalid", "*.b.invalid") == NOT_LISTED
    assert refusal("b.invalid.evil", "*.b.invalid") == NOT_LISTED


@given(st.ip_addresses())
def test_only_the_public_internet_is_far(
    address: ipaddress.IPv4Address | ipaddress.IPv6Address,
) -> None:
    if address.is_private or address.is_link_local or address.is_loopback:
        assert is_internal_address(str(address))
