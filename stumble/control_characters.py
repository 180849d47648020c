"""Text of agents and programs on a terminal, which must not act on its control characters."""

_TURNING = (0x61C, 0x200E, 0x200F, *range(0x202A, 0x202F), *range(0x2066, 0x206A))
"""Marks that change the direction of the text after them."""
_ESCAPES = {code: repr(chr(code))[1:-1] for code in (*range(32), *range(127, 160), *_TURNING)}


def escape_controls(text: str) -> str:
    """Return the text with control characters, C0, C1 and of direction, as Python writes
    them: `\\n`, `\\x1b`, `\\u202e`.
    """
    return text.translate(_ESCAPES)
