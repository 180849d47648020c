"""Proof that an exchange was made for a tool call, beyond its time.

While a call is open its client may also poll a server, download a table, or check for an update.
Such an exchange belongs to the call only if a value links them: the request contains a value or a
word of the call, or the call's result a value of the response.
"""

import re
from collections.abc import Iterator
from urllib.parse import unquote, urlsplit

import orjson

from traces.bodies.content_encoding import decode_content, read_content
from traces.model import Exchange, Request

MAX_PROOF_BYTES = 1 << 16
"""Maximum bytes of a body that are searched for values."""
MAX_ANSWER_VALUES = 256
"""Maximum number of response values stored until the result arrives."""
MIN_NAME_LETTERS = 4
"""Minimum letters for a word of a tool's name in a URL to be more than chance."""
_WORD = re.compile(r"\w+(?:[-.]\w+)*")
_NAME = re.compile(rf"[^\W\d_]{{{MIN_NAME_LETTERS},}}")
_CAMEL = re.compile(r"(?<=[a-z])(?=[A-Z])")
_DEPTH = 20


def has_call_values(tool: str, arguments: str, request: Request) -> bool:
    """Whether a request contains a value of the arguments, or its URL a word of the tool's name.

    A value is a word of at least five characters, or of at least three with a digit in it.
    """
    url = unquote(request.url)
    body = read_content(request)
    request_words = _find_distinctive_words(url) | _find_distinctive_words(
        body[:MAX_PROOF_BYTES].decode("utf-8", "replace")
    )
    return bool(request_words & _find_distinctive_words(arguments[:MAX_PROOF_BYTES])) or bool(
        _extract_name_stems(tool) & _extract_name_stems(url)
    )


def extract_answer_values(exchange: Exchange) -> tuple[str, ...]:
    """Return values of which a result contains at least one if it was made from this response.

    These are the values of JSON, else the lines of text; for an error also its status.
    """
    answer = exchange.response
    if answer is None:
        return ()
    body = (decode_content(answer.headers, answer.body) or b"")[:MAX_PROOF_BYTES]
    distinctive = list[str]()
    if answer.status >= 400:
        distinctive.append(str(answer.status))
    try:
        values = _iter_answer_leaves(orjson.loads(body))
    except ValueError:
        values = iter(body.decode("utf-8", "replace").splitlines())
    for value in values:
        if _is_distinctive_word(value.strip()) and len(distinctive) < MAX_ANSWER_VALUES:
            distinctive.append(value.strip())
    return tuple(distinctive)


def has_answer_value(values: tuple[str, ...], result: str) -> bool:
    """Whether a result contains one of these values as separate words."""
    return any(
        value in result and re.search(rf"(?<!\w){re.escape(value)}(?!\w)", result)
        for value in values
    )


def _find_distinctive_words(text: str) -> set[str]:
    return {word for word in _WORD.findall(text) if _is_distinctive_word(word)}


def _is_distinctive_word(value: str) -> bool:
    return len(value) >= 5 or (len(value) >= 3 and any(map(str.isdigit, value)))


def _extract_name_stems(text: str) -> set[str]:
    """Return the words of a name or a URL without its scheme: `listOrders`, `/orders`: order."""
    text = text.removeprefix(f"{urlsplit(text).scheme}://") if "://" in text else text
    return {word.casefold().removesuffix("s") for word in _NAME.findall(_CAMEL.sub("_", text))}


def _iter_answer_leaves(value: object, depth: int = 0) -> Iterator[str]:
    if isinstance(value, dict | list) and depth < _DEPTH:
        for inner in value.values() if isinstance(value, dict) else value:
            yield from _iter_answer_leaves(inner, depth + 1)
    elif isinstance(value, str):
        yield value
    elif isinstance(value, int | float) and not isinstance(value, bool):
        yield str(value)


def count_call_values(arguments: str, request: Request) -> int:
    """Return how many distinctive values of a call's arguments a request contains.

    Names of arguments are no values: all calls of one tool have them.
    """
    body = read_content(request)
    request_words = _find_distinctive_words(unquote(request.url)) | _find_distinctive_words(
        body[:MAX_PROOF_BYTES].decode("utf-8", "replace")
    )
    return len(request_words & _find_distinctive_words(_join_values(arguments[:MAX_PROOF_BYTES])))


def _join_values(arguments: str) -> str:
    try:
        return " ".join(_iter_answer_leaves(orjson.loads(arguments), 0))
    except (ValueError, RecursionError):
        return arguments
