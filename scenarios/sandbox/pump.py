"""Carries what is said between the standard streams of a container and descriptors of ours."""

import os
import select
import socket
import struct
from contextlib import suppress
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
    _given: bytes = b""
    """Read from `stdin`, and not passed on yet: it may be output that the command waits for."""

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
            ready = dict(watched.poll())
            if self.stdin in ready:
                self._read(watched)
            said = ready.get(self.stream.fileno(), 0)
            if said & select.POLLOUT:
                self._pass_on(watched)
            if said & ~select.POLLOUT:
                piece = self.stream.recv(PIECE)
                if not piece:
                    return
                held = self._out(held + piece)

    def _read(self, watched: select.poll) -> None:
        """The next piece of `stdin`, which is not looked at again until all of it is passed on."""
        assert self.stdin is not None
        watched.unregister(self.stdin)
        self._given = os.read(self.stdin, PIECE)
        if self._given:
            watched.modify(self.stream, select.POLLIN | select.POLLOUT)
        else:
            with suppress(OSError):  # the container has ended
                self.stream.shutdown(socket.SHUT_WR)

    def _pass_on(self, watched: select.poll) -> None:
        assert self.stdin is not None
        try:
            self._given = self._given[self.stream.send(self._given, socket.MSG_DONTWAIT) :]
        except OSError:  # the container has ended
            watched.modify(self.stream, select.POLLIN)
            return
        if not self._given:
            watched.modify(self.stream, select.POLLIN)
            watched.register(self.stdin, select.POLLIN)

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
