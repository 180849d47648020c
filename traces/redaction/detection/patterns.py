"""Forms of unknown secrets, and the parts of a text in which they can occur.

One regex for all would take 0.7 ms per 100 KB of JSON and one search per prefix as much, so both
search only suspects: the runs of 20 or more token characters, with the 8 bytes before each. A run
is found by mapping token characters to one byte and searching twenty of them, which `bytes.find`
does by skipping. (For bytes `find` is faster than `in`, which first tests for a number and raises
an error internally.)
"""

import re

from traces.redaction.detection import assignments, placed_values
from traces.redaction.detection.command_places import find_open_pipe
from traces.redaction.detection.file_places import is_encoded_login
from traces.redaction.detection.prefilter import (
    ADDRESS,
    ASSIGNED,
    EVERYTHING,
    FIRST_PLACE,
    PLACED,
    TOKENS,
    find_begun_places,
    find_name_ends,
    find_openings,
)
from traces.redaction.detection.token_formats import (
    BY_BEGINNING,
    LONG_BEGINNING,
    LONGEST_BEGINNING,
    LONGEST_TOKEN,
    PARTIAL_BEGINNINGS,
    PARTIAL_ENDS,
    SHORTEST_UNPREFIXED,
    UNPREFIXED,
    compile_beginning,
    compile_short_beginning,
    compile_token_format,
)

MIN_TOKEN_RUN = 20
_CHARACTERS = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-+/=."
TOKEN_CHARACTER_MAP = bytes(97 if byte in _CHARACTERS else 32 for byte in range(256))
_RUN = b"a" * MIN_TOKEN_RUN
_CONTEXT = 8

_LONG_RUN = 8192
_LARGE = 1 << 15
"""Bytes of a text from which one more native pass costs less than to search places everywhere."""
_WORD = re.compile(rb"(?<![A-Za-z0-9])|(?<=\\[nrtbf])")
_BEARER = re.compile(rb"(?i:bearer|ssws) ((?=[A-Za-z.~+/=_-]{0,64}\d)[\w.~+/=-]{20,4096})")
_BASIC = re.compile(rb"(?i:basic) ([A-Za-z0-9+/]{20,4096}={0,2})(?![A-Za-z0-9+/=])")
"""A login of RFC 7617 in a text."""
_CHAT_BOT = re.compile(rb"(?<=\d{8}):(AA[\w-]{33})(?![\w-])")
"""Telegram: the number of a bot and its token."""
_ENTRA_SECRET = re.compile(rb"(?<=[A-Za-z0-9_~.-]{3}\d)Q~([\w.~-]{31,40})(?![\w~-])")
"""Microsoft Entra: the secret of a client."""
_BRAINTREE = re.compile(rb"\$(?:production|sandbox)\$[a-z0-9]{16}\$([0-9a-f]{32})(?!\w)")
_SPLIT_TOKENS = ((b":AA", _CHAT_BOT), (b"Q~", _ENTRA_SECRET))
"""Tokens whose beginning a character outside of tokens ends, so that it is in no suspect run."""
_AFTER_WORD = re.compile(rb"(?:(?i:bearer |ssws |basic )|\d{8}:|\dQ~|\$[a-z0-9]{16}\$)\Z")

_PEM, _DASHES = b"PRIVATE KEY", b"-----"  # a repeated byte is found sooner
_OPEN_BLOCK = re.compile(
    rb"-----BEGIN [A-Z0-9 ]{0,32}PRIVATE KEY(?: BLOCK)?-----(?!(?s:.)*-----END)"
)
MAX_OPEN_SECRET = 16_384

type PatternSecretSpan = tuple[int, int, str]
"""Start, stop and class."""


def extract_suspect_runs(data: bytes) -> bytes:
    """Return the parts of the data that can contain a secret of 20 or more token characters."""
    marks = data.translate(TOKEN_CHARACTER_MAP)
    find, parts = marks.find, dict[bytes, None]()
    at = find(_RUN)
    while at >= 0:
        stop = find(b" ", at + MIN_TOKEN_RUN)
        stop = len(data) if stop < 0 else stop
        parts[data[max(0, at - _CONTEXT) : stop]] = None
        at = find(_RUN, stop)
    return b"\n".join(parts)


def find_pattern_secrets(
    data: bytes, hay: bytes, possible: int = EVERYTHING
) -> list[PatternSecretSpan]:
    """Return start, stop and class of text that looks like a secret; `hay` is from
    `extract_suspect_runs`, `possible` from the prefilter."""
    out = _find_tokens(data, hay) if hay and possible & TOKENS else []
    if possible & ASSIGNED:
        name_ends = find_name_ends(data) if len(data) > _LARGE else None
        out += assignments.find_assigned_secrets(data, name_ends)
    if possible & ADDRESS:
        out += assignments.find_url_passwords(data)
    if possible & PLACED:
        openings = find_openings(data) if len(data) > _LARGE else None
        out += placed_values.find_placed_secrets(data, possible >> FIRST_PLACE, openings)
    return out


def _find_tokens(data: bytes, hay: bytes) -> list[PatternSecretSpan]:
    out = list[PatternSecretSpan]()
    hay = _drop_image_runs(hay)
    prefixes = set(compile_beginning().findall(b"\n" + hay))
    for short in sorted(prefixes):
        for begin, kind, pattern in BY_BEGINNING[short]:
            out += _find_prefixed_tokens(data, begin, compile_token_format(pattern), kind)
    for hint, kind, token, _ in UNPREFIXED:
        if _has_long_run(hay, hint) and token.search(hay):
            out += [(*match.span(), kind) for match in token.finditer(data)]
    for begin, split in _SPLIT_TOKENS:
        if hay.find(begin) >= 0:
            out += _find_prefixed_tokens(data, begin, split, "t")
    if hay.find(b"$") >= 0:
        out += [(*match.span(1), "t") for match in _BRAINTREE.finditer(data)]
    if _BEARER.search(hay):
        out += [
            (*match.span(1), "b") for match in _BEARER.finditer(data) if _is_not_redacted(match[1])
        ]
    if _BASIC.search(hay):
        out += [
            (*match.span(1), "b") for match in _BASIC.finditer(data) if is_encoded_login(match[1])
        ]
    return out


def _has_long_run(hay: bytes, hint: bytes) -> bool:
    """True if a run with the hint is as long as the shortest format without a prefix."""
    return hay.find(hint) >= 0 and any(
        len(part) >= SHORTEST_UNPREFIXED and hint in part for part in hay.split(b"\n")
    )


def _drop_image_runs(hay: bytes) -> bytes:
    """Return the suspects without images: long runs in which no token stands alone."""
    if len(hay) < _LONG_RUN:
        return hay
    parts = hay.split(b"\n")
    return b"\n".join(
        [p for p in parts if len(p) < _LONG_RUN or b"-" in p or b"_" in p or b"." in p]
    )


def _find_prefixed_tokens(
    data: bytes, begin: bytes, look: re.Pattern[bytes], kind: str
) -> list[PatternSecretSpan]:
    out, at = list[PatternSecretSpan](), data.find(begin)
    while at >= 0:
        if (match := look.match(data, at)) and (look.groups or _WORD.match(data, at)):
            start, stop = match.span(look.groups)
            if _is_not_redacted(data[start:stop]):
                out.append((start, stop, kind))
        at = data.find(begin, at + len(begin))
    return out


def _is_not_redacted(value: bytes) -> bool:
    return b"REDACTED" not in value


def find_open_secret(data: bytes) -> int:
    """Return the offset of an end that may grow into a secret; len(data) if none does."""
    at = data.find(_PEM, -MAX_OPEN_SECRET)
    if at >= 0 and (block := _OPEN_BLOCK.search(data, max(0, len(data) - MAX_OPEN_SECRET))):
        return block.end()
    assignment_start = min(
        assignments.find_open_assignment(data), find_open_pipe(data), _find_open_place(data)
    )
    if not data or data[-1] not in _CHARACTERS:
        return assignment_start
    return min(
        assignment_start,
        _find_open_token(data[-MAX_OPEN_SECRET:], max(0, len(data) - MAX_OPEN_SECRET)),
    )


def _find_open_place(data: bytes) -> int:
    tail = data[-placed_values.LONGEST_OPEN_PLACE :]
    started = find_begun_places(tail)
    return (
        len(data) - len(tail) + placed_values.find_open_place(tail, started)
        if started
        else len(data)
    )


def _find_open_token(tail: bytes, base: int) -> int:
    start = _find_run_start(tail)
    if _AFTER_WORD.search(tail, max(0, start - 16), start):
        return base + start
    run, short = tail[start:], max(start, len(tail) - 2 * LONGEST_TOKEN)
    context = tail[max(0, short - 2) :] if short else b"\n" + tail
    starts = [
        len(tail) - len(context) + match.start(1)
        for match in (compile_short_beginning().search(context),)
        if match
    ]
    starts += [start + at for at in (run.find(LONG_BEGINNING),) if at >= 0]
    starts += [start for *_, may in UNPREFIXED if may.match(run)]
    # The last two bytes rule out most ends.
    longest = LONGEST_BEGINNING if run[-2:] in PARTIAL_ENDS else 1
    starts += [
        len(tail) - size
        for size in range(1, min(len(run), longest) + 1)
        if run[-size:] in PARTIAL_BEGINNINGS and _WORD.match(tail, len(tail) - size)
    ]
    return base + min(starts, default=len(tail))


def _find_run_start(text: bytes) -> int:
    """Return the offset of the run of token characters at the end of the text."""
    size = 64
    while (at := text[-size:].translate(TOKEN_CHARACTER_MAP).rfind(b" ")) < 0 and size < len(text):
        size *= 8
    return max(0, len(text) - size) + at + 1
