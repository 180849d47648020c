"""Detection of the format of a file by its content."""

import re
from collections.abc import Callable
from pathlib import Path

from msgspec import Struct

from stumble.imports.safe_yaml import parse_safe_yaml
from traces.importers import FORMATS, ImportFormat, har, mock_servers, vcr
from traces.importers.shared.file_reader import read_file_head, read_unpacked_file
from traces.importers.shared.http_traffic import ImportedTraffic


class TrafficFormat(Struct, frozen=True, kw_only=True):
    """A format of traffic: a test of the first bytes, and a reader."""

    source: str
    name: str
    fits: Callable[[bytes], bool]
    read: Callable[[Path], ImportedTraffic]


LARGEST_CASSETTE = 32 << 20
"""Most bytes of a cassette; parsing and writing takes about seven times as much memory."""
UNKNOWN_FORMAT = "none of the formats known here"
_YAML = re.compile(rb"(?m)^(interactions|requests|http_interactions):")
_JSON = re.compile(rb'[{,]\s*"(interactions|requests|http_interactions)"\s*:\s*\[')


def _is_cassette(start: bytes) -> bool:
    pattern = _JSON if start.lstrip()[:1] == b"{" else _YAML
    return pattern.search(start) is not None


def _read_cassette(path: Path) -> ImportedTraffic:
    return vcr.read_vcr_traffic(parse_safe_yaml(read_unpacked_file(path, LARGEST_CASSETTE)))


_HAR = re.compile(rb'(?:\xef\xbb\xbf)?\s*\{\s*"log"\s*:')


_FLOW = re.compile(rb"\d{1,12}:")


def _is_flows(start: bytes) -> bool:
    return _FLOW.match(start) is not None


def _is_har(start: bytes) -> bool:
    return _HAR.match(start) is not None


def _read_mitm_flows(path: Path) -> ImportedTraffic:
    from recorder import flow_files

    return flow_files.read_mitm_flow_file(path)


TRAFFIC_FORMATS: tuple[TrafficFormat, ...] = (
    TrafficFormat(
        source="mitmproxy", name="flow files of mitmproxy", fits=_is_flows, read=_read_mitm_flows
    ),
    TrafficFormat(source=har.SOURCE, name=har.NAME, fits=_is_har, read=har.read_har_traffic),
    TrafficFormat(source=vcr.SOURCE, name=vcr.NAME, fits=_is_cassette, read=_read_cassette),
    TrafficFormat(
        source="nock",
        name="recordings of nock",
        fits=mock_servers.is_nock,
        read=mock_servers.read_nock,
    ),
    TrafficFormat(
        source="hoverfly",
        name="simulations of hoverfly",
        fits=mock_servers.is_hoverfly,
        read=mock_servers.read_hoverfly,
    ),
    TrafficFormat(
        source="wiremock",
        name="mappings of WireMock",
        fits=mock_servers.is_wiremock,
        read=mock_servers.read_wiremock,
    ),
)


def detect_file_format(path: Path) -> TrafficFormat | ImportFormat:
    """Return the format of a file. Raises ValueError if it is unknown."""
    start = read_file_head(path)
    for wire in TRAFFIC_FORMATS:
        if wire.fits(start):
            return wire
    for each in FORMATS:
        if each.can_import(path):
            return each
    if start and not start.strip():
        raise ValueError("it is empty")
    known_names = "; ".join(
        [*(wire.name for wire in TRAFFIC_FORMATS), *(each.NAME for each in FORMATS)]
    )
    known_names = re.sub(r" \([^)]*\)", "", known_names)
    raise ValueError(f"{UNKNOWN_FORMAT}: {known_names}")
