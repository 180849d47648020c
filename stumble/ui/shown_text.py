"""Text of tapes as shown on a page: every character visible, none that acts.

jinja2 escapes markup; here are the characters that reorder, hide or control text. Each is shown as
its code, `<U+202E>`, so that what a model read is not what a reader overlooks.
"""

import re
from collections.abc import Mapping

_ACTING = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff"
    "\ufff9-\ufffb\ud800-\udfff\U000e0000-\U000e007f]"
)
"""Controls but tab and line feed, direction marks, invisible characters, lone surrogates, tags."""
_NAMES: Mapping[str, str] = {"\x1b": "\u241b", "\r": "\u240d", "\x00": "\u2400", "\x07": "\u2407"}
"""Control pictures of the common ones."""

PAGE_CHARACTERS = 1_000_000
"""Characters of a body on one page."""


def show_text(text: str) -> str:
    """Return the text with each acting character replaced by a visible name."""
    return _ACTING.sub(lambda found: _NAMES.get(found[0]) or f"<U+{ord(found[0]):04X}>", text)


def show_value(value: object) -> object:
    """Return a value of a template as shown: texts without acting characters."""
    return show_text(value) if type(value) is str else value


def shorten(text: str, width: int) -> str:
    """Return the text in one line of at most `width` characters."""
    line = " ".join(text[: width * 4].split())
    return line if len(line) <= width and len(text) <= width * 4 else line[: width - 1] + "\u2026"
