"""TLS of the proxy: a generated certificate for the agent, verification of the server's."""

# mypy: allow-untyped-calls

import ssl
from ipaddress import ip_address
from pathlib import Path

import certifi
from cryptography.x509 import DNSName, GeneralName, IPAddress
from mitmproxy.connection import Server
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

from recorder.ca import ensure_ca_certificate, load_ca_store
from recorder.proxy.route import UpstreamRoute

ALPN_PROTOCOLS = (b"h2", b"http/1.1")


class ProxyTls:
    """The CA in `confdir` (created if missing) and the trusted server CAs."""

    def __init__(self, confdir: Path, route: UpstreamRoute) -> None:
        upstream_ca, self._insecure = route.ca_file, route.insecure
        self._store = load_ca_store(confdir)
        self.certificate = ensure_ca_certificate(confdir)
        self.trust = ssl.create_default_context(cafile=upstream_ca or certifi.where())
        """For an upstream proxy that is itself reached over TLS."""
        self._to_agents = create_client_proxy_context(
            method=Method.TLS_SERVER_METHOD,
            min_version=DEFAULT_MIN_VERSION,
            max_version=DEFAULT_MAX_VERSION,
            cipher_list=None,
            ecdh_curve=None,
            chain_file=None,
            alpn_select_callback=_select_alpn,
            request_client_cert=False,
            extra_chain_certs=(),
            dhparams=self._store.dhparams,
        )
        self._to_servers = {
            verify: create_proxy_server_context(
                method=Method.TLS_CLIENT_METHOD,
                min_version=DEFAULT_MIN_VERSION,
                max_version=DEFAULT_MAX_VERSION,
                cipher_list=None,
                ecdh_curve=None,
                verify=verify,
                ca_path=None,
                ca_pemfile=str(upstream_ca) if upstream_ca else None,
                client_cert=str(route.client_cert) if route.client_cert else None,
                legacy_server_connect=False,
            )
            for verify in (Verify.VERIFY_PEER, Verify.VERIFY_NONE)
        }

    def start_agent_tls(self, data: TlsData) -> None:
        """Present a certificate for the agent's SNI name, or for the requested server."""
        address = data.context.server.address
        names = [name for name in (data.conn.sni, address and str(address[0])) if name]
        entry = self._store.get_cert(
            names[0], [_to_general_name(name) for name in dict.fromkeys(names)]
        )
        data.ssl_conn = SSL.Connection(self._to_agents)
        data.ssl_conn.use_certificate(entry.cert.to_cryptography())
        data.ssl_conn.use_privatekey(entry.privatekey)
        data.ssl_conn.set_accept_state()

    def start_server_tls(self, data: TlsData) -> None:
        """Connect as a client, offering the ALPN protocols that the agent negotiated."""
        agent, conn = data.context.client, data.conn
        insecure = isinstance(conn, Server) and (conn.address or ("",))[0] in self._insecure
        verify = Verify.VERIFY_NONE if insecure else Verify.VERIFY_PEER
        data.ssl_conn = SSL.Connection(self._to_servers[verify])
        _require_server_name(data.ssl_conn, str(conn.sni))
        if agent.alpn:
            offers = list(ALPN_PROTOCOLS) if agent.alpn == b"h2" else [agent.alpn]
            data.ssl_conn.set_alpn_protos(offers)
        data.ssl_conn.set_connect_state()


def _select_alpn(_: SSL.Connection, offers: list[bytes]) -> object:
    """Select HTTP/2 if offered, in any order: servers choose it, and httpx lists it last."""
    return next(
        (protocol for protocol in ALPN_PROTOCOLS if protocol in offers),
        SSL.NO_OVERLAPPING_PROTOCOLS,
    )


def _to_general_name(name: str) -> GeneralName:
    try:
        return IPAddress(ip_address(name))
    except ValueError:
        return DNSName(name.encode("idna").decode())


def _require_server_name(connection: SSL.Connection, name: str) -> None:
    """Send the server name (SNI), and accept only a certificate for that name.

    pyOpenSSL verifies a certificate's issuer but has no call to verify its name.
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
