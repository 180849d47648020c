"""TLS without sockets: the machine, the ClientHello, the certificates."""

import ssl
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from recorder.proxy.tls import (
    CertificateAuthority,
    ClientHello,
    TlsConnection,
    parse_client_hello,
)
from tests.support.servers.replay_server_thread import trusting


@pytest.fixture(scope="module")
def confdir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("ca")


@pytest.fixture(scope="module")
def authority(confdir: Path) -> CertificateAuthority:
    return CertificateAuthority(confdir)


class Agent:
    """OpenSSL's client side, on memory."""

    def __init__(self, context: ssl.SSLContext, host: str) -> None:
        self.incoming, self.outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self.ssl = context.wrap_bio(self.incoming, self.outgoing, server_hostname=host)

    def shake(self, data: bytes = b"") -> bytes:
        """What it says next in the handshake."""
        self.incoming.write(data)
        with suppress(ssl.SSLWantReadError):
            self.ssl.do_handshake()
        return self.outgoing.read()


def met(
    authority: CertificateAuthority, confdir: Path, host: str = "a.example"
) -> tuple[Agent, TlsConnection]:
    """Both sides after the handshake."""
    agent, tls = Agent(trusting(confdir), host), TlsConnection(authority.context(host))
    said = agent.shake()
    for _ in range(3):
        assert tls.receive(said) == b""
        said = agent.shake(tls.take_outgoing())
    assert tls.open
    return agent, tls


@pytest.mark.parametrize("host", ["a.example", "127.0.0.1", "::1", "x" * 60 + ".example", "a_b"])
def test_certificates_are_trusted_for_names_and_addresses(
    authority: CertificateAuthority, confdir: Path, host: str
) -> None:
    agent, _ = met(authority, confdir, host)
    assert agent.ssl.selected_alpn_protocol() is None
    assert authority.context(host) is authority.context(host)


def test_what_is_no_host_is_an_error(authority: CertificateAuthority) -> None:
    with pytest.raises(ValueError, match="[Aa]scii|A-label|DNSName"):
        authority.context("caf\xe9.example")


def test_no_key_is_left_behind_and_none_is_readable_by_others(
    authority: CertificateAuthority, confdir: Path
) -> None:
    authority.context("b.example")
    made = {path.name: path.stat().st_mode & 0o077 for path in confdir.iterdir()}
    assert {name for name in made if not name.startswith("mitmproxy-")} == set()
    assert made["mitmproxy-ca.pem"] == 0


def test_an_authority_is_loaded_again(authority: CertificateAuthority, confdir: Path) -> None:
    met(CertificateAuthority(confdir), confdir)


@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    said=st.lists(st.binary(min_size=1, max_size=40_000), min_size=1, max_size=3),
    size=st.integers(1, 20_000),
)
def test_what_goes_in_comes_out_however_it_is_cut(
    authority: CertificateAuthority, confdir: Path, said: list[bytes], size: int
) -> None:
    agent, tls = met(authority, confdir)
    for text in said:
        agent.ssl.write(text)
        records = agent.outgoing.read()
        parts = [records[at : at + size] for at in range(0, len(records), size)]
        assert b"".join([tls.receive(part) for part in parts]) == text
        agent.incoming.write(tls.send(text))
        answer = b""
        while len(answer) < len(text):
            answer += agent.ssl.read(1 << 16)
        assert answer == text


def test_an_end_is_told_from_a_cut(authority: CertificateAuthority, confdir: Path) -> None:
    agent, tls = met(authority, confdir)
    agent.incoming.write(tls.close())
    assert agent.ssl.read(1) == b""
    agent, tls = met(authority, confdir)
    agent.incoming.write_eof()
    with pytest.raises(ssl.SSLEOFError):
        agent.ssl.read(1)


def test_the_agent_may_end_too(authority: CertificateAuthority, confdir: Path) -> None:
    agent, tls = met(authority, confdir)
    agent.ssl.write(b"bye")
    with suppress(ssl.SSLWantReadError):
        agent.ssl.unwrap()
    assert tls.receive(agent.outgoing.read()) == b"bye"
    assert tls.over
    agent.incoming.write(tls.close())
    agent.ssl.unwrap()


def test_a_record_that_was_changed_ends_the_connection(
    authority: CertificateAuthority, confdir: Path
) -> None:
    agent, tls = met(authority, confdir)
    agent.ssl.write(b"hello")
    record = bytearray(agent.outgoing.read())
    record[-1] ^= 1
    with pytest.raises(ssl.SSLError):
        tls.receive(bytes(record))
    assert tls.take_outgoing() != b""
    assert tls.close() == b""


@pytest.mark.parametrize("alpn", [(), ("h2",), ("h2", "http/1.1"), ("http/1.1",)])
@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
def test_a_client_hello_says_whom_it_wants_and_what_it_speaks(
    confdir: Path, authority: CertificateAuthority, alpn: tuple[str, ...], version: ssl.TLSVersion
) -> None:
    context = trusting(confdir, *alpn)
    context.minimum_version = context.maximum_version = version
    hello = Agent(context, "a.example").shake()
    assert parse_client_hello(hello) == ClientHello(sni="a.example", alpn=alpn)
    assert parse_client_hello(hello + b"\x17\x03\x03\x00\x01x") == ClientHello(
        sni="a.example", alpn=alpn
    )
    assert [parse_client_hello(hello[:at]) for at in range(1, len(hello))] == [None] * (
        len(hello) - 1
    )
    pieces = [hello[5 + at : 5 + at + 50] for at in range(0, len(hello) - 5, 50)]
    records = b"".join(b"\x16\x03\x01" + len(p).to_bytes(2) + p for p in pieces)
    assert parse_client_hello(records) == ClientHello(sni="a.example", alpn=alpn)


def test_an_address_is_no_server_name(confdir: Path, authority: CertificateAuthority) -> None:
    hello = Agent(trusting(confdir), "127.0.0.1").shake()
    assert parse_client_hello(hello) == ClientHello(sni=None, alpn=())


@pytest.mark.parametrize(
    "data",
    [
        b"GET / HTTP/1.1\r\n",
        b"\x16\x03\x01\x00\x05\x02\x00\x00\x01x",
        b"\x16\x03\x01\x00\x05\x01\x00\x00\x01x",
        b"\x16\x03\x01\x00\x05\x01\xff\xff\xffx" + b"\x16\x03\x01\xff\xff%b" % (b"x" * 65535) * 2,
    ],
)
def test_what_is_no_client_hello_is_an_error(data: bytes) -> None:
    with pytest.raises(ValueError, match="TLS|ClientHello"):
        parse_client_hello(data)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(at=st.integers(0, 10_000), junk=st.binary(max_size=20), cut=st.integers(0, 10_000))
def test_no_client_hello_is_worse_than_an_error(
    confdir: Path, authority: CertificateAuthority, at: int, junk: bytes, cut: int
) -> None:
    hello = Agent(trusting(confdir, "h2"), "a.example").shake()
    at %= len(hello)
    data = (hello[:at] + junk + hello[at + len(junk) :])[: len(hello) - cut % 100]
    with suppress(ValueError):
        assert parse_client_hello(data) is None or isinstance(parse_client_hello(data), ClientHello)
