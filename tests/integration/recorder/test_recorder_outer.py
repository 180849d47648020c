"""The user's own proxy becomes our way out: with its login, its exceptions and its CA."""

import asyncio
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

from recorder.agent.env import build_agent_env, write_ca_bundle
from recorder.event_loop import run_event_loop
from recorder.proxy.corporate_proxy import read_proxy_settings
from recorder.proxy.recording import RecordingProxy
from tests.support.servers.corporate_proxy import (
    LOGIN,
    PASSWORD,
    Company,
    company,
)
from tests.support.servers.raw_servers import (
    Notes,
    Server,
    curl,
    recording,
    reset,
    says,
    server_ca,
    server_tls,
    serving,
)

NAME = "api.example.test"
OK = b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\none"


def leads(base: Mapping[str, str], scheme: str, host: str, port: int) -> str | None:
    """The proxy by which a server is reached, or None."""
    outer = read_proxy_settings(base).find_proxy(scheme, host, port)
    return outer.public_url if outer else None


@pytest.mark.parametrize(
    ("base", "http", "https"),
    [
        ({}, None, None),
        ({"HTTPS_PROXY": ""}, None, None),
        ({"HTTP_PROXY": "http://a:1"}, "http://a:1", None),
        ({"HTTPS_PROXY": "http://a:1"}, None, "http://a:1"),
        ({"HTTPS_PROXY": "http://a:1", "https_proxy": "http://b:2"}, None, "http://b:2"),
        ({"ALL_PROXY": "https://c"}, "https://c:443", "https://c:443"),
        ({"ALL_PROXY": "http://c", "http_proxy": "d:8"}, "http://d:8", "http://c:80"),
        ({"all_proxy": "http://u:p@[::1]:3"}, "http://[::1]:3", "http://[::1]:3"),
    ],
)
def test_each_scheme_has_its_proxy(
    base: dict[str, str], http: str | None, https: str | None
) -> None:
    assert leads(base, "http", NAME, 80) == http
    assert leads(base, "https", NAME, 443) == https


@pytest.mark.parametrize(
    ("entry", "host", "port", "direct"),
    [
        ("*", NAME, 443, True),
        ("example.test", NAME, 443, True),
        (".example.test", NAME, 443, True),
        (".example.test", "example.test", 443, True),
        ("*.example.test", NAME, 443, True),
        ("API.Example.TEST", NAME, 443, True),
        ("api.example.test.", NAME, 443, True),
        ("ample.test", NAME, 443, False),
        ("other.test, example.test", NAME, 443, True),
        ("other.test example.test", NAME, 443, True),
        ("example.test:443", NAME, 443, True),
        ("example.test:8443", NAME, 443, False),
        ("10.1.2.3", "10.1.2.3", 443, True),
        ("10.0.0.0/8", "10.1.2.3", 443, True),
        ("10.0.0.0/8", "11.1.2.3", 443, False),
        ("10.1.2.3/8", "10.9.9.9", 443, True),
        ("10.1.2.3:80", "10.1.2.3", 443, False),
        ("fd00::/8", "fd12::1", 443, True),
        ("[fd12::1]:443", "fd12::1", 443, True),
        ("fd12::1", "fd12::1", 443, True),
        ("10.0.0.0/8", NAME, 443, False),
        ("", NAME, 443, False),
        (".", NAME, 443, False),
        ("", "localhost", 443, True),
        ("", "127.8.8.8", 443, True),
        ("", "::1", 443, True),
    ],
)
def test_what_no_proxy_means(entry: str, host: str, port: int, direct: bool) -> None:
    base = {"HTTPS_PROXY": "http://a:1", "NO_PROXY": entry}
    assert (leads(base, "https", host, port) is None) is direct


@pytest.mark.parametrize("url", ["socks5://u:hush@a:1", "http://", "http://u:hush@a:port"])
def test_a_proxy_that_cannot_be_used_is_named_but_not_its_login(url: str) -> None:
    with pytest.raises(ValueError, match="ALL_PROXY names no proxy that can be used") as error:
        read_proxy_settings({"ALL_PROXY": url})
    assert "hush" not in str(error.value)


def test_the_login_is_in_no_text() -> None:
    way = read_proxy_settings({"HTTPS_PROXY": f"http://{LOGIN}@a:1"})
    assert PASSWORD not in repr(way)
    assert "amFuZ" not in repr(way)


def test_no_variable_leads_an_agent_past_us_or_tells_it_the_login() -> None:
    base = {
        "npm_config_https_proxy": "http://u:hush@a:1",
        "PIP_PROXY": "http://u:hush@a:1",
        "npm_config_noproxy": "corp",
        "FTP_PROXY": "http://u:hush@a:1",
        "USE_PROXY": "yes",
    }
    env = build_agent_env(base, proxy_url="http://us", bundle=Path("/b"), node_hook=None)
    assert "hush" not in str(env)
    assert (env["npm_config_https_proxy"], env["npm_config_noproxy"]) == ("http://us", "")
    assert env["USE_PROXY"] == "yes"


@pytest.fixture(scope="module")
def theirs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Company]:
    with company(tmp_path_factory.mktemp("company"), server_ca()) as found:
        yield found


@dataclass(frozen=True)
class Site:
    """A company's proxy in front of a server."""

    server: Server
    proxy: RecordingProxy
    notes: Notes


def through(
    theirs: Company,
    tmp_path: Path,
    *,
    login: str = LOGIN,
    scheme: str = "http",
    plain: bool = False,
    trusted: bool = True,
    asks: tuple[str, ...] = (),
) -> tuple[Site, tuple[int, bytes]]:
    """Ask a server once with curl, by way of us and of the company; what came and what was seen."""

    async def main() -> tuple[Site, tuple[int, bytes]]:
        notes, tls = Notes(), None if plain else server_tls(NAME)
        async with serving(says(OK), tls=tls) as server:
            theirs.leads({NAME: ("127.0.0.1", server.port)})
            url = theirs.url(login, scheme)
            env = {"HTTPS_PROXY": url, "HTTP_PROXY": url}
            if trusted:
                env["SSL_CERT_FILE"] = str(theirs.certificate)
            trust = write_ca_bundle(server_ca(), tmp_path, env)
            async with recording(notes, way=read_proxy_settings(env), upstream_ca=trust) as proxy:
                where = f"{'http' if plain else 'https'}://{NAME}/v1"
                got = await curl(where, "-d", "hello", *asks, through=proxy)
            return Site(server, proxy, notes), got

    return run_event_loop(main())


@pytest.mark.programs
@pytest.mark.parametrize("scheme", ["http", "https"])
@pytest.mark.parametrize("plain", [False, True], ids=["tls", "plain"])
def test_a_company_that_wants_a_login_and_looks_into_tls(
    plain: bool, scheme: str, theirs: Company, tmp_path: Path
) -> None:
    site, got = through(theirs, tmp_path, plain=plain, scheme=scheme)
    assert got == (0, b"one")
    passed = [f"POST {NAME} /v1"] if plain else [f"CONNECT {NAME} ", f"POST {NAME} /v1"]
    assert theirs.passed() == passed
    (exchange,) = site.notes.over
    assert exchange.request.url == f"{'http' if plain else 'https'}://{NAME}/v1"
    assert exchange.request.body == b"hello"
    assert exchange.error is None
    assert "roxy" not in str(exchange.request.headers)
    assert b"roxy" not in site.server.requests[0]


@pytest.mark.programs
def test_without_the_companys_ca_nothing_passes(theirs: Company, tmp_path: Path) -> None:
    site, got = through(theirs, tmp_path, trusted=False)
    assert got == (56, b"")
    (exchange,) = site.notes.over
    assert exchange.error == (
        "tls: Certificate verify failed: unable to get local issuer certificate"
    )
    assert site.server.requests == []


@pytest.mark.programs
@pytest.mark.parametrize("plain", [False, True], ids=["tls", "plain"])
def test_a_refused_login_is_what_the_agent_sees(
    plain: bool, theirs: Company, tmp_path: Path
) -> None:
    site, (code, got) = through(
        theirs, tmp_path, login="jane:wrong-31", plain=plain, asks=("-w", "%{http_code}")
    )
    assert (code, got[-3:]) == (0, b"407")
    assert b"407 Proxy Authentication Required" in got
    (exchange,) = site.notes.over
    assert exchange.response is not None
    assert exchange.response.status == 407
    assert exchange.response.body == got[:-3]
    assert exchange.response.ended is not None
    name = f"http://127.0.0.1:{theirs.port}"
    if not plain:
        said = f"refused: the proxy {name} said 407 Proxy Authentication Required"
        assert exchange.error == said
    assert list(site.proxy.refusals) == [name]
    assert "did not take the login" in site.proxy.refusals[name]
    assert "wrong-31" not in str((site.proxy.refusals, exchange))
    assert theirs.passed() == []


@pytest.mark.programs
def test_a_server_in_no_proxy_is_reached_directly(theirs: Company) -> None:
    async def main() -> None:
        notes = Notes()
        async with serving(says(OK), tls=server_tls(NAME)) as server:
            where = {NAME: ("127.0.0.1", server.port)}
            theirs.leads(where)
            way = read_proxy_settings({"HTTPS_PROXY": theirs.url(), "NO_PROXY": ".example.test"})
            async with recording(notes, way=way, hosts=where) as proxy:
                assert await curl(f"https://{NAME}/", through=proxy) == (0, b"one")
        assert theirs.passed() == []
        assert server.accepts == 1

    run_event_loop(main())


@pytest.mark.programs
def test_a_proxy_that_is_not_there_is_named() -> None:
    async def main() -> None:
        notes = Notes()
        way = read_proxy_settings({"HTTPS_PROXY": f"http://{LOGIN}@127.0.0.1:1"})
        async with recording(notes, way=way) as proxy:
            assert (await curl(f"https://{NAME}/", through=proxy))[0] == 56
        error = notes.over[0].error or ""
        assert error.startswith("refused: ")
        assert "the proxy http://127.0.0.1:1" in error
        assert PASSWORD not in error

    run_event_loop(main())


@pytest.mark.programs
@pytest.mark.parametrize(
    ("answer", "error"),
    [
        (b"", "reset: Connection reset by peer"),
        (b"SSH-2.0-x\r\n\r\n", "reset: no whole answer to CONNECT"),
        (b"HTTP/1.1 403 No\r\nContent-Length: 9\r\n\r\nno", "reset: no whole answer to CONNECT"),
    ],
)
def test_a_proxy_that_does_not_speak_the_protocol(answer: bytes, error: str) -> None:
    async def hang_up(request: bytes, writer: asyncio.StreamWriter) -> None:
        writer.write(answer)
        await writer.drain()
        if not answer:
            reset(writer)
        writer.close()

    async def main() -> None:
        notes = Notes()
        async with serving(hang_up) as theirs:
            way = read_proxy_settings({"HTTPS_PROXY": f"http://127.0.0.1:{theirs.port}"})
            async with recording(notes, way=way) as proxy:
                assert (await curl(f"https://{NAME}/", through=proxy))[0] == 56
        assert notes.over[0].error == f"{error} (the proxy http://127.0.0.1:{theirs.port})"

    run_event_loop(main())
