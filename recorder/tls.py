"""TLS on both sides of the proxy: our certificate to the agent, the server's checked by us."""

# mypy: allow-untyped-calls

import ssl
from ipaddress import ip_address
from pathlib import Path

import certifi
from cryptography.x509 import DNSName, GeneralName, IPAddress
from mitmproxy.net.tls import (
    DEFAULT_MAX_VERSION,
    DEFAULT_MIN_VERSION,
    Method,
    Verify,
    create_client_proxy_context,
    create_proxy_server_context,
)
from mitmproxy.tls import TlsData
from OpenSSL import SSL

from recorder.authority import certificate, store

SPOKEN = (b"h2", b"http/1.1")


class Tls:
    """The authority in `confdir` (made where there is none) and the servers that are trusted."""

    def __init__(self, confdir: Path, upstream_ca: Path | None) -> None:
        self._store = store(confdir)
        self.certificate = certificate(confdir)
        self.trust = ssl.create_default_context(cafile=upstream_ca or certifi.where())
        """For a proxy on the way out that is itself reached over TLS."""
        self._to_agents = create_client_proxy_context(
            method=Method.TLS_SERVER_METHOD,
            min_version=DEFAULT_MIN_VERSION,
            max_version=DEFAULT_MAX_VERSION,
            cipher_list=None,
            ecdh_curve=None,
            chain_file=None,
            alpn_select_callback=_choose,
            request_client_cert=False,
            extra_chain_certs=(),
            dhparams=self._store.dhparams,
        )
        self._to_servers = create_proxy_server_context(
            method=Method.TLS_CLIENT_METHOD,
            min_version=DEFAULT_MIN_VERSION,
            max_version=DEFAULT_MAX_VERSION,
            cipher_list=None,
            ecdh_curve=None,
            verify=Verify.VERIFY_PEER,
            ca_path=None,
            ca_pemfile=str(upstream_ca) if upstream_ca else None,
            client_cert=None,
            legacy_server_connect=False,
        )

    def meet_agent(self, data: TlsData) -> None:
        """Be the server that the agent names, or the one that it asked us to reach."""
        asked = data.context.server.address
        names = [name for name in (data.conn.sni, asked and str(asked[0])) if name]
        entry = self._store.get_cert(names[0], [_general(name) for name in dict.fromkeys(names)])
        data.ssl_conn = SSL.Connection(self._to_agents)
        data.ssl_conn.use_certificate(entry.cert.to_cryptography())
        data.ssl_conn.use_privatekey(entry.privatekey)
        data.ssl_conn.set_accept_state()

    def meet_server(self, data: TlsData) -> None:
        """Be a client that speaks what the agent speaks, and HTTP/1.1 where there is no HTTP/2."""
        agent, conn = data.context.client, data.conn
        data.ssl_conn = SSL.Connection(self._to_servers)
        _expect(data.ssl_conn, str(conn.sni))
        if agent.alpn:
            offers = list(SPOKEN) if agent.alpn == b"h2" else [agent.alpn]
            data.ssl_conn.set_alpn_protos(offers)
        data.ssl_conn.set_connect_state()


def _choose(_: SSL.Connection, offers: list[bytes]) -> object:
    """HTTP/2 where it is offered, in any order: servers choose it, and httpx names it last."""
    return next((spoken for spoken in SPOKEN if spoken in offers), SSL.NO_OVERLAPPING_PROTOCOLS)


def _general(name: str) -> GeneralName:
    try:
        return IPAddress(ip_address(name))
    except ValueError:
        return DNSName(name.encode("idna").decode())


def _expect(connection: SSL.Connection, name: str) -> None:
    """Ask for a server by its name, and take no certificate that does not hold it.

    pyOpenSSL checks who signed a certificate but has no call for whose it is.
    """
    lib = SSL._lib  # type: ignore[attr-defined]
    param = lib.SSL_get0_param(connection._ssl)
    lib.X509_VERIFY_PARAM_set_hostflags(param, lib.X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS)
    try:
        packed = ip_address(name).packed
    except ValueError:
        host = name.encode("idna")
        connection.set_tlsext_host_name(host)
        accepted = lib.X509_VERIFY_PARAM_set1_host(param, host, len(host))
    else:
        accepted = lib.X509_VERIFY_PARAM_set1_ip(param, packed, len(packed))
    if accepted != 1:
        raise ValueError(f"cannot check the certificate of {name!r}")
