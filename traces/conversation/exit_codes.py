"""Learn from several results of one tool where it puts the exit code of a command.

Tools that run commands write the code in forms of their own (`Process exited with code 2`,
`[exit 2]`, `{"rc": 2}`). A form is learnt from the results themselves: an integer at the same place
in most of them that is 0 mostly. A place is a line whose numbers are left out, or a field of JSON.
"""

import re
from collections import Counter
from collections.abc import Iterator, Sequence

from traces.dialects.json_access import parse_json_text

MIN_RESULTS = 3
"""Results that a form is learnt from, at least."""
_MIN_SHARE = 2 / 3
"""Share of a tool's results that have the place, at least: one that timed out may lack it."""
_MAX_CODE = 255
_MAX_LINE, _MAX_DEPTH = 200, 6
_NUMBER = re.compile(r"-?\d+(?:\.\d+)?")

type _Place = tuple[str, ...]
"""Keys of JSON, then a line without its numbers; or keys alone."""


def learn_exit_codes(results: Sequence[str]) -> list[int | None]:
    """Return the exit code in each result of one tool; None if it has none, or no form is learnt.

    If several places fit, they have to agree on which commands failed.
    """
    found = [dict(_iter_places(text)) for text in results]
    counts = Counter(place for each in found for place in each)
    needed = max(MIN_RESULTS, _MIN_SHARE * len(results))
    places = [
        place
        for place, count in counts.items()
        if count >= needed and _is_exit_code([each[place] for each in found if place in each])
    ]
    codes = [[each[place] for place in places if place in each] for each in found]
    if any(0 in each and any(each) for each in codes):
        return [None] * len(results)
    return [each[0] if each else None for each in codes]


def _is_exit_code(values: Sequence[int | None]) -> bool:
    """Whether these can be exit codes: small integers, and 0 in most."""
    codes = [each for each in values if each is not None and abs(each) <= _MAX_CODE]
    return len(codes) == len(values) and codes.count(0) * 2 > len(codes)


def _iter_places(
    text: str, path: _Place = (), depth: int = 0
) -> Iterator[tuple[_Place, int | None]]:
    """Yield the places of a result with their integers; None for one that is no integer.

    The place in a line is its last number. A line that occurs more than once counts where it is
    last.
    """
    try:
        value = parse_json_text(text.encode("utf-8", "surrogatepass"))
    except ValueError:
        value = None
    if isinstance(value, dict | list) and depth < _MAX_DEPTH:
        yield from _iter_fields(value, path, depth)
        return
    for line in text.splitlines():
        if len(line) <= _MAX_LINE and (numbers := _NUMBER.findall(line)):
            form = _NUMBER.sub("#", line.strip())
            yield (*path, form), None if "." in numbers[-1] else int(numbers[-1])


def _iter_fields(value: object, path: _Place, depth: int) -> Iterator[tuple[_Place, int | None]]:
    if isinstance(value, dict):
        for key, each in value.items():
            yield from _iter_fields(each, (*path, str(key)), depth + 1)
    elif isinstance(value, list) and len(value) == 1:
        yield from _iter_fields(value[0], (*path, "[]"), depth + 1)
    elif isinstance(value, str):
        yield from _iter_places(value, path, depth + 1)
    elif isinstance(value, int) and not isinstance(value, bool):
        yield path, value
