"""Certificates for the hosts that agents ask for, made by mitmproxy."""

from ipaddress import ip_address
from pathlib import Path

from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509 import DNSName, GeneralName, IPAddress
from mitmproxy.certs import CertStore


class Certificates:
    """What the authority in `confdir` vouches for; it is made there if there is none yet."""

    def __init__(self, confdir: Path) -> None:
        self._store = CertStore.from_store(confdir, "mitmproxy", 2048)

    def chain(self, host: str) -> bytes:
        """Key and certificates for one host name or IP address, as PEM; ValueError if neither."""
        entry = self._store.get_cert(host, [_general_name(host)])
        key = entry.privatekey.private_bytes(
            Encoding.PEM, PrivateFormat.TraditionalOpenSSL, NoEncryption()
        )
        return key + b"".join(cert.to_pem() for cert in (entry.cert, *entry.chain_certs))


def _general_name(host: str) -> GeneralName:
    try:
        return IPAddress(ip_address(host))
    except ValueError:
        return DNSName(host)
