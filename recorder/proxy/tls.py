"""TLS without I/O: certificates, the ClientHello, records in and out.

`loop.start_tls` would need less code, but it loses bytes: those that arrived with the CONNECT, and
those that TLS 1.3 allows to arrive before it returns. Here the caller passes in every byte, so none
is lost, and the TCP connection can still be reset.

Certificates are mitmproxy's (one CA for recording and replay, so an agent that trusts one trusts
both); ALPN offers http/1.1, and h2 only to agents that speak nothing else.
"""

import ssl
from contextlib import suppress
from functools import cached_property, lru_cache
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import TYPE_CHECKING

from msgspec import Struct

if TYPE_CHECKING:
    from recorder.proxy.certificates import HostCertificates

TLS_HANDSHAKE = 22
"""First byte of a TLS connection: the type of its first record (RFC 8446 5.1)."""

NO_APPLICATION_PROTOCOL = bytes((21, 3, 3, 0, 2, 2, 120))
"""The fatal alert for an agent without a supported protocol (RFC 7301 3.2)."""

_HELLO_LIMIT = 1 << 16
_CONTEXT_CACHE_SIZE = 256
_MAX_RECORD_BYTES = 1 << 14
"""Maximum payload of one record in bytes (RFC 8446 5.1)."""


class CertificateAuthority:
    """The certificate authority in `confdir`, created if missing.

    It is loaded when the first agent uses TLS; loading takes longer than the rest of the start-up.
    """

    def __init__(self, confdir: Path) -> None:
        self._confdir = confdir
        self.context = lru_cache(maxsize=_CONTEXT_CACHE_SIZE)(self._make_context)
        if not (confdir / "mitmproxy-ca.pem").exists():
            self._certificates  # noqa: B018  # which makes it

    @cached_property
    def _certificates(self) -> "HostCertificates":
        from recorder.proxy.certificates import HostCertificates

        return HostCertificates(self._confdir)

    def _make_context(self, host: str, protocol: str = "http/1.1") -> ssl.SSLContext:
        """Return the server context for a host name or IP address; else raise ValueError."""
        chain = self._certificates.export_chain(host)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.set_alpn_protocols([protocol])
        # ssl reads certificates from files only. This file has mode 0600 and exists, only while it
        # is read, in the folder that contains the CA's key anyway.
        with NamedTemporaryFile(dir=self._confdir, suffix=".pem") as file:
            file.write(chain)
            file.flush()
            context.load_cert_chain(file.name)
        return context


class ClientHello(Struct, frozen=True, kw_only=True):
    """The fields of a ClientHello that are used."""

    sni: str | None
    alpn: tuple[str, ...]
    """Protocols offered, in the client's order; empty without the extension."""


def parse_client_hello(data: bytes) -> ClientHello | None:
    """Parse the ClientHello at the start of a connection; None while it is incomplete.

    Layout: RFC 8446 5.1 (records), 4.1.2 (ClientHello), RFC 6066 3 (SNI), RFC 7301 3.1 (ALPN).
    Raises ValueError if the bytes are something else.
    """
    message, offset = b"", 0
    while len(message) < 4 or len(message) < 4 + int.from_bytes(message[1:4]):
        if offset + 5 > len(data):
            return None
        if (
            data[offset] != TLS_HANDSHAKE
            or data[offset + 1] != 3
            or message[:1] not in (b"", b"\x01")
        ):
            raise ValueError("no TLS ClientHello")
        if len(message) > _HELLO_LIMIT:
            raise ValueError(f"a ClientHello of more than {_HELLO_LIMIT} bytes")
        size = int.from_bytes(data[offset + 3 : offset + 5])
        message += data[offset + 5 : offset + 5 + size]
        offset += 5 + size
    if message[0] != 1:
        raise ValueError("no TLS ClientHello")
    # version, random, session id, cipher suites, compression methods, extensions
    fields = _TlsFieldReader(message[4 : 4 + int.from_bytes(message[1:4])])
    fields.take(34)
    for width in (1, 2, 1):
        fields.take_vector(width)
    extensions = _TlsFieldReader(fields.take_vector(2) if fields.left else b"")
    sni: str | None = None
    alpn: list[str] = []
    while extensions.left:
        kind, body = int.from_bytes(extensions.take(2)), _TlsFieldReader(extensions.take_vector(2))
        if kind == 0:
            names = _TlsFieldReader(body.take_vector(2))
            names.take(1)
            sni = names.take_vector(2).decode("latin-1")
        elif kind == 16:
            names = _TlsFieldReader(body.take_vector(2))
            while names.left:
                alpn.append(names.take_vector(1).decode("latin-1"))
    return ClientHello(sni=sni, alpn=tuple(alpn))


class _TlsFieldReader:
    """Reads the fields of a TLS structure one after the other."""

    def __init__(self, data: bytes) -> None:
        self.left = data

    def take(self, size: int) -> bytes:
        if size > len(self.left):
            raise ValueError("a ClientHello whose lengths do not fit")
        data, self.left = self.left[:size], self.left[size:]
        return data

    def take_vector(self, width: int) -> bytes:
        """Take a vector whose length is in the next `width` bytes."""
        return self.take(int.from_bytes(self.take(width)))


class TlsConnection:
    """One TLS connection without I/O: converts ciphertext to plaintext and back.

    With a `server_name` this is the client's side.
    """

    def __init__(self, context: ssl.SSLContext, server_name: str | None = None) -> None:
        self._incoming, self._outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._ssl = context.wrap_bio(
            self._incoming,
            self._outgoing,
            server_side=server_name is None,
            server_hostname=server_name,
        )
        self.open = False
        """The handshake is complete, and no error occurred since."""
        self.begun = False
        """The handshake was completed, or an error was reported."""
        self.over = False
        """The peer sent close_notify: no more plaintext will arrive."""

    def receive(self, data: bytes) -> bytes:
        """Return the plaintext that these bytes complete. ssl.SSLError ends the connection.

        TLS's own messages are returned by `take_outgoing`.
        """
        self._incoming.write(data)
        plain = []
        try:
            if not self.open:
                self._ssl.do_handshake()
                self.open = self.begun = True
            while self._incoming.pending or self._ssl.pending():
                # The buffer fits all incoming plaintext, which has no more bytes than its records.
                if not (piece := self._ssl.read(max(self._incoming.pending, _MAX_RECORD_BYTES))):
                    self.over = True
                    break
                plain.append(piece)
        except ssl.SSLWantReadError:
            pass
        except ssl.SSLError:
            self.open, self.begun = False, True
            raise
        return plain[0] if len(plain) == 1 else b"".join(plain)

    def send(self, data: bytes) -> bytes:
        """Return the records that contain this plaintext."""
        self._ssl.write(data)
        return self._outgoing.read()

    def take_outgoing(self) -> bytes:
        """Return bytes to send: handshake, tickets, alerts."""
        return self._outgoing.read()

    def close(self) -> bytes:
        """Return the close_notify, which distinguishes an end from a truncation."""
        if self.open:
            with suppress(ssl.SSLWantReadError):  # the peer's close_notify is not awaited
                self._ssl.unwrap()
        return self._outgoing.read()
