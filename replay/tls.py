"""The performer's side of TLS, without I/O: certificates, the ClientHello, records in and out.

`loop.start_tls` would do the same with less code, but it loses bytes: those that arrived with the
CONNECT, and those that TLS 1.3 lets arrive before it returns. Here every byte is handed over by
the caller, so there is nothing to lose, and the connection below stays ours to reset.

Certificates are mitmproxy's (one authority for recording and replay, so an agent that trusts one
trusts both); only http/1.1 is offered by ALPN.
"""

import ssl
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from replay.certificates import Certificates

HANDSHAKE = 22
"""First byte of a TLS connection: the type of its first record (RFC 8446 5.1)."""

NO_APPLICATION_PROTOCOL = bytes((21, 3, 3, 0, 2, 2, 120))
"""The fatal alert for an agent that speaks no protocol we speak (RFC 7301 3.2)."""

_HELLO_LIMIT = 1 << 16
_CONTEXTS = 256
_RECORD = 1 << 14
"""Bytes that one record carries at most (RFC 8446 5.1)."""


class Authority:
    """The certificate authority in `confdir`; made there if there is none yet.

    It is loaded when the first agent speaks TLS, which takes longer than all else before a run.
    """

    def __init__(self, confdir: Path) -> None:
        self._confdir = confdir
        self.context = lru_cache(maxsize=_CONTEXTS)(self._context)
        if not (confdir / "mitmproxy-ca.pem").exists():
            self._certificates  # noqa: B018  # which makes it

    @cached_property
    def _certificates(self) -> "Certificates":
        from replay.certificates import Certificates

        return Certificates(self._confdir)

    def _context(self, host: str) -> ssl.SSLContext:
        """The server side of TLS for one host name or IP address; ValueError if it is neither."""
        chain = self._certificates.chain(host)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.set_alpn_protocols(["http/1.1"])
        # ssl reads certificates from files only. This one has mode 0600 and stands, for as long
        # as it is read, in the folder that keeps the same key anyway.
        with NamedTemporaryFile(dir=self._confdir, suffix=".pem") as file:
            file.write(chain)
            file.flush()
            context.load_cert_chain(file.name)
        return context


@dataclass(frozen=True, slots=True, kw_only=True)
class Hello:
    """What a ClientHello says before anything is agreed."""

    sni: str | None
    alpn: tuple[str, ...]
    """Protocols offered, in the client's order; empty where the extension is missing."""


def client_hello(data: bytes) -> Hello | None:
    """The ClientHello at the start of a connection; None while it is incomplete.

    Layout: RFC 8446 5.1 (records), 4.1.2 (ClientHello), RFC 6066 3 (SNI), RFC 7301 3.1 (ALPN).
    ValueError if the bytes are something else.
    """
    message, at = b"", 0
    while len(message) < 4 or len(message) < 4 + int.from_bytes(message[1:4]):
        if at + 5 > len(data):
            return None
        if data[at] != HANDSHAKE or data[at + 1] != 3 or message[:1] not in (b"", b"\x01"):
            raise ValueError("no TLS ClientHello")
        if len(message) > _HELLO_LIMIT:
            raise ValueError(f"a ClientHello of more than {_HELLO_LIMIT} bytes")
        size = int.from_bytes(data[at + 3 : at + 5])
        message += data[at + 5 : at + 5 + size]
        at += 5 + size
    if message[0] != 1:
        raise ValueError("no TLS ClientHello")
    # version, random, session id, cipher suites, compression methods, extensions
    fields = _Fields(message[4 : 4 + int.from_bytes(message[1:4])])
    fields.take(34)
    for width in (1, 2, 1):
        fields.vector(width)
    extensions = _Fields(fields.vector(2) if fields.left else b"")
    sni: str | None = None
    alpn: list[str] = []
    while extensions.left:
        kind, body = int.from_bytes(extensions.take(2)), _Fields(extensions.vector(2))
        if kind == 0:
            names = _Fields(body.vector(2))
            names.take(1)
            sni = names.vector(2).decode("latin-1")
        elif kind == 16:
            names = _Fields(body.vector(2))
            while names.left:
                alpn.append(names.vector(1).decode("latin-1"))
    return Hello(sni=sni, alpn=tuple(alpn))


class _Fields:
    """Reads the fields of a TLS structure one after the other."""

    def __init__(self, data: bytes) -> None:
        self.left = data

    def take(self, size: int) -> bytes:
        if size > len(self.left):
            raise ValueError("a ClientHello whose lengths do not fit")
        taken, self.left = self.left[:size], self.left[size:]
        return taken

    def vector(self, width: int) -> bytes:
        """The bytes counted by the next `width` bytes."""
        return self.take(int.from_bytes(self.take(width)))


class Tls:
    """One TLS connection as a machine: ciphertext in, plaintext out, and the other way round."""

    def __init__(self, context: ssl.SSLContext) -> None:
        self._incoming, self._outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._ssl = context.wrap_bio(self._incoming, self._outgoing, server_side=True)
        self.open = False
        """The handshake is done, and nothing went wrong since."""
        self.over = False
        """The other side said close_notify: no more plaintext will come."""

    def receive(self, data: bytes) -> bytes:
        """The plaintext that these bytes complete; ssl.SSLError ends the connection.

        What TLS itself has to say meanwhile is in `outgoing`.
        """
        self._incoming.write(data)
        plain = []
        try:
            if not self.open:
                self._ssl.do_handshake()
                self.open = True
            while self._incoming.pending or self._ssl.pending():
                # So much is set aside for what comes, which has no more bytes than its records.
                if not (piece := self._ssl.read(max(self._incoming.pending, _RECORD))):
                    self.over = True
                    break
                plain.append(piece)
        except ssl.SSLWantReadError:
            pass
        except ssl.SSLError:
            self.open = False
            raise
        return plain[0] if len(plain) == 1 else b"".join(plain)

    def send(self, data: bytes) -> bytes:
        """The records that carry this plaintext."""
        self._ssl.write(data)
        return self._outgoing.read()

    def outgoing(self) -> bytes:
        """What is still to be sent: handshake, tickets, alerts."""
        return self._outgoing.read()

    def close(self) -> bytes:
        """The close_notify, which tells an end from a cut."""
        if self.open:
            with suppress(ssl.SSLWantReadError):  # the other side's own is not waited for
                self._ssl.unwrap()
        return self._outgoing.read()
