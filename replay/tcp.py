"""What asyncio does not offer for a TCP connection: a reset, and what is still to be sent."""

import asyncio
import fcntl
import os
import socket
import struct
import sys

_SIOCOUTQNSD = 0x894B
"""Linux: how many bytes of a TCP socket were not sent yet (linux/sockios.h)."""


def reset(transport: asyncio.Transport) -> None:
    """Ends the connection with an RST; bytes that were not sent yet are lost."""
    with socket.socket(fileno=os.dup(_fd(transport))) as end:
        end.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    transport.abort()


def unsent(transport: asyncio.Transport) -> int:
    """Bytes that the kernel took and has not sent, since the other side does not read.

    Sent is enough before a reset: what is in the other side's queue can still be read there.
    Only Linux says it; elsewhere it is 0.
    """
    if sys.platform != "linux":
        return 0
    return int.from_bytes(fcntl.ioctl(_fd(transport), _SIOCOUTQNSD, bytes(4)), sys.byteorder)


def _fd(transport: asyncio.Transport) -> int:
    end: socket.socket = transport.get_extra_info("socket")
    return end.fileno()
