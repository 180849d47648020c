"""Certificates for the hosts that agents connect to, created with mitmproxy."""

from ipaddress import ip_address
from pathlib import Path

from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509 import DNSName, GeneralName, IPAddress
from mitmproxy.certs import CertStore


class HostCertificates:
    """Certificates signed by the CA in `confdir`, which is created if missing."""

    def __init__(self, confdir: Path) -> None:
        self._store = CertStore.from_store(confdir, "mitmproxy", 2048)

    def export_chain(self, host: str) -> bytes:
        """Return a host name's or IP address's key and certificates (PEM), or raise ValueError."""
        entry = self._store.get_cert(host, [_parse_general_name(host)])
        key = entry.privatekey.private_bytes(
            Encoding.PEM, PrivateFormat.TraditionalOpenSSL, NoEncryption()
        )
        return key + b"".join(cert.to_pem() for cert in (entry.cert, *entry.chain_certs))


def _parse_general_name(host: str) -> GeneralName:
    try:
        return IPAddress(ip_address(host))
    except ValueError:
        return DNSName(host)
