"""Ports of the practice world, stored for later commands."""

import json
import socket
from pathlib import Path

from msgspec import Struct
from msgspec.structs import asdict

from stumble.user_data.paths import ca_folder


class PracticePorts(Struct, frozen=True):
    """Loopback ports of the practice servers."""

    shop: int = 8902
    model: int = 8901


def free_ports() -> PracticePorts:
    """Return the usual ports, or 0 (any free port) for both if one is taken."""
    usual = PracticePorts()
    if _is_free_port(usual.shop) and _is_free_port(usual.model):
        return usual
    return PracticePorts(shop=0, model=0)


def remember_ports(ports: PracticePorts) -> None:
    """Store the ports; they are kept after the servers end, as replays use the same URLs."""
    path = _find_ports_file()
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(asdict(ports)))


def served_ports() -> PracticePorts:
    """Return the ports that this user served last, or the usual ports."""
    try:
        ports = json.loads(_find_ports_file().read_text())
        return PracticePorts(shop=int(ports["shop"]), model=int(ports["model"]))
    except (OSError, ValueError, KeyError, TypeError):
        return PracticePorts()


def _find_ports_file() -> Path:
    return ca_folder().parent / "practice.json"


def _is_free_port(port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True
