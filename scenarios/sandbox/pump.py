"""Carries what is said between the standard streams of a container and descriptors of ours."""

import os
import select
import socket
import struct
from dataclasses import dataclass

HEADER = struct.Struct(">BxxxL")
PIECE = 1 << 16


@dataclass(slots=True, kw_only=True)
class Pump:
    """One container's streams; `run` blocks until its output ends."""

    stream: socket.socket
    stdin: int | None
    stdout: int
    stderr: int
    limit: int
    """Bytes of output that are passed on; the rest is read and dropped."""
    dropped: int = 0

    def run(self) -> None:
        """Until the container has closed its output, or our connection to it was closed."""
        if self.stdin is None:
            self.stream.shutdown(socket.SHUT_WR)
        watched = select.poll()
        watched.register(self.stream, select.POLLIN)
        if self.stdin is not None:
            watched.register(self.stdin, select.POLLIN)
        held = b""
        while True:
            ready = {fd for fd, _ in watched.poll()}
            if self.stdin in ready:
                assert self.stdin is not None
                self._in(watched)
            if self.stream.fileno() in ready:
                piece = self.stream.recv(PIECE)
                if not piece:
                    return
                held = self._out(held + piece)

    def _in(self, watched: select.poll) -> None:
        assert self.stdin is not None
        data = os.read(self.stdin, PIECE)
        try:
            self.stream.sendall(data)
            if not data:
                self.stream.shutdown(socket.SHUT_WR)
        except OSError:  # the container has ended
            data = b""
        if not data:
            watched.unregister(self.stdin)

    def _out(self, held: bytes) -> bytes:
        """Pass on all frames that are whole; what is left of the last one."""
        while len(held) >= HEADER.size:
            kind, size = HEADER.unpack_from(held)
            if len(held) < HEADER.size + size:
                break
            said, held = held[HEADER.size : HEADER.size + size], held[HEADER.size + size :]
            kept, self.limit = said[: self.limit], max(0, self.limit - size)
            self.dropped += size - len(kept)
            while kept:
                kept = kept[os.write(self.stderr if kind == 2 else self.stdout, kept) :]
        return held
