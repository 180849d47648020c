"""When the credentials of two requests are no difference.

Another user's key is none: in `Authorization` and `Cookie` whatever it is, in a field like
`x-api-key` if it is a key (the recorded one had a name, or the look of a provider's keys that
this one has too). But a credential that is known to be another one of the recording is a
difference: two users of one service never get each other's answers.
"""

import re
from collections.abc import Iterator, Mapping
from functools import lru_cache

from traces.credentials import ONE_TIME, is_auth
from traces.model import Headers
from traces.redact import PLACEHOLDER, Redaction

_ALWAYS = frozenset(("authorization", "proxy-authorization", "cookie", "x-amz-security-token"))
_PART = re.compile(r"([^=;,\s]+)\s*=\s*([^;]*)")
_WEAK = "bknp"
"""Classes of secrets that are known by their place alone."""


def parts(headers: Headers) -> dict[str, str]:
    """The credentials of a redacted request: field, or field and cookie, to value.

    Those that are made anew for each request are left out: signatures, Digest.
    """
    return {name: value for field in headers for name, value in _of(*field)}


@lru_cache(maxsize=1024)
def _of(name: str, value: str) -> tuple[tuple[str, str], ...]:
    return tuple(_parts(name.lower(), value.strip()))


def _parts(name: str, value: str) -> Iterator[tuple[str, str]]:
    if name == "cookie":
        yield from ((f"cookie {part[1]}", part[2]) for part in _PART.finditer(value))
    elif is_auth(name) and not name.endswith("-signature") and not ONE_TIME.match(value):
        yield name, value


def unlike(
    recorded: Mapping[str, str], asked: Mapping[str, str], redactions: Mapping[str, Redaction]
) -> list[str]:
    """The names of the credentials in which two redacted requests differ."""
    return [
        name
        for name in {**recorded, **asked}
        if recorded.get(name) != asked.get(name)
        and _differ(name, recorded.get(name), asked.get(name), redactions)
    ]


def _differ(
    name: str, was: str | None, now: str | None, redactions: Mapping[str, Redaction]
) -> bool:
    one, two = _tag(was), _tag(now)
    if one is not None and two is not None:
        if one == two:
            return False  # of another length: the key of another user
        if one in redactions and two in redactions:
            return True
    if name.partition(" ")[0] in _ALWAYS:
        return False
    return not _is_key(one, two, redactions)


def _is_key(one: str | None, two: str | None, redactions: Mapping[str, Redaction]) -> bool:
    """True if both were keys as far as can be known; also on a tape of an earlier version."""
    if one is None:
        return False
    if one not in redactions:
        return not redactions
    return bool(redactions[one].names) or (two is not None and one[0] == two[0] not in _WEAK)


def _tag(value: str | None) -> str | None:
    found = PLACEHOLDER.search(value.encode("latin-1", "replace")) if value else None
    return found[1].decode() if found else None
