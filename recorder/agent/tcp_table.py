"""TCP sockets of this machine: who listens at a port, and what is connected where.

Facts of /proc/net/tcp and tcp6 (proc(5)): one line a socket; addresses are hexadecimal, in words of
32 bits in the machine's order; state 01 is established, 0A listening; the tenth field is the inode.
"""

import sys
from collections.abc import Iterator
from ipaddress import IPv4Address, IPv6Address
from pathlib import Path
from typing import NamedTuple

from recorder.agent.process_table import RunningProcess, find_socket_owner

ESTABLISHED, LISTENING = "01", "0A"
_TABLES = (Path("/proc/net/tcp"), Path("/proc/net/tcp6"))


class TcpSocket(NamedTuple):
    """One socket of the table."""

    port: int
    peer: IPv4Address | IPv6Address
    peer_port: int
    state: str
    inode: str


def read_tcp_table() -> Iterator[TcpSocket]:
    """Yield the sockets of this network namespace that are connected or listen; none where there is
    no /proc/net.
    """
    for table in _TABLES:
        try:
            lines = table.read_text("ascii").splitlines()[1:]
        except OSError:
            continue
        for line in lines:
            _, local, remote, state, *rest = line.split()
            if state not in (ESTABLISHED, LISTENING):
                continue
            peer, _, peer_port = remote.partition(":")
            port = int(local.partition(":")[2], 16)
            yield TcpSocket(port, _parse_address(peer), int(peer_port, 16), state, rest[5])


def _parse_address(text: str) -> IPv4Address | IPv6Address:
    shown = bytes.fromhex(text)
    step = -1 if sys.byteorder == "little" else 1
    raw = b"".join(shown[at : at + 4][::step] for at in range(0, len(shown), 4))
    if len(raw) == 4:
        return IPv4Address(raw)
    address = IPv6Address(raw)
    return address.ipv4_mapped or address


def find_listener(port: int) -> RunningProcess | None:
    """Return the process that listens at a port of this machine; None if none, or not known."""
    inodes = [
        each.inode for each in read_tcp_table() if (each.state, each.port) == (LISTENING, port)
    ]
    owners = (find_socket_owner(inode) for inode in inodes)
    return next((owner for owner in owners if owner is not None), None)
