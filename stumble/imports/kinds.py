"""Which format a file is, by what it holds."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from stumble.imports.documents import load
from traces.formats import FORMATS, Format, vcr
from traces.formats.files import content, head
from traces.formats.traffic import Traffic


@dataclass(frozen=True, slots=True, kw_only=True)
class Wire:
    """A format of traffic: how its files begin, and how they are read."""

    source: str
    name: str
    fits: Callable[[bytes], bool]
    read: Callable[[Path], Traffic]


_YAML = re.compile(rb"(?m)^(interactions|requests):")
_JSON = re.compile(rb'[{,]\s*"(interactions|requests)"\s*:\s*\[')


def _is_cassette(start: bytes) -> bool:
    said = _JSON if start.lstrip()[:1] == b"{" else _YAML
    return said.search(start) is not None


def _cassette(path: Path) -> Traffic:
    return vcr.traffic(load(content(path)))


WIRES: tuple[Wire, ...] = (
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
    raise ValueError(f"none of the formats known here: {known}")
