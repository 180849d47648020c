"""Which format a file is, by what it holds."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from stumble.imports.documents import load
from traces.formats import FORMATS, Format, har, vcr
from traces.formats.files import content, head
from traces.formats.traffic import Traffic


@dataclass(frozen=True, slots=True, kw_only=True)
class Wire:
    """A format of traffic: how its files begin, and how they are read."""

    source: str
    name: str
    fits: Callable[[bytes], bool]
    read: Callable[[Path], Traffic]


YAML = 32 << 20
"""Bytes of a cassette; parsed and written it takes some seven times as many."""
_YAML = re.compile(rb"(?m)^(interactions|requests):")
_JSON = re.compile(rb'[{,]\s*"(interactions|requests)"\s*:\s*\[')


def _is_cassette(start: bytes) -> bool:
    said = _JSON if start.lstrip()[:1] == b"{" else _YAML
    return said.search(start) is not None


def _cassette(path: Path) -> Traffic:
    return vcr.traffic(load(content(path, YAML)))


_HAR = re.compile(rb'(?:\xef\xbb\xbf)?\s*\{\s*"log"\s*:')


_FLOW = re.compile(rb"\d{1,12}:")


def _is_flows(start: bytes) -> bool:
    return _FLOW.match(start) is not None


def _is_har(start: bytes) -> bool:
    return _HAR.match(start) is not None


def _flows(path: Path) -> Traffic:
    from recorder import flow_files

    return flow_files.traffic(path)


WIRES: tuple[Wire, ...] = (
    Wire(source="mitmproxy", name="flow files of mitmproxy", fits=_is_flows, read=_flows),
    Wire(source=har.SOURCE, name=har.NAME, fits=_is_har, read=har.traffic),
    Wire(source=vcr.SOURCE, name=vcr.NAME, fits=_is_cassette, read=_cassette),
)


def kind(path: Path) -> Wire | Format:
    """The format that a file fits; ValueError where it is none that is known."""
    start = head(path)
    for wire in WIRES:
        if wire.fits(start):
            return wire
    for each in FORMATS:
        if each.fits(path):
            return each
    if start and not start.strip():
        raise ValueError("it is empty")
    known = "; ".join([*(wire.name for wire in WIRES), *(each.NAME for each in FORMATS)])
    known = re.sub(r" \([^)]*\)", "", known)
    raise ValueError(f"none of the formats known here: {known}")
