"""Decide whether two requests are of the same identity: their logins, API keys and cookies.

Presence counts, and so does every value. A redacted value is known by its tag, which the redactor
finds by the mark on the tape. A value without a known mark stands for the recorded one only if the
recording has one value at that place (host and field), and if that

- is a login or an API key, or a cookie of a session: dummy keys, CI, the login of another home,
- is a secret with a name, or both are keys of one provider,
- or is a weak value, and its mark cannot be compared here: it was made with another user's key.

What an answer gave the agent (a refreshed token, a session) is sent back as it was given, so it
needs no such rule, and is no second identity.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from functools import cached_property, lru_cache
from urllib.parse import urlsplit

from traces.model import Headers, Request
from traces.redaction.detection.credential_names import ONE_TIME_SCHEME, is_auth_header
from traces.redaction.fingerprints import RedactionRecord, can_compare_marks
from traces.redaction.placeholder import PLACEHOLDER

_LOGIN_FIELD = re.compile(
    r"(?:proxy-)?authorization\Z|authentication\Z"
    r"|.*(?:api-?key|(?:access|auth|subscription|secret)-key"
    r"|(?:security|access|auth|session|private)-token)\Z"
)
_SESSION_COOKIE = re.compile(r"(?i)cookie .*(?:sess|sid\Z|auth|token|jwt|login)")
_EARLIER_MASK = re.compile(r"x{1,4}|[a-z]\d{1,9}x*Z")
"""A short value on a tape of an earlier version, which does not tell it from others."""
_WEAK_CLASSES = "bknp"
"""Classes of secrets that are recognised by their place alone."""
_ONE_TIME = "one-time"


def find_credentials(headers: Headers) -> dict[str, str]:
    """Return the credentials of a redacted request: field, or field and cookie name, to value.

    One that is generated for each request (a signature, Digest) has its scheme as its value.
    """
    found = dict[str, str]()
    for name, value in (pair for field in headers for pair in _split_credential_field(*field)):
        found[name] = f"{found[name]}, {value}" if name in found else value
    return found


@lru_cache(maxsize=1024)
def _split_credential_field(name: str, value: str) -> tuple[tuple[str, str], ...]:
    return tuple(_iter_credentials(name.lower(), value.strip()))


def _iter_credentials(name: str, value: str) -> Iterator[tuple[str, str]]:
    if name == "cookie":
        for part in filter(None, map(str.strip, value.split(";"))):
            cookie, _, text = part.partition("=")
            yield f"cookie {cookie.strip()}", text.strip()
    elif is_auth_header(name):
        scheme = ONE_TIME_SCHEME.match(value)
        is_one_time = scheme is not None or name.endswith("-signature")
        yield name, f"{_ONE_TIME} {scheme[0] if scheme else ''}" if is_one_time else value


class RecordedCredentials:
    """The credentials of a recording, by host and name."""

    def __init__(
        self,
        requests: Callable[[], Iterable[Request]],
        redactions: Iterable[RedactionRecord] | None,
        given_tags: Callable[[], AbstractSet[str]] = frozenset,
        key: bytes | None = None,
    ) -> None:
        """`redactions` are those of the tape, None for one of an earlier version; `given_tags`
        returns the tags that its answers contain; `key` is that of the user who replays, None for
        the one who recorded.
        """
        records = tuple(redactions or ())
        self._requests, self._read_given = requests, given_tags
        self._records = {each.tag: each for each in records}
        self._has_marks = redactions is not None
        self._is_earlier = not self._has_marks or any(r.keyed and not r.key_mark for r in records)
        self._is_comparable = key is None or can_compare_marks(records, key)

    def find_differing(
        self, host: str, recorded: Mapping[str, str], asked: Mapping[str, str]
    ) -> list[str]:
        """Return the names of the credentials in which two redacted requests differ."""
        return [
            name
            for name in {**recorded, **asked}
            if not self._is_same(host, name, recorded.get(name), asked.get(name))
        ]

    def count_identities(self, host: str, name: str) -> int:
        """Return how many values a host got under a name, without those that an answer gave."""
        return len(self._identities.get((host, name), ()))

    def _is_same(self, host: str, name: str, was: str | None, now: str | None) -> bool:
        if was == now:
            return True
        if not was or not now or was.startswith(_ONE_TIME) or now.startswith(_ONE_TIME):
            return False
        if _shorten(was) == _shorten(now):
            return True  # differs in length: another user's value of the same secret
        if self._is_earlier and _EARLIER_MASK.fullmatch(was):
            return True
        old_tag, new_tag = _find_placeholder_tag(was), _find_placeholder_tag(now)
        if not self._has_marks:
            return old_tag is not None or is_login(name)
        if new_tag in self._records or old_tag in self._given_tags:
            return False  # another secret of the recording, or not what the answer gave
        if self.count_identities(host, name) > 1:
            return False
        return is_login(name) or self._is_replaceable(old_tag, new_tag)

    def _is_replaceable(self, old_tag: str | None, new_tag: str | None) -> bool:
        record = self._records.get(old_tag or "")
        if record is None:
            return False
        if record.names or (new_tag and record.tag[0] == new_tag[0] not in _WEAK_CLASSES):
            return True
        return record.keyed and not self._is_comparable

    @cached_property
    def _given_tags(self) -> AbstractSet[str]:
        return self._read_given()

    @cached_property
    def _identities(self) -> Mapping[tuple[str, str], set[str]]:
        found = dict[tuple[str, str], set[str]]()
        for request in self._requests():
            host = read_host(request)
            for name, value in find_credentials(request.headers).items():
                if value and _find_placeholder_tag(value) not in self._given_tags:
                    found.setdefault((host, name), set()).add(_shorten(value))
        return found


def read_host(request: Request) -> str:
    """Return the host of a request, with its port."""
    return urlsplit(request.url).netloc


def is_login(name: str) -> bool:
    """Return whether any value may stand for the only one under a name: a login, a session."""
    return bool(_LOGIN_FIELD.match(name) or _SESSION_COOKIE.match(name))


def _shorten(value: str) -> str:
    return PLACEHOLDER.sub(rb"RD\1Z", value.encode("latin-1", "replace")).decode("latin-1")


def _find_placeholder_tag(value: str | None) -> str | None:
    match = PLACEHOLDER.search(value.encode("latin-1", "replace")) if value else None
    return match[1].decode() if match else None
