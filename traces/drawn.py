"""Values that a client draws for a run or a request: ids that mean nothing, times since the epoch.

A value is drawn by its form and by the name of its place: `x-request-id` with a UUID is, a tenant
with a UUID is not, and neither is a request id that is a word.
"""

import re
from functools import lru_cache

_EPOCH = r"1[5-9]\d{8}(?:\d{3}|\d{6})?(?:\.\d+)?"
_HEX = r"[0-9A-Fa-f]{8}(?:-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}|[0-9A-Fa-f]{16,}"
IDENTITY = re.compile(_HEX)
"""A value that stands for one thing: a UUID, or 16 hexadecimal digits and more."""
DRAWN = re.compile(rf"(?<![0-9A-Za-z])(?:{_HEX}|{_EPOCH})(?![0-9A-Za-z])")
"""An identity, or a time since the epoch in seconds or smaller units."""

_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")
_OF_A_RUN = frozenset(
    ("attempt", "context", "conversation", "idempotency", "installation", "interaction",
     "invocation", "message", "nonce", "request", "run", "session", "sessionid", "span", "started",
     "thread", "threadid", "time", "timestamp", "trace", "turn", "ts", "window", "windowid")
)  # fmt: skip
_CHOOSES = frozenset(
    ("account", "beta", "customer", "deployment", "model", "org", "organization", "owner",
     "project", "region", "resource", "subscription", "team", "tenant", "user", "version",
     "workspace")
)  # fmt: skip


@lru_cache(maxsize=4096)
def is_of_a_run(name: str) -> bool:
    """True if a place of this name holds what is drawn for each run or each request."""
    return bool(_words(name) & _OF_A_RUN)


@lru_cache(maxsize=4096)
def is_of_a_call(name: str) -> bool:
    """True if a place of this name holds the id that a model gave to a call of a tool."""
    words = _words(name)
    return bool(words & {"call", "callid", "tooluseid"}) or {"tool", "use"} <= words


@lru_cache(maxsize=4096)
def chooses(name: str) -> bool:
    """True if a place of this name holds what an answer depends on: a tenant, a version."""
    return bool(_words(name) & _CHOOSES)


def _words(name: str) -> set[str]:
    return {word.lower() for word in _WORD.findall(name)}
