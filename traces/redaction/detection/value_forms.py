"""Whether a value looks like a secret, or like a template, a path or an identifier."""

import re
from itertools import pairwise

NO_VALUE = re.compile(
    rb"(?:REDACTED|RD)[a-z]\d+x*Z|[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)+|0x[0-9A-Fa-f]{1,16}"
)
_MIXED_CASE = rb"(?=[A-Z0-9]*[a-z])(?=[a-z0-9]*[A-Z])"
_RANDOM_PART = re.compile(
    rb"\.(?:(?=(?:[A-Za-z]{1,12}\d{1,4}){3})%b[A-Za-z0-9]{16,24}"
    rb"|(?=(?:[A-Za-z]{1,32}\d{1,8}){3})%b[A-Za-z0-9]{25,64})\Z" % (_MIXED_CASE, _MIXED_CASE)
)
_ESCAPE = re.compile(rb"\\+u[0-9a-fA-F]{4}|%[0-9a-fA-F]{2}")
_PARTS = re.compile(rb"[A-Za-z]+|[0-9]+")
_WORD_PARTS = re.compile(rb"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|[0-9]+")
_LONGEST_RANDOM_PART = 2.5
"""Mean length of the parts of a random text; the words of an identifier are longer."""
_LONGEST_WORDLESS_PART = 5.0
"""The same of a text in which a part can hardly be pronounced."""
_CONSONANTS = re.compile(rb"(?i)(?!ngth|ghts|tchs)[bcdfghjklmnpqrstvwxz]{4}|[jqxz][bcdfgjkmpqvwxz]")
_CODE = re.compile(
    rb"[\[$<{%*(),;\]]|[~.]?/[A-Za-z]+(?:[/._-][A-Za-z]|\Z)|https?:"
    rb"|(?s:.*(?:\{\w*\}|\{\{|\$\{|<\w|\.\.\.|REDACTED))"
)
"""The beginning or content of a template or a path."""


def is_plausible_secret(value: bytes) -> bool:
    """True for letters with digits that are not a template; escapes count as neither."""
    plain = _ESCAPE.sub(b"", value) if b"%" in value or b"\\" in value else value
    if len(plain) < 5 or len(set(plain)) < 5 or _is_code_or_identifier(plain):
        return False
    has_digit = any(48 <= byte < 58 for byte in plain)
    return has_digit and (plain.lower() != plain or plain.upper() != plain)


def is_plausible_password(value: bytes) -> bool:
    """True also for mixed case with a sign that names do not contain."""
    mixed = value.lower() != value != value.upper()
    signs = any(byte in b"!@#$%^&*?~" for byte in value)
    return is_plausible_secret(value) or (
        mixed and signs and len(value) >= 8 and not _is_code_or_identifier(value)
    )


def is_spoken_password(value: bytes) -> bool:
    """True for what no word of a sentence is: letters, digits and a sign, or a random token."""
    signs = any(byte in b"!@#$%^&*?~+" for byte in value[:-1])
    return (signs and len(value) >= 8 and is_plausible_secret(value)) or (
        len(value) >= 12 and is_random_token(value)
    )


def is_random_token(value: bytes) -> bool:
    """True for letters and digits that alternate at least three times, or change case as often."""
    parts = _PARTS.findall(value)
    changes = sum(a.isdigit() != b.isdigit() for a, b in pairwise(parts))
    return (
        len(value) >= 8
        and (changes >= 3 or _changes_case_at_random(value))
        and len(set(value)) >= 5
        and not _is_code_or_identifier(value)
    )


def _changes_case_at_random(value: bytes) -> bool:
    """True for both cases and a digit, in parts that are no words: `ay4cdFHAwKszIN`.

    They are too short, or one has more consonants in a row than words do: `JhhukchGgkmn5Kq`.
    """
    if len(value) < 10 or not value.isalnum() or value.lower() == value or value.upper() == value:
        return False
    parts = _WORD_PARTS.findall(value)
    if not any(map(bytes.isdigit, parts)):
        return False
    length = len(value) / len(parts)
    return length <= _LONGEST_RANDOM_PART or (
        length <= _LONGEST_WORDLESS_PART and any(map(_CONSONANTS.search, parts))
    )


def _is_code_or_identifier(value: bytes) -> bool:
    if _CODE.match(value) is not None:
        return True
    return NO_VALUE.fullmatch(value) is not None and _RANDOM_PART.search(value) is None
