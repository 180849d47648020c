"""Judge an end that no command verifies: files left, writes sent and the answer, beside clean runs.

Each part is compared only in what the clean runs have in common, so that a random id or a time
decides nothing. A part that differs makes the end wrong; it is right if one is known and none
differs.
"""

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import reduce
from typing import NamedTuple

from faults.judging.claims.required_writes import compare_writes
from faults.judging.client_retries import JudgedRun, reaches_tool
from faults.judging.end_state import EndStateVerdict, TwinComparison, judge_by_answer
from faults.judging.sent_writes import count_sent_writes, find_missing_writes, find_repeated_writes
from faults.targeting.read_or_write import classify_call_side, classify_tool_side
from traces.model import FILE_CHANGED, RunEnding

MIN_COMPARED_RUNS = 2
"""Fewest clean runs that show what varies."""


def judge_by_observation(
    run: JudgedRun, twins: Sequence[JudgedRun], case: TwinComparison | None
) -> EndStateVerdict:
    """Judge the end of a run by its clean twins; unknown for fewer than two of them."""
    twins = tuple(twins)
    if len(twins) < MIN_COMPARED_RUNS:
        return EndStateVerdict(passed=None, why=f"{len(twins)} clean runs to compare the end with")
    files = compare_left_files(run.tape.ending, [twin.tape.ending for twin in twins])
    answer = judge_by_answer(case) if case is not None else None
    for difference in (
        *files.differences,
        *(f"{name} was sent more often" for name in find_repeated_writes(run, twins)),
        *(_describe_writes(case, _count_lost_answers(run)) if case is not None else ()),
        *([answer.difference] if answer is not None and answer.passed is False else ()),
        *(f"{name} was sent less often" for name in find_missing_writes(run, twins)),
    ):
        return EndStateVerdict(passed=False, difference=f"{difference}, not as in clean runs")
    if files.open:
        why = f"{files.open[0]}, which clean runs leave as it was: it may be the wrong result"
        return EndStateVerdict(passed=None, why=why)
    sent = reduce(Counter.__and__, map(count_sent_writes, (run, *twins)))
    made = case is not None and (bool(sent) or case.writes.required > case.writes.reworded)
    if files.same or made or (answer is not None and answer.passed):
        return EndStateVerdict(passed=True)
    return EndStateVerdict(passed=None, why="clean runs have no file, write or value in common")


def is_steady(twins: Sequence[JudgedRun]) -> bool:
    """Return whether at least two clean runs, and most of them, end with an answer and the same
    writes.
    """
    forms = Counter(
        (ending.ended, frozenset(Counter(_list_written_tools(twin)).items()))
        for twin in twins
        if (ending := twin.tape.ending) is not None
    )
    if not forms:
        return False
    (ended, _), times = forms.most_common(1)[0]
    return ended == "final" and times >= MIN_COMPARED_RUNS and 2 * times > len(twins)


class FileComparison(NamedTuple):
    """The files that clean runs leave alike: how many a run has too, and how it differs."""

    same: int
    differences: tuple[str, ...]
    open: tuple[str, ...] = ()
    """Files that were there, and that this run alone changed: clean runs may have written what was
    there already."""


def compare_left_files(
    ending: RunEnding | None, others: Sequence[RunEnding | None]
) -> FileComparison:
    """Compare the files that all clean runs leave, and their contents if these are all alike."""
    own = _read_files(ending)
    known = [files for each in others if (files := _read_files(each)) is not None]
    if own is None or len(known) < MIN_COMPARED_RUNS:
        return FileComparison(0, ())
    same, differences = 0, list[str]()
    for path in sorted(set.intersection(*(set(each) for each in known))):
        contents = {each[path] for each in known}
        if path not in own:
            differences.append(f"{path} is missing")
        elif len(contents) == 1 and own[path] not in contents:
            differences.append(f"{path} has another content")
        else:
            same += 1
    return FileComparison(same, tuple(differences), tuple(_list_own_changes(own, known)))


def _list_own_changes(
    own: Mapping[str, object], known: Sequence[Mapping[str, object]]
) -> Iterator[str]:
    for path in sorted(own.keys() - set().union(*known)):
        if own[path] is None:
            yield f"{path} was removed"
        elif str(own[path]).startswith(FILE_CHANGED):
            yield f"{path} was changed"


def _read_files(ending: RunEnding | None) -> Mapping[str, object] | None:
    """Return the digest of each changed file; None if it is not known, or was cut on the tape."""
    if ending is None or ending.state is None:
        return None
    try:
        files = json.loads(ending.state_text)
    except ValueError:
        return None
    return files if isinstance(files, dict) and "" not in files else None


def _count_lost_answers(run: JudgedRun) -> int:
    """Count the writes that a run was told have failed, although they were carried out."""
    return sum(
        reaches_tool(each.op) and not each.sham and classify_tool_side(each.tool or "") != "read"
        for each in run.tape.injections
    )


def _describe_writes(case: TwinComparison, lost: int) -> Iterator[str]:
    """Yield how the writes differ; `lost` of those that seem to have failed were carried out."""
    writes = case.writes
    if writes.missing:
        yield f"{writes.missing} of {writes.required} writes were not made"
    if writes.failed > lost:
        yield f"{writes.failed - lost} of {writes.required} writes failed"
    if writes.otherwise and not _vary(case):
        yield f"{writes.otherwise} of {writes.required} writes have other values"


def _vary(case: TwinComparison) -> bool:
    """Return whether clean runs write other values among themselves."""
    return any(
        compare_writes(twin, [other for other in case.twins if other is not twin]).otherwise
        for twin in case.twins
    )


def _list_written_tools(run: JudgedRun) -> Iterator[str]:
    for use in run.story.tool_uses:
        if classify_call_side(use) != "read":
            yield use.tool
