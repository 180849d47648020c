"""The files that two runs changed, as shown beside each other."""

from collections.abc import Iterator, Mapping, Sequence

from msgspec import Struct

from stumble.report.text_diff import (
    DiffMark,
    TextPiece,
    mark_differences,
    mark_known_words,
    sanitize_text,
)
from stumble.verdicts.file_changes import (
    ComparedFile,
    DiffLine,
    FileChange,
    LineKind,
    RunFiles,
    compare_files,
)

MOST_FILES = 40
MOST_LINES = 200
"""Lines of the diff of one file."""
SIGNS: Mapping[LineKind, str] = {"added": "+", "removed": "-", "same": " ", "skipped": ""}


class ShownLine(Struct, frozen=True, kw_only=True):
    """A line of a diff."""

    kind: LineKind
    sign: str
    pieces: tuple[TextPiece, ...]


class FileSide(Struct, frozen=True, kw_only=True):
    """What one run did to a file."""

    words: str
    lines: tuple[ShownLine, ...] = ()


class FileRow(Struct, frozen=True, kw_only=True):
    """A file that one of the runs changed, or both."""

    path: str
    clean: FileSide
    faulted: FileSide
    is_equal: bool


class FilesView(Struct, frozen=True, kw_only=True):
    """The changed files of two runs."""

    rows: tuple[FileRow, ...] = ()
    more: int = 0
    problems: tuple[str, ...] = ()
    """Why the changes of a run are not known."""


def build_files_view(
    clean: RunFiles | None, faulted: RunFiles | None, known: Mapping[str, DiffMark]
) -> FilesView:
    """Pair the changes of a clean twin and a faulted run; `known` are values to mark."""
    names = (("the clean twin", clean), ("the run with the fault", faulted))
    problems = tuple(f"{name}: {files.unknown}" for name, files in names if files and files.unknown)
    if faulted is None or faulted.unknown is not None:
        return FilesView(problems=problems)
    pairs = compare_files(clean, faulted)
    is_clean_known = clean is not None and clean.unknown is None
    rows = tuple(_build_row(pair, known, is_clean_known) for pair in pairs[:MOST_FILES])
    return FilesView(
        rows=rows, more=max(0, len(pairs) - MOST_FILES) + faulted.more, problems=problems
    )


def _build_row(pair: ComparedFile, known: Mapping[str, DiffMark], is_clean_known: bool) -> FileRow:
    lines = [tuple(each.lines) if each else () for each in (pair.clean, pair.faulted)]
    absent = ("not changed" if is_clean_known else "not known", "not changed")
    sides = [
        FileSide(
            words=_describe(change) if change else missing,
            lines=tuple(_mark_lines(own[:MOST_LINES], other, known, pair.is_equal)),
        )
        for change, missing, own, other in (
            (pair.clean, absent[0], lines[0], lines[1]),
            (pair.faulted, absent[1], lines[1], lines[0]),
        )
    ]
    path = sanitize_text(pair.path)
    return FileRow(path=path, clean=sides[0], faulted=sides[1], is_equal=pair.is_equal)


def _describe(change: FileChange) -> str:
    counts = change.count_lines()
    if counts is None:
        return f"{change.status}; {change.note}"
    more = max(0, len(change.lines) - MOST_LINES)
    return f"{change.status}, +{counts[0]} -{counts[1]}" + (
        f", {more} lines not shown" if more else ""
    )


def _mark_lines(
    own: Sequence[DiffLine],
    other: Sequence[DiffLine],
    known: Mapping[str, DiffMark],
    is_equal: bool,
) -> Iterator[ShownLine]:
    """Mark the known values; in written lines without any, what the other run wrote otherwise."""
    theirs = [line.text for line in other if line.kind == "added"]
    written = [line.text for line in own if line.kind == "added"]
    partners = dict(zip(written, theirs, strict=True)) if len(theirs) == len(written) else {}
    for line in own:
        pieces = mark_known_words(line.text, known)
        is_new = line.kind == "added" and line.text not in theirs and not is_equal
        if is_new and not any(piece.mark for piece in pieces):
            partner = partners.get(line.text, "")
            _, pieces = mark_differences(partner, line.text, ("differs", "differs"))
        yield ShownLine(kind=line.kind, sign=SIGNS[line.kind], pieces=pieces)
