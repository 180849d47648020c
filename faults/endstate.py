"""Whether a run ended as clean runs do: its end state against those of its clean twins.

States are compared by their digests; their kept texts only say where two of them differ.
"""

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import zip_longest

from faults.after import After
from faults.judging.answer_values import compare_values, same_words
from faults.judging.written import WriteComparison
from faults.taint import Taint, tells_wrong
from traces.model import Ended, Ending


@dataclass(frozen=True, slots=True, kw_only=True)
class Continuations:
    """A faulted run and its clean twins after the struck call, and what is known of them."""

    own: After
    twins: Sequence[After]
    writes: WriteComparison
    taint: Taint


LEAST = 3
"""Clean twins without which no other end state is wrong: they may end rightly in several ways."""
AROUND = 60
"""Characters of a value or line that are shown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ByState:
    """What end states say of a run; `passed` None where they do not say it, and why."""

    passed: bool | None
    why: str = ""
    difference: str = ""
    """Where a wrong end state first differs from that of the twins, in words."""


def by_answer(case: Continuations) -> ByState:
    """Whether an answer is right, of runs that change nothing: by the values of the twins'.

    Unknown where the twins share none, unless the answer is that of a twin word for word.
    """
    values = compare_values(case.own, case.twins)
    if tells_wrong(case.taint) or values in ("other", "absent"):
        told = "tells another value" if values != "absent" else "tells none of the values"
        return ByState(passed=False, difference=f"the answer {told} than clean twins do")
    if values == "same" or same_words(case.own, case.twins):
        return ByState(passed=True)
    return ByState(passed=None, why="nothing was written, and the answers share no value")


def by_state(ending: Ending, twins: Sequence[Ending]) -> ByState:
    """Right if a twin ended in the same state; wrong if none of at least three did.

    Where no two twins end alike no end state is wrong: what varies was not left out of it. A twin
    that crashed, or that a verifier found wrong, shows no right end.
    """
    held = _held(ending.state_of, twins, ended=ending.ended)
    if any(twin.state == ending.state for twin in held):
        return ByState(passed=True)
    if len(held) < LEAST:
        return ByState(passed=None, why=f"{len(held)} of {LEAST} clean twins have an end state")
    common, times = Counter(twin.state for twin in held).most_common(1)[0]
    if times < 2:
        return ByState(
            passed=None, why="no two clean twins end alike: let --state leave out what varies"
        )
    usual = next(twin for twin in held if twin.state == common)
    found = difference(usual.state_text, ending.state_text)
    return ByState(passed=False, difference=f"end state: {found}")


def by_common_state(ending: Ending, twins: Sequence[Ending]) -> ByState:
    """Whether a clean run ends as most of its twins do, itself among them; None if no two agree."""
    held = _held(ending.state_of, twins)
    if len(held) < LEAST:
        return ByState(passed=None, why=f"{len(held)} of {LEAST} clean twins have an end state")
    common, times = Counter(twin.state for twin in held).most_common(1)[0]
    if times < 2:
        return ByState(
            passed=None, why="no two clean twins end alike: let --state leave out what varies"
        )
    return ByState(passed=ending.state == common)


def alike(state_of: str | None, twins: Sequence[Ending]) -> bool | None:
    """Whether at least two of at least three twins end in one state; None for fewer than three."""
    held = _held(state_of, twins)
    if len(held) < LEAST:
        return None
    return Counter(twin.state for twin in held).most_common(1)[0][1] >= 2


def difference(wanted: str, found: str) -> str:
    """Where two states first differ: a JSON path, else a line."""
    try:
        places = _places("$", json.loads(wanted), json.loads(found))
        if (place := next(places, None)) is not None:
            return place
    except (ValueError, RecursionError):
        pass  # no JSON, or cut: told by its lines
    lines = zip_longest(wanted.splitlines(), found.splitlines())
    for number, (was, now) in enumerate(lines, 1):
        if was != now:
            return f"line {number}: {_apart(now, was)}"
    return "it differs in what was not kept of it"


def _held(state_of: str | None, twins: Sequence[Ending], ended: Ended = "final") -> list[Ending]:
    """Those that show a right end: an agent that always exits with an error has not failed."""
    return [
        twin
        for twin in twins
        if twin.state is not None
        and twin.state_of == state_of
        and twin.ended in ("final", ended)
        and twin.passed is not False
    ]


def _places(path: str, wanted: object, found: object) -> Iterator[str]:
    if isinstance(wanted, dict) and isinstance(found, dict):
        for key in sorted(wanted.keys() | found.keys()):
            yield from _places(f"{path}.{key}", wanted.get(key, _NONE), found.get(key, _NONE))
    elif isinstance(wanted, list) and isinstance(found, list):
        for index, (was, now) in enumerate(zip_longest(wanted, found, fillvalue=_NONE)):
            yield from _places(f"{path}[{index}]", was, now)
    elif (was := _said(wanted)) != (now := _said(found)):
        yield f"{path}: {_apart(now, was)}"


_NONE = object()
"""In the place of what one of two states does not have."""


def _said(value: object) -> str | None:
    if value is _NONE:
        return None
    return json.dumps(value, ensure_ascii=False, sort_keys=True)


def _apart(now: str | None, was: str | None) -> str:
    """Two texts from a little before the place where they part."""
    same = 0
    for a, b in zip(now or "", was or "", strict=False):
        if a != b:
            break
        same += 1
    start = max(0, same - AROUND // 2) if max(len(now or ""), len(was or "")) > AROUND else 0
    return f"{_cut(now, start)}, in clean twins {_cut(was, start)}"


def _cut(text: str | None, start: int) -> str:
    if text is None:
        return "nothing"
    end = start + AROUND
    return f"{'...' if start else ''}{text[start:end]}{'...' if len(text) > end else ''}"
