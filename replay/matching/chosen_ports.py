"""Servers on loopback at a port that the kernel chose, such as those of an agent for itself.

The port is another one in each run. It is a value that the client chose: one stands for another,
one-to-one, if the recording has the same method, path and query at one such port alone.
"""

import re
from collections.abc import Iterable, Mapping
from copy import replace
from functools import cached_property

from replay.matching.client_values import ValuePair
from traces.model import Exchange, Request

FIRST_CHOSEN_PORT = 32768
"""Linux gives a server that asks for any port one from here on (`ip_local_port_range`)."""
_LOOPBACK = re.compile(r"([a-z]+://)((?:127\.0\.0\.1|localhost|\[::1\]):(\d{5}))(?![^/?#])")


class ChosenPorts:
    """The addresses on loopback of a recording at chosen ports, each with what was asked there."""

    def __init__(self, exchanges: Iterable[Exchange]) -> None:
        self._exchanges, self._present = exchanges, set[str]()

    @cached_property
    def _asked(self) -> Mapping[str, set[tuple[str, str]]]:
        """What was asked at each address; read when a run first asks at a chosen port."""
        asked: dict[str, set[tuple[str, str]]] = {}
        for each in self._exchanges:
            if (address := find_chosen_address(each.request.url)) is not None:
                asked.setdefault(address, set()).add(_get_question(each.request, address))
        return asked

    def find_pair(self, request: Request, names: Mapping[str, str]) -> ValuePair | None:
        """Return the recorded address that this request's stands for, and that; None for none.

        `names` has the addresses that are known, each with that of this run.
        """
        address = find_chosen_address(request.url)
        if address is None:
            return None
        if address in self._asked:
            self._present.add(address)
            return None
        for was, now in names.items():
            if now == address:
                return was, now
        question, taken = _get_question(request, address), self._present | set(names)
        fitting = [was for was, asked in self._asked.items() if question in asked]
        free = [was for was in fitting if was not in taken]
        return (free[0], address) if len(free) == 1 else None


def find_chosen_address(url: str) -> str | None:
    """Return host and port of a URL on loopback at a chosen port; None for any other."""
    match = _LOOPBACK.match(url)
    return match[2] if match and int(match[3]) >= FIRST_CHOSEN_PORT else None


def rename_address(request: Request, pair: ValuePair) -> Request:
    """Return a request of this run with the recorded address."""
    was, now = pair
    headers = ((k, was if k.lower() == "host" and v == now else v) for k, v in request.headers)
    return replace(request, url=request.url.replace(now, was, 1), headers=tuple(headers))


def _get_question(request: Request, address: str) -> tuple[str, str]:
    return request.method, request.url.replace(address, address.rpartition(":")[0], 1)
