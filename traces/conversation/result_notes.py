"""Notes that a client appends to the last of several results, whichever call that is.

Parallel calls end in any order, and results are compared in the order of their ids: a note at the
end of the last one is compared there, too.
"""

import re
from collections.abc import Mapping, Sequence

_NOTE_END = re.compile(r"</([a-z][\w-]{0,100})>\s*\Z")
_LONGEST_END = 200


def cut_notes(items: list[object], are_results: Sequence[bool], key: str) -> dict[int, str]:
    """Cut the notes at the end of the last of neighbouring results; return them by its place."""
    cut = dict[int, str]()
    for place, item in enumerate(items):
        around = tuple(are_results[max(0, place - 1) : place + 2])
        is_last = place > 0 and around in ((True, True), (True, True, False))
        if is_last and isinstance(item, dict) and isinstance(text := item[key], str):
            start = find_notes(text)
            item[key], cut[place] = text[:start], text[start:]
    return cut


def add_notes(items: list[object], cut: Mapping[int, str], key: str) -> None:
    """Append notes to the results that stand at their places now; some have more than text."""
    for place, note in cut.items():
        if note and isinstance(item := items[place], dict):
            text = item[key]
            item[key] = text + note if isinstance(text, str) else [text, note]


def find_notes(text: str) -> int:
    """Return where the elements (`<note>..</note>`) after empty lines begin that end a text."""
    end = len(text)
    while tag := _NOTE_END.search(text, max(0, end - _LONGEST_END), end):
        start = text.rfind(f"\n\n<{tag[1]}>", 0, end)
        if start < 0:
            break
        end = start
    return end
