"""What is read off packets; the packets themselves are made by test_recorder_cage.py."""

import struct

from hypothesis import given
from hypothesis import strategies as st

from recorder.agent.blocked_connections import (
    BlockedConnection,
    compute_ip_checksum,
    parse_dns_question,
    parse_ip_packet,
)


def dns(name: str) -> bytes:
    labels = b"".join(bytes((len(part),)) + part.encode() for part in name.split("."))
    return bytes(8) + struct.pack("!HHHHHH", 7, 0x100, 1, 0, 0, 0) + labels + b"\0\0\1\0\1"


def test_a_name_server_is_asked_for_a_name() -> None:
    assert parse_dns_question(dns("api.example.com")) == "api.example.com"
    assert parse_dns_question(dns("api.example.com")[:25]) is None
    assert parse_dns_question(b"") is None


def test_an_attempt_reads_as_people_write_addresses() -> None:
    assert str(BlockedConnection("93.184.216.34", 443, "tcp")) == "93.184.216.34:443 tcp"
    assert str(BlockedConnection("2001:db8::5", 53, "udp", "a.b")) == "[2001:db8::5]:53 udp (a.b)"
    assert str(BlockedConnection("10.0.0.1", None, "icmp")) == "10.0.0.1 icmp"


@given(st.binary(max_size=80))
def test_no_packet_is_too_broken_to_look_at(data: bytes) -> None:
    found = parse_ip_packet(data)
    assert found is None or found.ports is None or len(found.ports) == 2
    parse_dns_question(data)


@given(st.binary(min_size=2, max_size=64).filter(lambda data: len(data) % 2 == 0))
def test_a_message_with_its_checksum_adds_up_to_nothing(data: bytes) -> None:
    summed = struct.pack("!H", compute_ip_checksum(bytes(2) + data)) + data
    assert compute_ip_checksum(summed) == 0
