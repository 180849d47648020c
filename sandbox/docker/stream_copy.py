"""Copy data between the standard streams of a container and local file descriptors."""

import os
import select
import socket
import struct
from contextlib import suppress
from dataclasses import dataclass

HEADER = struct.Struct(">BxxxL")
PIECE = 1 << 16


@dataclass(slots=True, kw_only=True)
class StreamCopy:
    """One container's streams; `run` blocks until its output ends."""

    stream: socket.socket
    stdin: int | None
    stdout: int
    stderr: int
    limit: int
    """Maximum bytes of output that are passed on; the rest is read and dropped."""
    dropped: int = 0
    _given: bytes = b""
    """Input read but not sent yet: the command may first wait for its output to be read."""

    def run(self) -> None:
        """Copy until the container has closed its output, or the connection to it was closed."""
        if self.stdin is None:
            self.stream.shutdown(socket.SHUT_WR)
        watched = select.poll()
        watched.register(self.stream, select.POLLIN)
        if self.stdin is not None:
            watched.register(self.stdin, select.POLLIN)
        pending = b""
        while True:
            ready = dict(watched.poll())
            if self.stdin in ready:
                self._read_stdin(watched)
            events = ready.get(self.stream.fileno(), 0)
            if events & select.POLLOUT:
                self._send_stdin(watched)
            if events & ~select.POLLOUT:
                piece = self.stream.recv(PIECE)
                if not piece:
                    return
                pending = self._write_output(pending + piece)

    def _read_stdin(self, watched: select.poll) -> None:
        """Read a piece of `stdin`, which is then not polled until all of it is sent."""
        assert self.stdin is not None
        watched.unregister(self.stdin)
        self._given = os.read(self.stdin, PIECE)
        if self._given:
            watched.modify(self.stream, select.POLLIN | select.POLLOUT)
        else:
            with suppress(OSError):  # the container has ended
                self.stream.shutdown(socket.SHUT_WR)

    def _send_stdin(self, watched: select.poll) -> None:
        assert self.stdin is not None
        try:
            self._given = self._given[self.stream.send(self._given, socket.MSG_DONTWAIT) :]
        except OSError:  # the container has ended
            watched.modify(self.stream, select.POLLIN)
            return
        if not self._given:
            watched.modify(self.stream, select.POLLIN)
            watched.register(self.stdin, select.POLLIN)

    def _write_output(self, held: bytes) -> bytes:
        """Write all complete frames; return the incomplete rest."""
        while len(held) >= HEADER.size:
            kind, size = HEADER.unpack_from(held)
            if len(held) < HEADER.size + size:
                break
            payload, held = held[HEADER.size : HEADER.size + size], held[HEADER.size + size :]
            accepted, self.limit = payload[: self.limit], max(0, self.limit - size)
            self.dropped += size - len(accepted)
            while accepted:
                accepted = accepted[os.write(self.stderr if kind == 2 else self.stdout, accepted) :]
        return held
