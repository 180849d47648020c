"""Decide whether two requests differ in their credentials.

Another user's key is no difference: any value in `Authorization` and `Cookie`, and in a field like
`x-api-key` if it is a key (the recorded one had a name, or both have the form of the same
provider's keys). But a credential known to be a different one of the recording is a difference: two
users of one service never get each other's answers.
"""

from collections.abc import Iterator, Mapping
from functools import lru_cache

from traces.lazy_pattern import compile_lazily
from traces.model import Headers
from traces.redaction.detection.credential_names import ONE_TIME_SCHEME, is_auth_header
from traces.redaction.redactor import PLACEHOLDER, RedactionRecord

_INTERCHANGEABLE_FIELDS = frozenset(
    ("authorization", "proxy-authorization", "cookie", "x-amz-security-token")
)
_COOKIE_PART = compile_lazily(r"([^=;,\s]+)\s*=\s*([^;]*)")
_WEAK_CLASSES = "bknp"
"""Classes of secrets that are recognised by their place alone."""


def find_credentials(headers: Headers) -> dict[str, str]:
    """Return the credentials of a redacted request: field, or field and cookie name, to value.

    Credentials generated for each request are excluded: signatures, Digest.
    """
    return {name: value for field in headers for name, value in _split_credential_field(*field)}


@lru_cache(maxsize=1024)
def _split_credential_field(name: str, value: str) -> tuple[tuple[str, str], ...]:
    return tuple(_iter_credentials(name.lower(), value.strip()))


def _iter_credentials(name: str, value: str) -> Iterator[tuple[str, str]]:
    if name == "cookie":
        yield from ((f"cookie {part[1]}", part[2]) for part in _COOKIE_PART.finditer(value))
    elif (
        is_auth_header(name)
        and not name.endswith("-signature")
        and not ONE_TIME_SCHEME.match(value)
    ):
        yield name, value


def find_differing_credentials(
    recorded: Mapping[str, str], asked: Mapping[str, str], redactions: Mapping[str, RedactionRecord]
) -> list[str]:
    """Return the names of the credentials in which two redacted requests differ."""
    return [
        name
        for name in {**recorded, **asked}
        if recorded.get(name) != asked.get(name)
        and _is_other_credential(name, recorded.get(name), asked.get(name), redactions)
    ]


def _is_other_credential(
    name: str, was: str | None, now: str | None, redactions: Mapping[str, RedactionRecord]
) -> bool:
    old_tag, new_tag = _find_placeholder_tag(was), _find_placeholder_tag(now)
    if old_tag is not None and new_tag is not None:
        if old_tag == new_tag:
            return False  # differs in length: another user's key
        if old_tag in redactions and new_tag in redactions:
            return True
    if name.partition(" ")[0] in _INTERCHANGEABLE_FIELDS:
        return False
    return not _is_pair_of_keys(old_tag, new_tag, redactions)


def _is_pair_of_keys(
    one: str | None, two: str | None, redactions: Mapping[str, RedactionRecord]
) -> bool:
    """Return whether both are keys, as far as known; also on a tape of an earlier version."""
    if one is None:
        return False
    if one not in redactions:
        return not redactions
    return bool(redactions[one].names) or (
        two is not None and one[0] == two[0] not in _WEAK_CLASSES
    )


def _find_placeholder_tag(value: str | None) -> str | None:
    match = PLACEHOLDER.search(value.encode("latin-1", "replace")) if value else None
    return match[1].decode() if match else None
