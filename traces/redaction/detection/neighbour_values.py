"""Secrets beside the field that names them: `{"name": "DB_PASSWORD", "value": "V"}`.

The name is a value itself (of a field, an attribute or an element), or the first of two arguments;
the secret is in the next field, or in the one before. JSON, YAML, XML, HTML, and calls such as
PHP's `define('DB_PASSWORD', 'V')`.
"""

import re
from collections.abc import Iterator

type Span = tuple[int, int]

REACH = 160
"""Bytes between a name and its value, at most."""
_QUOTE = rb"\\{0,15}[\"'`]"
_SPACE = rb"(?:\s|\\{1,15}[nrt])"
_VALUE = rb"([^\s\"'`\\<>]{6,4096}+)"
_FIELD = rb"(?i:[\w.-]{0,24}(?:value|val|content|plaintext|data|string|secret|text|default))"
_CALL = re.compile(rb"[(\[]" + _SPACE + rb"{0,16}" + _QUOTE + rb"\Z")
_IS = rb"(?:" + _QUOTE + rb")?" + _SPACE + rb"{0,4}[:=]" + _SPACE + rb"{0,4}"
_NAMED = rb"(?i:name|key|id|field|label|header|variable|type)"
_BEFORE = re.compile(
    _FIELD + _IS + rb"(" + _QUOTE + rb")" + _VALUE + rb"\1(?:" + _SPACE + rb"|,)[^{}<>]{0,80}?"
    + _NAMED + _IS + _QUOTE + rb"[\w.-]{0,40}\Z"
)  # fmt: skip
_NAMED_AS = re.compile(rb"(?i:[:=][ \t\r\n]{0,4}\\{0,15}[\"'`])[\w.-]{0,40}\Z")
_ARGUMENT = _QUOTE + rb"," + _SPACE + rb"{0,16}" + _QUOTE
_NEXT_FIELD = (
    rb"(?:" + _QUOTE + rb"(?:,|:?" + _SPACE + rb"{0,4}\{|" + _SPACE + rb")"
    rb"|\\{0,15}(?:\r?\n|\\n))[^{}<>]{0,96}?(?<![\w.-])" + _FIELD
    + rb"(?:" + _QUOTE + rb")?" + _SPACE + rb"{0,4}[:=]" + _SPACE + rb"{0,4}(?:" + _QUOTE + rb")?"
)  # fmt: skip
_ELEMENT = rb"(?:" + _QUOTE + rb"[^<>]{0,80})?>" + _SPACE + rb"{0,16}"
_NEXT_ELEMENT = rb"</[\w:.-]{1,40}>" + _SPACE + rb"{0,16}<" + _FIELD + rb">" + _SPACE + rb"{0,4}"
_BLOCK = (
    rb"(?:" + _QUOTE + rb")?" + _SPACE + rb"{0,4}[:=]" + _SPACE + rb"{0,4}(?:[|>][+-]?" + _SPACE
    + rb"{1,16}|(?:\\{0,15}\"){3}" + _SPACE + rb"{0,4}|(?:\\{0,15}'){3}" + _SPACE + rb"{0,4})"
)  # fmt: skip
_WORD = re.compile(
    rb"(?:[vV]al|VAL|[cC]ontent|[pP]laintext|[dD]ata|[sS]tring|[sS]ecret|[tT]ext|default)"
)
_AFTER = tuple(
    re.compile(beginning + _VALUE + rest)
    for beginning, rest in (
        (_NEXT_FIELD, rb""),
        (_ELEMENT, _SPACE + rb"{0,16}<"),
        (_NEXT_ELEMENT, _SPACE + rb"{0,16}<"),
        (_BLOCK, rb""),
    )
)
_AFTER_ARGUMENT = re.compile(
    _ARGUMENT + rb"([^\s\"'`\\<>]{8,4096}+)" + _QUOTE + _SPACE + rb"{0,16}(?:[,)\]]|\Z)"
)
_OPEN = re.compile(
    rb"(?:" + rb"|".join((_ARGUMENT, _NEXT_FIELD, _ELEMENT, _NEXT_ELEMENT, _BLOCK)) + rb")\Z"
)
_NEXT_ITEM = re.compile(rb"(?:\n|\\n)\s*-\s")

SIGN = (
    rb"(?:[\\\"'`]+(?:[,\s}nr]|:?[\s\\nrt]*\{|[^<>{}]{0,80}>)|\s*[\r\n]|\\+[rn]|</"
    rb"|[\\\"'`]*\s*[:=]\s*(?:[|>]|\\*\"\\*\"|''))"
)
"""What follows a name that has a neighbour, as the prefilter searches it."""


def find_neighbour_values(data: bytes, start: int, stop: int) -> Iterator[Span]:
    """Yield the values beside the name data[start:stop], whatever they look like."""
    is_argument = _CALL.search(data, max(0, start - 24), start) is not None
    if is_argument and (match := _AFTER_ARGUMENT.match(data, stop)):
        yield match.span(1)
    patterns = _AFTER if _WORD.search(data, stop, stop + REACH) else _AFTER[1:]
    for pattern in patterns:
        match = pattern.match(data, stop)
        if match and not _NEXT_ITEM.search(data, stop, match.start(1)):
            yield match.span(1)
    before = data[max(0, start - REACH) : start]
    if _NAMED_AS.search(before) and (match := _BEFORE.search(before)):
        low, high = match.span(2)
        yield start - len(before) + low, start - len(before) + high


def begins_neighbour(text: bytes, stop: int) -> bool:
    """True if the text after a name, up to its end, leads to a value beside it."""
    return _OPEN.match(text, stop) is not None
