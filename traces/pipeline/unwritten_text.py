"""What a stage's program consists of that no answer of the model holds.

An agent that brings somebody else's compiler, as source, as data or inside of another language,
brings text that its model did not write. What the agent's own commands generate from text of the
model counts as unwritten, too, so a share says more than a number of bytes.
"""

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping

from traces.conversation.derived_steps import DerivedSteps
from traces.model import RunEvent
from traces.pipeline.text_pieces import measure_pieces

LISTED_FILES = 4
OTHER_FILES = "others"
"""What stands for all but the largest files."""

type UnwrittenColumns = dict[str, object]


def find_unwritten_text(
    marks: Iterable[RunEvent], derived_steps: DerivedSteps
) -> Mapping[str, UnwrittenColumns]:
    """Return the columns of `stages` for each stage whose program is known.

    A run that continues an earlier one, whose answers are on another tape, has none.
    """
    graded = [
        mark.data
        for mark in marks
        if mark.name == "graded" and isinstance(mark.data.get("files"), Mapping)
    ]
    if not graded or any(data.get("before") for data in graded):
        return {}
    written = _measure_written_text(derived_steps)
    return {str(data["stage"]): _count_unwritten(data["files"], written) for data in graded}


def _measure_written_text(derived_steps: DerivedSteps) -> Mapping[str, int]:
    """Return the sizes of the pieces of all that the model wrote: text, and arguments of calls."""
    written: Counter[str] = Counter()
    for answer in derived_steps.answers.values():
        written.update(measure_pieces(answer.message))
        for call in answer.calls:
            for text in _iter_strings(_parse_arguments(call.arguments)):
                written.update(measure_pieces(text))
    return written


def _parse_arguments(arguments: str) -> object:
    try:
        return json.loads(arguments)
    except ValueError:
        return arguments


def _iter_strings(value: object) -> Iterator[str]:
    match value:
        case str():
            yield value
        case Mapping():
            for each in value.values():
                yield from _iter_strings(each)
        case list():
            for each in value:
                yield from _iter_strings(each)


def _count_unwritten(files: object, written: Mapping[str, int]) -> UnwrittenColumns:
    """Add up sizes; where only a part of a file's pieces is kept, by the share of that part."""
    assert isinstance(files, Mapping)
    missing = {}
    for name, (whole, pieces) in files.items():
        kept = sum(pieces.values())
        unknown = sum(max(0, size - written.get(digest, 0)) for digest, size in pieces.items())
        if unknown:
            missing[name] = round(whole * unknown / kept)
    largest = sorted(missing, key=lambda name: (name == OTHER_FILES, -missing[name], name))
    return {
        "program_bytes": sum(size for size, _ in files.values()),
        "unwritten_bytes": sum(missing.values()),
        "unwritten_files": json.dumps({name: missing[name] for name in largest[:LISTED_FILES]}),
    }
