"""TCP operations that asyncio lacks: reset a connection, count unsent and unread bytes."""

import asyncio
import fcntl
import os
import socket
import struct
import sys
import termios

_SIOCOUTQNSD = 0x894B
"""Linux ioctl: number of unsent bytes of a TCP socket (linux/sockios.h)."""


def reset_connection(transport: asyncio.Transport) -> None:
    """End the connection with an RST; unsent bytes are lost."""
    with socket.socket(fileno=os.dup(_get_socket_fd(transport))) as duplicate:
        duplicate.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    transport.abort()


def count_unsent_bytes(transport: asyncio.Transport) -> int:
    """Return how many bytes the kernel accepted but has not sent, because the peer does not read.

    Before a reset, "sent" is enough: the peer can still read the data in its own queue. Only Linux
    reports the number; elsewhere it is 0.
    """
    if sys.platform != "linux":
        return 0
    return int.from_bytes(
        fcntl.ioctl(_get_socket_fd(transport), _SIOCOUTQNSD, bytes(4)), sys.byteorder
    )


def count_unread_bytes(transport: asyncio.Transport) -> int:
    """Return how many bytes of the peer have arrived and were not read yet."""
    return int.from_bytes(
        fcntl.ioctl(_get_socket_fd(transport), termios.FIONREAD, bytes(4)), sys.byteorder
    )


def _get_socket_fd(transport: asyncio.Transport) -> int:
    connected: socket.socket = transport.get_extra_info("socket")
    return connected.fileno()
