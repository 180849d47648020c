"""Record which addresses an isolated agent tried to reach, packet by packet.

Packets to outside addresses arrive at the packet socket that `enter_namespaces.py` opened. They are
refused here with the ICMP errors of a network without a route, so that no client waits for its
timeout, and counted by protocol, address and port, for a name server also by the queried name. A
loopback address counts if nothing listened there, because outside the namespace something may.
"""

import asyncio
import ctypes
import socket
import struct
from collections import Counter
from collections.abc import Mapping
from ipaddress import IPv4Address, IPv6Address, ip_address

from msgspec import Struct

TCP, UDP, ICMP, ICMP6 = 6, 17, 1, 58
PROTOCOLS: Mapping[int, str] = {TCP: "tcp", UDP: "udp", ICMP: "icmp", ICMP6: "icmp"}
SYN, RST, ACK = 2, 4, 16
UNREACHABLE, UNREACHABLE6 = 3, 1
PROHIBITED = 9
"""ICMP code "administratively prohibited": connect() fails with ENETUNREACH, also for UDP."""
NO_ROUTE6, NO_HOST6, NO_PORT6 = 0, 3, 4
DNS = 53
PACKET_OUTGOING = 4
OWN_ADDRESSES = frozenset({ip_address("198.51.100.1"), ip_address("2001:db8::1")})
QUOTED_BYTES = 512
SO_ATTACH_FILTER = 26


class BlockedConnection(Struct, frozen=True, order=True):
    """An address outside the proxy that an agent tried to reach."""

    address: str
    port: int | None
    protocol: str
    name: str | None = None
    """The name queried from a name server."""

    def __str__(self) -> str:
        """`93.184.216.34:443 tcp`, `10.0.0.53:53 udp (example.com)`."""
        host = f"[{self.address}]" if ":" in self.address else self.address
        port = "" if self.port is None else f":{self.port}"
        return f"{host}{port} {self.protocol}" + (f" ({self.name})" if self.name else "")


class IpPacket(Struct, frozen=True):
    """The used fields of an IP packet; `ports` is None if its protocol has no ports."""

    protocol: int
    source: IPv4Address | IPv6Address
    target: IPv4Address | IPv6Address
    payload: bytes

    @property
    def ports(self) -> tuple[int, int] | None:
        """The source port and the target port."""
        if self.protocol not in (TCP, UDP) or len(self.payload) < 4:
            return None
        return struct.unpack_from("!HH", self.payload)


def parse_ip_packet(data: bytes) -> IpPacket | None:
    """Parse an IPv4 or IPv6 packet; None if `data` is neither, or its header is truncated."""
    version = data[0] >> 4 if data else 0
    if version == 4 and len(data) >= 20:
        header = (data[0] & 15) * 4
        source, target = IPv4Address(data[12:16]), IPv4Address(data[16:20])
        return IpPacket(data[9], source, target, data[header:])
    if version == 6 and len(data) >= 40:
        source6, target6 = IPv6Address(data[8:24]), IPv6Address(data[24:40])
        return IpPacket(data[6], source6, target6, data[40:])
    return None


class BlockedConnectionMonitor:
    """Reads the packet sockets of one network namespace, which it owns, from `open` to `close`."""

    def __init__(self, seen: socket.socket, refusing: tuple[socket.socket, ...]) -> None:
        self._seen, self._refusing = seen, refusing
        self._counted: Counter[BlockedConnection] = Counter()
        self._flows: set[tuple[object, ...]] = set()
        self._refused: Counter[BlockedConnection] = Counter()
        self._listened: set[BlockedConnection] = set()
        for each in (seen, *refusing):
            each.setblocking(False)
        attach_packet_filter(seen)

    def open(self) -> None:
        """Start reading packets."""
        asyncio.get_running_loop().add_reader(self._seen, self._read_packets)

    def close(self) -> None:
        """Read the remaining packets, then close the sockets."""
        asyncio.get_running_loop().remove_reader(self._seen)
        self._read_packets()
        for each in (self._seen, *self._refusing):
            each.close()

    @property
    def counts(self) -> Mapping[BlockedConnection, int]:
        """How often each address was tried, most frequent first."""
        local = {a: n for a, n in self._refused.items() if a not in self._listened}
        return dict((self._counted + Counter(local)).most_common())

    def _read_packets(self) -> None:
        while True:
            try:
                data, (_, _, kind, *_) = self._seen.recvfrom(65535)
            except BlockingIOError:
                return
            packet = parse_ip_packet(data)
            if kind == PACKET_OUTGOING and packet is not None:
                self._handle_packet(packet, data)

    def _handle_packet(self, found: IpPacket, data: bytes) -> None:
        if found.target.is_loopback or found.target in OWN_ADDRESSES:
            self._handle_local_packet(found)
        elif self._count_flow(found) and not found.target.is_multicast:
            self._refuse_packet(found, data)

    def _handle_local_packet(self, found: IpPacket) -> None:
        """Record a local reply: a listening port, a refused connection or an unreachable target."""
        kind = found.payload[0] if found.payload else None
        if found.protocol == TCP and len(found.payload) >= 20:
            flags, port = found.payload[13], struct.unpack_from("!H", found.payload)[0]
            connection = BlockedConnection(str(found.source), port, "tcp")
            if flags & (SYN | ACK) == SYN | ACK:
                self._listened.add(connection)
            elif flags & RST and found.payload[4:8] == bytes(4):
                self._refused[connection] += 1
        elif (found.protocol, kind) in ((ICMP, UNREACHABLE), (ICMP6, UNREACHABLE6)):
            quoted = parse_ip_packet(found.payload[8:])
            if quoted is None or quoted.protocol == ICMP6:
                return
            # IPv6 rejects such targets itself, but its first message arrives before connect() can
            # take it.
            early = found.protocol == ICMP6 and found.payload[1] == NO_ROUTE6
            if self._count_flow(quoted) and early:
                self._refuse_packet(quoted, found.payload[8:])

    def _count_flow(self, found: IpPacket) -> bool:
        """Count a flow once, despite repeated first packets; False for any other packet."""
        ports = found.ports
        if found.protocol == TCP and not (len(found.payload) > 13 and found.payload[13] & SYN):
            return False
        flow = (found.protocol, found.target, ports if ports else None)
        query = parse_dns_question(found.payload) if ports and ports[1] == DNS else None
        if (flow, query) in self._flows:
            return True
        self._flows.add((flow, query))
        protocol = PROTOCOLS.get(found.protocol, f"protocol {found.protocol}")
        self._counted[
            BlockedConnection(str(found.target), ports[1] if ports else None, protocol, query)
        ] += 1
        return True

    def _refuse_packet(self, found: IpPacket, data: bytes) -> None:
        """Send an ICMP "unreachable" to the sender; delivery is not awaited."""
        is_ipv4 = found.source.version == 4
        if not is_ipv4 and len(self._refusing) < 2:
            return
        code = PROHIBITED if is_ipv4 else NO_HOST6 if found.protocol == TCP else NO_PORT6
        message = struct.pack("!BBHI", UNREACHABLE if is_ipv4 else UNREACHABLE6, code, 0, 0)
        message += data[:QUOTED_BYTES]
        if is_ipv4:  # the kernel computes it for IPv6
            message = message[:2] + struct.pack("!H", compute_ip_checksum(message)) + message[4:]
        try:
            self._refusing[0 if is_ipv4 else 1].sendto(message, (str(found.source), 0))
        except OSError:
            return  # the sender waits for its own timeout


def parse_dns_question(payload: bytes) -> str | None:
    """Parse the name queried by a DNS message over UDP; None if it cannot be parsed."""
    labels, offset = [], 8 + 12
    while offset < len(payload) and payload[offset]:
        length = payload[offset]
        label = payload[offset + 1 : offset + 1 + length]
        if length > 63 or len(label) < length:
            return None
        labels.append(label.decode("ascii", "replace"))
        offset += 1 + length
    return ".".join(labels) or None


def compute_ip_checksum(data: bytes) -> int:
    """Compute the Internet checksum (RFC 1071)."""
    padded = data + bytes(len(data) % 2)
    total: int = sum(struct.unpack(f"!{len(padded) // 2}H", padded))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF


# The packets that are passed on: of TCP over IPv4 only those that open or refuse a connection, of
# UDP none within loopback. The rest is traffic between the agent and the server. Classic BPF
# (linux/filter.h) as code, jump if true, jump if false, operand.
_PACKET_FILTER = (
    (0x20, 0, 0, 0xFFFFF004),  # 0 the packet's type
    (0x15, 0, 12, PACKET_OUTGOING),  # not outgoing: drop
    (0x30, 0, 0, 0),  # 2 IP version
    (0x54, 0, 0, 0xF0),  # 3
    (0x15, 0, 8, 0x40),  # not IPv4: accept
    (0x30, 0, 0, 9),  # 5 protocol
    (0x15, 0, 3, TCP),  # 6 not TCP: to 10
    (0xB1, 0, 0, 0),  # 7 length of the IP header
    (0x50, 0, 0, 13),  # 8 flags
    (0x45, 3, 4, SYN | RST),  # accept or drop
    (0x15, 0, 2, UDP),  # not UDP: accept
    (0x30, 0, 0, 16),  # 11 the target's first byte
    (0x15, 1, 0, 127),  # drop or accept
    (0x06, 0, 0, 0xFFFF),  # accept
    (0x06, 0, 0, 0),  # drop
)


def attach_packet_filter(seen: socket.socket) -> None:
    """Attach a filter, so that the kernel drops packets that are not counted."""
    code = ctypes.create_string_buffer(
        b"".join(struct.pack("=HBBI", *each) for each in _PACKET_FILTER)
    )
    program = struct.pack("@HP", len(_PACKET_FILTER), ctypes.addressof(code))
    seen.setsockopt(socket.SOL_SOCKET, SO_ATTACH_FILTER, program)
