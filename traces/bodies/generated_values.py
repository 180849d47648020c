"""Values that a client generates per run or request: meaningless ids, times since the epoch.

Both the form of a value and the name of its place decide: `x-request-id` with a UUID is generated,
a tenant with a UUID is not, and neither is a request id that is a word.
"""

import re
from functools import lru_cache

_EPOCH = r"1[5-9]\d{8}(?:\d{3}|\d{6})?(?:\.\d+)?"
_HEX = r"[0-9A-Fa-f]{8}(?:-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}|[0-9A-Fa-f]{16,}"
IDENTITY_VALUE = re.compile(_HEX)
"""A value that identifies one thing: a UUID, or 16 or more hexadecimal digits."""
_TOKEN = (
    r"(?=(?:[A-Za-z]*\d){2})(?:(?=(?:[a-z\d]*[A-Z]){2})(?=(?:[A-Z\d]*[a-z]){2})[0-9A-Za-z]{20,}"
    r"|(?=[a-z\d]*[A-Z])(?=[A-Z\d]*[a-z])[0-9A-Za-z]{24,})"
)
"""Of random tokens of opencode, which begin with 12 hexadecimal digits, one of 2,000 is none."""
GENERATED_VALUE = re.compile(rf"(?<![0-9A-Za-z])(?:{_HEX}|{_EPOCH}|{_TOKEN})(?![0-9A-Za-z])")
"""An identity, a time since the epoch in seconds or smaller units, or 20 letters and digits."""

_TIME = re.compile(_EPOCH)
_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")
_RUN_SCOPED_WORDS = frozenset(
    ("attempt", "context", "conversation", "correlation", "idempotency", "installation",
     "interaction", "invocation", "message", "nonce", "request", "run", "session", "sessionid",
     "span", "started", "thread", "threadid", "time", "timestamp", "trace", "turn", "ts", "window",
     "windowid")
)  # fmt: skip
_ANSWER_AFFECTING_WORDS = frozenset(
    ("account", "beta", "customer", "deployment", "model", "org", "organization", "owner",
     "project", "region", "resource", "subscription", "team", "tenant", "version",
     "workspace")
)  # fmt: skip

_PERSON_WORDS = frozenset(("as", "behalf", "by", "for", "user"))
"""`X-Run-As` names somebody, not a run."""


def are_of_one_kind(one: str, two: str) -> bool:
    """Return whether two generated values are both times, or both ids."""
    return (_TIME.fullmatch(one) is None) is (_TIME.fullmatch(two) is None)


@lru_cache(maxsize=4096)
def is_run_scoped_name(name: str) -> bool:
    """True if a field of this name contains a value generated per run or request."""
    words = _split_field_name(name)
    return bool(words & _RUN_SCOPED_WORDS) and not words & _PERSON_WORDS


@lru_cache(maxsize=4096)
def is_call_id_name(name: str) -> bool:
    """True if a field of this name contains the id that a model assigned to a tool call."""
    words = _split_field_name(name)
    return bool(words & {"call", "callid", "tooluseid"}) or {"tool", "use"} <= words


@lru_cache(maxsize=4096)
def is_answer_affecting_name(name: str) -> bool:
    """True if a response depends on a field of this name: a tenant, a version."""
    return bool(_split_field_name(name) & _ANSWER_AFFECTING_WORDS)


def _split_field_name(name: str) -> set[str]:
    return {word.lower() for word in _WORD.findall(name)}
