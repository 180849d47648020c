"""What to search for one secret, and how what was found in base64 is put right.

In base64 a text looks one of three ways, by its place in the groups of three bytes; only the
characters that no neighbour touches are searched, and the whole groups are put right.
"""

import re
from base64 import b64decode, b64encode
from collections.abc import Iterator
from dataclasses import dataclass

from traces.patterns import MARKS, RUN

_URL_SAFE = bytes.maketrans(b"+/", b"-_")
_STANDARD = bytes.maketrans(b"-_", b"+/")
_BASE64 = re.compile(rb"[A-Za-z0-9+/_-]")
_SKIP = (0, 2, 3)


@dataclass(frozen=True, slots=True)
class Needle:
    """One text to search, in a text whose escapes are undone."""

    text: bytes
    secret: bytes
    anchor: bytes
    """Its longest run of token characters, if of 20 or more: where that is not, it is not."""
    shift: int | None = None
    """The place in a group of base64, None outside it."""


def needles(secret: bytes) -> Iterator[Needle]:
    """All that one secret looks like."""
    yield _needle(secret, secret)
    if b" " in secret:
        yield _needle(secret.replace(b" ", b"+"), secret)
    for shift in range(3):
        bits = 8 * (shift + len(secret))
        core = b64encode(bytes(shift) + secret)[_SKIP[shift] : bits // 6]
        yield _needle(core, secret, shift)
        if (safe := core.translate(_URL_SAFE)) != core:
            yield _needle(safe, secret, shift)


def _needle(text: bytes, secret: bytes, shift: int | None = None) -> Needle:
    runs = re.finditer(rb"a+", text.translate(MARKS))
    longest = max(runs, key=lambda run: run.end() - run.start(), default=None)
    run = text[longest.start() : longest.end()] if longest else b""
    return Needle(text, secret, run if len(run) >= RUN else b"", shift)


def in_base64(text: bytes, at: int, needle: Needle, instead: bytes) -> tuple[int, int, bytes]:
    """Start, stop and new text, for a needle of base64 that was found in `text` at `at`.

    Decoded, it is the old text with `instead` in place of the secret and nothing else changed.
    """
    shift, stop = needle.shift or 0, at + len(needle.text)
    first = at - 1 if shift and at and _BASE64.match(text, at - 1) else at
    mixed = 8 * (shift + len(needle.secret)) % 6
    last = stop + 1 if mixed and _BASE64.match(text, stop) else stop
    lead = _SKIP[shift] - (at - first)
    region = b"A" * lead + text[first:last].translate(_STANDARD)
    region += b"A" * (-len(region) % 4)
    plain = b64decode(region)
    bent = plain[:shift] + instead + plain[shift + len(needle.secret) :]
    said = b64encode(bent)[lead : lead + last - first]
    url_safe = any(byte in text[first:last] for byte in b"-_")
    return first, last, said.translate(_URL_SAFE) if url_safe else said
