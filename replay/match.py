"""Finding the recorded answer to a request: exact bytes first, canonical JSON only on a miss.

Exact is a hash of method, URL and body, so the cost does not grow with the recording. The
canonical key forgives spacing, key order and escapes, and what stands where a secret stood: the
key of another user has another length and maybe another place in the order of secrets. Headers
do not count: auth and user agents differ from one machine to the next. Among equals the order
of the recording holds: the second time the same thing is asked, the second answer is given.
"""

from collections.abc import Iterable
from hashlib import blake2b

from traces.canonical import canonical
from traces.encoding import plain
from traces.model import Exchange, Request
from traces.redact import PLACEHOLDER


def exact(request: Request) -> bytes:
    """The key of a request by its very bytes."""
    return _digest(request.method, request.url, request.body)


def alike(request: Request) -> bytes | None:
    """The key of a request by what it says; None where only its very bytes can tell.

    That is so for a body that is no JSON, unless a secret stood there or in the URL.
    """
    body = plain(request.headers, request.body)
    url = PLACEHOLDER.sub(b"REDACTED", request.url.encode("utf-8", "surrogatepass"))
    try:
        said = PLACEHOLDER.sub(b"REDACTED", canonical(body or b""))
    except ValueError:
        said = PLACEHOLDER.sub(b"REDACTED", body or b"")
        if b"REDACTED" not in url and b"REDACTED" not in said:
            return None
    return _digest(request.method, url.decode("utf-8", "surrogatepass"), said)


def _digest(method: str, url: str, body: bytes) -> bytes:
    head = f"{method} {url}".encode("utf-8", "surrogatepass")
    return blake2b(len(head).to_bytes(8) + head + body, digest_size=16).digest()


class Index:
    """The exchanges of a recording, each to be used once."""

    def __init__(self, exchanges: Iterable[Exchange]) -> None:
        self.exchanges = tuple(sorted(exchanges, key=lambda exchange: exchange.started))
        self._exact: dict[bytes, list[int]] = {}
        self._alike: dict[bytes, list[int]] | None = None
        self._used: set[int] = set()
        for place, exchange in enumerate(self.exchanges):
            self._exact.setdefault(exact(exchange.request), []).append(place)

    def find(self, request: Request) -> Exchange | None:
        """The next unused exchange that fits; None where there is none (left)."""
        found = self._next(self._exact.get(exact(request), ()))
        if found is None and (key := alike(request)) is not None:
            found = self._next(self._by_meaning().get(key, ()))
        return found

    def unused(self) -> tuple[Exchange, ...]:
        """The exchanges that nothing has asked for yet."""
        return tuple(x for place, x in enumerate(self.exchanges) if place not in self._used)

    def _next(self, places: Iterable[int]) -> Exchange | None:
        for place in places:
            if place not in self._used:
                self._used.add(place)
                return self.exchanges[place]
        return None

    def _by_meaning(self) -> dict[bytes, list[int]]:
        if self._alike is None:
            self._alike = {}
            for place, exchange in enumerate(self.exchanges):
                if (key := alike(exchange.request)) is not None:
                    self._alike.setdefault(key, []).append(place)
        return self._alike
