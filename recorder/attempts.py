"""What an agent that is alone in a network namespace tried to reach, packet by packet.

Packets to strangers end at the packet socket that `walls.py` opened; here they are refused as a
network without a way out would refuse them, so that no client waits for its time-out, and kept
as facts: protocol, address, port, for a name server the name that was asked for. A loopback
address counts where nobody was listening: outside, somebody may be.
"""

import asyncio
import ctypes
import socket
import struct
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv6Address, ip_address

TCP, UDP, ICMP, ICMP6 = 6, 17, 1, 58
PROTOCOLS: Mapping[int, str] = {TCP: "tcp", UDP: "udp", ICMP: "icmp", ICMP6: "icmp"}
SYN, RST, ACK = 2, 4, 16
UNREACHABLE, UNREACHABLE6 = 3, 1
PROHIBITED = 9
"""ICMP's code for a network that may not be reached: errno is ENETUNREACH, also for UDP."""
NO_ROUTE6, NO_HOST6, NO_PORT6 = 0, 3, 4
DNS = 53
OUTGOING = 4
OURS = frozenset({ip_address("198.51.100.1"), ip_address("2001:db8::1")})
QUOTED = 512
SO_ATTACH_FILTER = 26


@dataclass(frozen=True, slots=True, order=True)
class Attempt:
    """Somewhere that an agent tried to reach past the proxy."""

    address: str
    port: int | None
    protocol: str
    name: str | None = None
    """What a name server was asked for."""

    def __str__(self) -> str:
        """`93.184.216.34:443 tcp`, `10.0.0.53:53 udp (example.com)`."""
        host = f"[{self.address}]" if ":" in self.address else self.address
        port = "" if self.port is None else f":{self.port}"
        return f"{host}{port} {self.protocol}" + (f" ({self.name})" if self.name else "")


@dataclass(frozen=True, slots=True)
class Packet:
    """What of an IP packet is looked at; the ports None where its protocol has none."""

    protocol: int
    source: IPv4Address | IPv6Address
    target: IPv4Address | IPv6Address
    payload: bytes

    @property
    def ports(self) -> tuple[int, int] | None:
        """Those of the source and of the target."""
        if self.protocol not in (TCP, UDP) or len(self.payload) < 4:
            return None
        return struct.unpack_from("!HH", self.payload)


def packet(data: bytes) -> Packet | None:
    """An IPv4 or IPv6 packet; None for what is none, or has lost its head."""
    version = data[0] >> 4 if data else 0
    if version == 4 and len(data) >= 20:
        header = (data[0] & 15) * 4
        source, target = IPv4Address(data[12:16]), IPv4Address(data[16:20])
        return Packet(data[9], source, target, data[header:])
    if version == 6 and len(data) >= 40:
        source6, target6 = IPv6Address(data[8:24]), IPv6Address(data[24:40])
        return Packet(data[6], source6, target6, data[40:])
    return None


class Attempts:
    """Watches the sockets of one namespace, which it owns, from `open` to `close`."""

    def __init__(self, seen: socket.socket, refusing: tuple[socket.socket, ...]) -> None:
        self._seen, self._refusing = seen, refusing
        self._counted: Counter[Attempt] = Counter()
        self._flows: set[tuple[object, ...]] = set()
        self._refused: Counter[Attempt] = Counter()
        self._listened: set[Attempt] = set()
        for each in (seen, *refusing):
            each.setblocking(False)
        attach(seen)

    def open(self) -> None:
        """Begin to watch."""
        asyncio.get_running_loop().add_reader(self._seen, self._read)

    def close(self) -> None:
        """Take in what was still to be read, and end."""
        asyncio.get_running_loop().remove_reader(self._seen)
        self._read()
        for each in (self._seen, *self._refusing):
            each.close()

    @property
    def counts(self) -> Mapping[Attempt, int]:
        """How often each place was tried, the most frequent first."""
        local = {a: n for a, n in self._refused.items() if a not in self._listened}
        return dict((self._counted + Counter(local)).most_common())

    def _read(self) -> None:
        while True:
            try:
                data, (_, _, kind, *_) = self._seen.recvfrom(65535)
            except BlockingIOError:
                return
            found = packet(data)
            if kind == OUTGOING and found is not None:
                self._take(found, data)

    def _take(self, found: Packet, data: bytes) -> None:
        if found.target.is_loopback or found.target in OURS:
            self._local(found)
        elif self._count(found) and not found.target.is_multicast:
            self._refuse(found, data)

    def _local(self, found: Packet) -> None:
        """What is said in the namespace: an answer, or that there is nobody."""
        kind = found.payload[0] if found.payload else None
        if found.protocol == TCP and len(found.payload) >= 20:
            flags, port = found.payload[13], struct.unpack_from("!H", found.payload)[0]
            said = Attempt(str(found.source), port, "tcp")
            if flags & (SYN | ACK) == SYN | ACK:
                self._listened.add(said)
            elif flags & RST and found.payload[4:8] == bytes(4):
                self._refused[said] += 1
        elif (found.protocol, kind) in ((ICMP, UNREACHABLE), (ICMP6, UNREACHABLE6)):
            quoted = packet(found.payload[8:])
            if quoted is None or quoted.protocol == ICMP6:
                return
            # IPv6 refuses a stranger by itself, but tells it while connect() does not listen yet.
            early = found.protocol == ICMP6 and found.payload[1] == NO_ROUTE6
            if self._count(quoted) and early:
                self._refuse(quoted, found.payload[8:])

    def _count(self, found: Packet) -> bool:
        """Count a flow once, however often its first packet comes; False for what is no first."""
        ports = found.ports
        if found.protocol == TCP and not (len(found.payload) > 13 and found.payload[13] & SYN):
            return False
        flow = (found.protocol, found.target, ports if ports else None)
        asked = question(found.payload) if ports and ports[1] == DNS else None
        if (flow, asked) in self._flows:
            return True
        self._flows.add((flow, asked))
        protocol = PROTOCOLS.get(found.protocol, f"protocol {found.protocol}")
        self._counted[Attempt(str(found.target), ports[1] if ports else None, protocol, asked)] += 1
        return True

    def _refuse(self, found: Packet, data: bytes) -> None:
        """Tell the sender that there is no way; nobody waits for this to be delivered."""
        four = found.source.version == 4
        if not four and len(self._refusing) < 2:
            return
        code = PROHIBITED if four else NO_HOST6 if found.protocol == TCP else NO_PORT6
        said = struct.pack("!BBHI", UNREACHABLE if four else UNREACHABLE6, code, 0, 0)
        said += data[:QUOTED]
        if four:  # the kernel does it for IPv6
            said = said[:2] + struct.pack("!H", checksum(said)) + said[4:]
        try:
            self._refusing[0 if four else 1].sendto(said, (str(found.source), 0))
        except OSError:
            return  # whoever asked then waits for their own time-out


def question(payload: bytes) -> str | None:
    """The name that a DNS query over UDP asks for; None where it cannot be read."""
    labels, at = [], 8 + 12
    while at < len(payload) and payload[at]:
        length = payload[at]
        label = payload[at + 1 : at + 1 + length]
        if length > 63 or len(label) < length:
            return None
        labels.append(label.decode("ascii", "replace"))
        at += 1 + length
    return ".".join(labels) or None


def checksum(data: bytes) -> int:
    """The Internet checksum (RFC 1071)."""
    padded = data + bytes(len(data) % 2)
    total: int = sum(struct.unpack(f"!{len(padded) // 2}H", padded))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF


# Which packets are worth reading: of TCP over IPv4 only those that begin or refuse a connection,
# nothing over UDP that stays on loopback. The rest is what the agent and the performer say.
# Classic BPF (linux/filter.h), as code, jump if true, jump if false, operand.
_FILTER = (
    (0x20, 0, 0, 0xFFFFF004),  # 0 the packet's type
    (0x15, 0, 12, OUTGOING),  # 1 not on its way out: leave
    (0x30, 0, 0, 0),  # 2 IP version
    (0x54, 0, 0, 0xF0),  # 3
    (0x15, 0, 8, 0x40),  # 4 not IPv4: take
    (0x30, 0, 0, 9),  # 5 protocol
    (0x15, 0, 3, TCP),  # 6 not TCP: to 10
    (0xB1, 0, 0, 0),  # 7 length of the IP header
    (0x50, 0, 0, 13),  # 8 flags
    (0x45, 3, 4, SYN | RST),  # 9 take or leave
    (0x15, 0, 2, UDP),  # 10 not UDP: take
    (0x30, 0, 0, 16),  # 11 the target's first byte
    (0x15, 1, 0, 127),  # 12 leave or take
    (0x06, 0, 0, 0xFFFF),  # 13 take
    (0x06, 0, 0, 0),  # 14 leave
)


def attach(seen: socket.socket) -> None:
    """Let the kernel leave what is not worth reading."""
    code = ctypes.create_string_buffer(b"".join(struct.pack("=HBBI", *each) for each in _FILTER))
    program = struct.pack("@HP", len(_FILTER), ctypes.addressof(code))
    seen.setsockopt(socket.SOL_SOCKET, SO_ATTACH_FILTER, program)
