"""A trajectory of Harbor that its agent continued in further files.

A file names the next one of its folder in `continued_trajectory_ref`. The steps that a later part
copied from an earlier one have `is_copied_context`, and its metrics are of the parts up to it.
"""

from collections.abc import Iterable, Iterator
from pathlib import Path

from traces.importers.shared.file_reader import read_unpacked_file
from traces.importers.shared.json_values import parse_json, to_object, to_objects

_NEXT = "continued_trajectory_ref"
_MAX_PARTS = 1_000

type Table = dict[str, object]


def find_parts(path: Path) -> tuple[Path, ...]:
    """Return the files of the trajectory that a file is part of, in order; itself if there are no
    others.
    """
    if not _may_have_parts(path):
        return (path,)
    refs = {
        each: next_file
        for each in path.parent.glob("*.json")
        if (next_file := _find_next(each)) is not None
    }
    before = {after: each for each, after in refs.items()}
    first = path
    for _ in range(_MAX_PARTS):
        first = before.get(first, first)
    parts = [first]
    while (after := refs.get(parts[-1])) is not None and after not in parts:
        parts.append(after)
    return tuple(parts) if path in parts else (path,)


def _may_have_parts(path: Path) -> bool:
    try:
        data = read_unpacked_file(path)
    except (ValueError, OSError):  # its reader raises it again
        return False
    return _NEXT.encode() in data or b'"continuation_index"' in data


def _find_next(path: Path) -> Path | None:
    """Return the file that a file names as its continuation, if that is beside it.

    Collections of trajectories put a prefix before the names.
    """
    try:
        data = read_unpacked_file(path)
        name = to_object(parse_json(data)).get(_NEXT) if _NEXT.encode() in data else None
    except (ValueError, OSError):
        return None
    if not isinstance(name, str) or not name:
        return None
    found = [each for each in path.parent.glob("*.json") if each.name.endswith(Path(name).name)]
    exact = [each for each in found if each.name == name]
    return next(iter(exact or found), None) if exact or len(found) == 1 else None


def join_parts(documents: Iterable[tuple[str, object]]) -> Iterator[tuple[str, object]]:
    """Yield the documents with their places; one that the next one continues together with it."""
    where, joined = "", None
    for place, document in documents:
        if isinstance(joined, dict) and joined.get(_NEXT) and _is_later_part(joined, document):
            joined = _join(joined, to_object(document))
            continue
        if joined is not None:
            yield where, joined
        where, joined = place, document
    if joined is not None:
        yield where, joined


def _is_later_part(before: Table, document: object) -> bool:
    part = to_object(document)
    extra = to_object(to_object(part.get("agent")).get("extra"))
    is_later = isinstance(extra.get("continuation_index"), int)
    return is_later and part.get("session_id") == before.get("session_id")


def _join(before: Table, part: Table) -> Table:
    new = [step for step in to_objects(part.get("steps")) if not step.get("is_copied_context")]
    metrics = to_object(before.get("final_metrics")) | to_object(part.get("final_metrics"))
    own = {"steps": [*to_objects(before.get("steps")), *new], "final_metrics": metrics}
    return {**before, _NEXT: part.get(_NEXT), **own}
