"""Search texts for one secret, and its replacement inside base64.

In base64 a text has one of three forms, depending on its offset within the groups of three bytes.
Only the characters that do not depend on neighbouring bytes are searched; the replacement recodes
complete groups.
"""

import re
from base64 import b64decode, b64encode
from collections.abc import Iterator

from msgspec import Struct

from traces.redaction.detection.patterns import MIN_TOKEN_RUN, TOKEN_CHARACTER_MAP

_URL_SAFE = bytes.maketrans(b"+/", b"-_")
_STANDARD = bytes.maketrans(b"-_", b"+/")
_BASE64 = re.compile(rb"[A-Za-z0-9+/_-]")
_SKIP = (0, 2, 3)


class SecretNeedle(Struct, frozen=True):
    """One text to search, in a text whose escapes are decoded."""

    text: bytes
    secret: bytes
    anchor: bytes
    """Its longest run of 20 or more token characters; without it in a text, no needle is there."""
    shift: int | None = None
    """The offset in a group of base64; None outside base64."""


def make_needles(secret: bytes) -> Iterator[SecretNeedle]:
    """Yield all forms of one secret."""
    yield _make_needle(secret, secret)
    if b" " in secret:
        yield _make_needle(secret.replace(b" ", b"+"), secret)
    for shift in range(3):
        bits = 8 * (shift + len(secret))
        core = b64encode(bytes(shift) + secret)[_SKIP[shift] : bits // 6]
        yield _make_needle(core, secret, shift)
        if (safe := core.translate(_URL_SAFE)) != core:
            yield _make_needle(safe, secret, shift)


def _make_needle(text: bytes, secret: bytes, shift: int | None = None) -> SecretNeedle:
    runs = re.finditer(rb"a+", text.translate(TOKEN_CHARACTER_MAP))
    longest = max(runs, key=lambda run: run.end() - run.start(), default=None)
    run = text[longest.start() : longest.end()] if longest else b""
    return SecretNeedle(text, secret, run if len(run) >= MIN_TOKEN_RUN else b"", shift)


def replace_in_base64(
    text: bytes, at: int, needle: SecretNeedle, instead: bytes
) -> tuple[int, int, bytes]:
    """Return start, stop and new text for a base64 needle at offset `at` of `text`.

    Decoded, the new text is the old one with `instead` in place of the secret and nothing else
    changed.
    """
    shift, stop = needle.shift or 0, at + len(needle.text)
    first = at - 1 if shift and at and _BASE64.match(text, at - 1) else at
    mixed = 8 * (shift + len(needle.secret)) % 6
    last = stop + 1 if mixed and _BASE64.match(text, stop) else stop
    lead = _SKIP[shift] - (at - first)
    region = b"A" * lead + text[first:last].translate(_STANDARD)
    region += b"A" * (-len(region) % 4)
    plain = b64decode(region)
    replaced = plain[:shift] + instead + plain[shift + len(needle.secret) :]
    encoded = b64encode(replaced)[lead : lead + last - first]
    url_safe = any(byte in text[first:last] for byte in b"-_")
    return first, last, encoded.translate(_URL_SAFE) if url_safe else encoded
