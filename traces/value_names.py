"""Values by other names: what stands for a value of one run in the texts of another run."""

import re
from collections.abc import Iterable, Mapping
from functools import lru_cache

VALUE_START = r"(?:(?<![0-9A-Za-z_-])|(?<=\\[bfnrt])|(?<=\\u[0-9A-Fa-f]{4})|(?<=%[0-9A-Fa-f]{2}))"
"""Where a word of letters, digits, `-` and `_` begins, also after an escape of JSON or of a URL."""
VALUE_END = r"(?![0-9A-Za-z_-])"


def rename_text(text: str, names: Mapping[str, str]) -> str:
    """Return a text with its values renamed; numbers, of which a text has many, stay."""
    words = tuple(name for name in names if not name.isdecimal())
    return compile_values(words).sub(lambda match: names[match[0]], text) if words else text


def rename_url(url: str, names: Mapping[str, str]) -> str:
    """Return a URL with the values in its path and query renamed, numbers too."""
    origin = re.match(r"[^:/?#]*://[^/?#]*", url)
    start = origin.end() if origin else 0
    pattern = compile_values(tuple(names))
    return url[:start] + pattern.sub(lambda match: names[match[0]], url[start:])


def compile_values(values: Iterable[str]) -> re.Pattern[str]:
    """Return a pattern of these values as complete words, the longest first."""
    return _compile(tuple(sorted(values, key=lambda each: (-len(each), each))))


@lru_cache(maxsize=64)
def _compile(values: tuple[str, ...]) -> re.Pattern[str]:
    return re.compile(f"{VALUE_START}(?:{'|'.join(map(re.escape, values))}){VALUE_END}")
