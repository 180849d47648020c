"""Decide which hosts a sandboxed agent may reach; a pattern never matches the local network."""

import asyncio
import ipaddress
import socket
from collections.abc import Iterable
from dataclasses import dataclass
from fnmatch import fnmatchcase

NOT_LISTED = "not on the allow list"
INTERNAL_ADDRESS = "an address of this machine or of its network"


@dataclass(frozen=True, slots=True)
class EgressAllowlist:
    """A list of `host`, `host:port`, `*.example.com` or `*`, in lower case.

    A host listed by its own name or address is allowed at any address. A pattern allows the public
    internet only: not loopback, link-local (cloud metadata services), private and reserved ranges,
    nor any address of this machine. Names are resolved here for that check; the upstream proxy
    resolves them again, so a name server that changes its answer is not detected. A name that
    cannot be resolved here is allowed: then the proxy cannot resolve it either, or it is in a
    recording.
    """

    entries: tuple[str, ...] = ()

    async def find_refusal(self, host: str, port: int) -> str | None:
        """Return why a host may not be reached; None if it may."""
        name = host.lower().rstrip(".").removeprefix("[").removesuffix("]")
        if any(entry in (name, f"{name}:{port}", f"[{name}]:{port}") for entry in self.entries):
            return None
        if not any(fnmatchcase(name, entry) for entry in self.entries if "*" in entry):
            return NOT_LISTED
        return (
            INTERNAL_ADDRESS
            if any(map(is_internal_address, await _resolve_host(name, port)))
            else None
        )


def is_internal_address(text: str) -> bool:
    """Return whether an address is not on the public internet, or is this machine's own."""
    address = ipaddress.ip_address(text.partition("%")[0])
    mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    address = mapped or address
    is_public = address.is_global and not address.is_multicast and not address.is_reserved
    return not is_public or _is_own_address(str(address))


async def _resolve_host(name: str, port: int) -> Iterable[str]:
    loop = asyncio.get_running_loop()
    try:
        addresses = await loop.getaddrinfo(name, port, type=socket.SOCK_STREAM)
    except (socket.gaierror, UnicodeError):
        return ()
    return {str(each[4][0]) for each in addresses}


def _is_own_address(address: str) -> bool:
    """Return whether an address is this machine's own: only those can be bound."""
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    with socket.socket(family, socket.SOCK_DGRAM) as probe:
        try:
            probe.bind((address, 0))
        except OSError:
            return False
    return True
