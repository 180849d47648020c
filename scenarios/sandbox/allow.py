"""Whom a sandboxed agent may reach: by name, and never this machine's own network by a pattern."""

import asyncio
import ipaddress
import socket
from collections.abc import Iterable
from dataclasses import dataclass
from fnmatch import fnmatchcase

NOT_LISTED = "not on the allow list"
NEAR = "an address of this machine or of its network"


@dataclass(frozen=True, slots=True)
class Allow:
    """A list of `host`, `host:port`, `*.example.com` or `*`, in small letters.

    Who is listed by its own name or address is let through wherever it is. A pattern lets
    through the public internet only: not loopback, link-local (the metadata services of clouds),
    private and reserved ranges, and no address of this machine. Names are looked up here for
    that; the proxy behind looks them up again, so a name server that lies the second time is
    believed. A name that cannot be looked up here is let through: then the proxy cannot either,
    or it is one of a recording.
    """

    entries: tuple[str, ...] = ()

    async def refusal(self, host: str, port: int) -> str | None:
        """Why this may not be reached; None where it may."""
        name = host.lower().rstrip(".").removeprefix("[").removesuffix("]")
        if any(entry in (name, f"{name}:{port}", f"[{name}]:{port}") for entry in self.entries):
            return None
        if not any(fnmatchcase(name, entry) for entry in self.entries if "*" in entry):
            return NOT_LISTED
        return NEAR if any(map(near, await _addresses(name, port))) else None


def near(text: str) -> bool:
    """Whether an address is not of the public internet, or is one of this machine's own."""
    address = ipaddress.ip_address(text.partition("%")[0])
    mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    address = mapped or address
    far = address.is_global and not address.is_multicast and not address.is_reserved
    return not far or _ours(str(address))


async def _addresses(name: str, port: int) -> Iterable[str]:
    loop = asyncio.get_running_loop()
    try:
        found = await loop.getaddrinfo(name, port, type=socket.SOCK_STREAM)
    except (socket.gaierror, UnicodeError):
        return ()
    return {str(each[4][0]) for each in found}


def _ours(address: str) -> bool:
    """Only an address of one's own can be bound."""
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    with socket.socket(family, socket.SOCK_DGRAM) as trying:
        try:
            trying.bind((address, 0))
        except OSError:
            return False
    return True
