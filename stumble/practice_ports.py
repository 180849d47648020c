"""On which ports the practice world is served, for the commands that look for it later."""

import json
import socket
from dataclasses import asdict, dataclass
from pathlib import Path

from stumble.home import ca_folder


@dataclass(frozen=True, slots=True)
class PracticePorts:
    """Ports of loopback."""

    shop: int = 8902
    model: int = 8901


def free_ports() -> PracticePorts:
    """The usual ports, or two free ones if one of them is taken."""
    usual = PracticePorts()
    if _is_free(usual.shop) and _is_free(usual.model):
        return usual
    return PracticePorts(shop=0, model=0)


def remember_ports(ports: PracticePorts) -> None:
    """Note where the world is served now; kept afterwards, since a replay asks the same URLs."""
    path = _path()
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(asdict(ports)))


def served_ports() -> PracticePorts:
    """Where the world was served last by this user, or the usual ports."""
    try:
        found = json.loads(_path().read_text())
        return PracticePorts(shop=int(found["shop"]), model=int(found["model"]))
    except (OSError, ValueError, KeyError, TypeError):
        return PracticePorts()


def _path() -> Path:
    return ca_folder().parent / "practice.json"


def _is_free(port: int) -> bool:
    with socket.socket() as tried:
        tried.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            tried.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True
