"""Compare the end state of a run with those of its clean twins.

States are compared by their digests; their kept texts only show where two of them differ.
"""

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import zip_longest

from msgspec import Struct

from faults.judging.claims.answer_values import compare_values, has_same_words
from faults.judging.claims.required_writes import WriteComparison
from faults.judging.post_injection import RunContinuation
from faults.judging.taint.taint import TaintResult, is_final_answer_wrong
from traces.model import EndReason, RunEnding


class TwinComparison(Struct, frozen=True, kw_only=True):
    """A faulted run and its clean twins after the target call, with their comparison."""

    own: RunContinuation
    twins: Sequence[RunContinuation]
    writes: WriteComparison
    taint: TaintResult


MIN_STATE_TWINS = 3
"""Minimum clean twins before another end state counts as wrong: several may be right."""
EXCERPT_CHARS = 60
"""Maximum characters of a shown value or line."""


class EndStateVerdict(Struct, frozen=True, kw_only=True):
    """The verdict by end state; `passed` is None if undecided, with the reason."""

    passed: bool | None
    why: str = ""
    difference: str = ""
    """Where a wrong end state first differs from that of the twins, in words."""


def judge_by_answer(case: TwinComparison) -> EndStateVerdict:
    """Judge the answer of a run without writes, by the values of the twins' answers.

    Unknown if the twins share none, unless the answer equals that of a twin word for word.
    """
    values = compare_values(case.own, case.twins)
    if is_final_answer_wrong(case.taint) or values in ("other", "absent"):
        problem = "another value than" if values != "absent" else "none of the values of"
        return EndStateVerdict(passed=False, difference=f"the answer tells {problem} clean twins")
    if values == "same" or has_same_words(case.own, case.twins):
        return EndStateVerdict(passed=True)
    return EndStateVerdict(passed=None, why="nothing was written, and the answers share no value")


def judge_by_state(ending: RunEnding, twins: Sequence[RunEnding]) -> EndStateVerdict:
    """Return passed if a twin ended in the same state, failed if none of at least three did.

    If no two twins end alike no end state is wrong: the state includes varying data. Twins that
    crashed or failed verification are left out.
    """
    endings = _select_right_endings(ending.state_of, twins, ended=ending.ended)
    if any(twin.state == ending.state for twin in endings):
        return EndStateVerdict(passed=True)
    if len(endings) < MIN_STATE_TWINS:
        return EndStateVerdict(
            passed=None, why=f"{len(endings)} of {MIN_STATE_TWINS} clean twins have an end state"
        )
    common, times = Counter(twin.state for twin in endings).most_common(1)[0]
    if times < 2:
        return EndStateVerdict(
            passed=None, why="no two clean twins end alike: let --state leave out what varies"
        )
    usual = next(twin for twin in endings if twin.state == common)
    difference = describe_state_difference(usual.state_text, ending.state_text)
    return EndStateVerdict(passed=False, difference=f"end state: {difference}")


def judge_by_common_state(ending: RunEnding, twins: Sequence[RunEnding]) -> EndStateVerdict:
    """Judge a clean run by the most common end state of all clean runs; None if no two agree."""
    endings = _select_right_endings(ending.state_of, twins)
    if len(endings) < MIN_STATE_TWINS:
        return EndStateVerdict(
            passed=None, why=f"{len(endings)} of {MIN_STATE_TWINS} clean twins have an end state"
        )
    common, times = Counter(twin.state for twin in endings).most_common(1)[0]
    if times < 2:
        return EndStateVerdict(
            passed=None, why="no two clean twins end alike: let --state leave out what varies"
        )
    return EndStateVerdict(passed=ending.state == common)


def has_common_state(state_of: str | None, twins: Sequence[RunEnding]) -> bool | None:
    """Return whether two of at least three twins end in one state; None for fewer than three."""
    endings = _select_right_endings(state_of, twins)
    if len(endings) < MIN_STATE_TWINS:
        return None
    return Counter(twin.state for twin in endings).most_common(1)[0][1] >= 2


def describe_state_difference(wanted: str, found: str) -> str:
    """Describe where two states first differ: a JSON path, else a line."""
    try:
        places = _walk_state_differences("$", json.loads(wanted), json.loads(found))
        if (place := next(places, None)) is not None:
            return place
    except (ValueError, RecursionError):
        pass  # not JSON, or cut: compare by lines
    lines = zip_longest(wanted.splitlines(), found.splitlines())
    for number, (was, now) in enumerate(lines, 1):
        if was != now:
            return f"line {number}: {_excerpt_difference(now, was)}"
    return "it differs in what was not kept of it"


def _select_right_endings(
    state_of: str | None, twins: Sequence[RunEnding], ended: EndReason = "final"
) -> list[RunEnding]:
    """Return the right endings: an agent that always exits with an error has not failed."""
    return [
        twin
        for twin in twins
        if twin.state is not None
        and twin.state_of == state_of
        and twin.ended in ("final", ended)
        and twin.passed is not False
    ]


def _walk_state_differences(path: str, wanted: object, found: object) -> Iterator[str]:
    if isinstance(wanted, dict) and isinstance(found, dict):
        for key in sorted(wanted.keys() | found.keys()):
            yield from _walk_state_differences(
                f"{path}.{key}", wanted.get(key, _NONE), found.get(key, _NONE)
            )
    elif isinstance(wanted, list) and isinstance(found, list):
        for index, (was, now) in enumerate(zip_longest(wanted, found, fillvalue=_NONE)):
            yield from _walk_state_differences(f"{path}[{index}]", was, now)
    elif (was := _dump_state_value(wanted)) != (now := _dump_state_value(found)):
        yield f"{path}: {_excerpt_difference(now, was)}"


_NONE = object()
"""Placeholder for a value that one of two states lacks."""


def _dump_state_value(value: object) -> str | None:
    if value is _NONE:
        return None
    return json.dumps(value, ensure_ascii=False, sort_keys=True)


def _excerpt_difference(now: str | None, was: str | None) -> str:
    """Return excerpts of two texts from shortly before their first difference."""
    same = 0
    for a, b in zip(now or "", was or "", strict=False):
        if a != b:
            break
        same += 1
    start = (
        max(0, same - EXCERPT_CHARS // 2)
        if max(len(now or ""), len(was or "")) > EXCERPT_CHARS
        else 0
    )
    return f"{_excerpt_text(now, start)}, in clean twins {_excerpt_text(was, start)}"


def _excerpt_text(text: str | None, start: int) -> str:
    if text is None:
        return "nothing"
    end = start + EXCERPT_CHARS
    return f"{'...' if start else ''}{text[start:end]}{'...' if len(text) > end else ''}"
