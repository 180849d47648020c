"""Text of agents and programs on a terminal, which must not act on its control characters."""

_ESCAPES = {code: repr(chr(code))[1:-1] for code in (*range(32), *range(127, 160))}


def escape_controls(text: str) -> str:
    """Return the text with control characters, C0 and C1, as Python writes them: `\\n`, `\\x1b`."""
    return text.translate(_ESCAPES)
