"""The files that a run changed in its workspace, as texts and as lines of a diff."""

from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher
from os.path import commonprefix
from typing import Literal

from msgspec import Struct, field

from scenarios.workspace.blobs import BlobStore
from scenarios.workspace.left_files import load_left_files
from scenarios.workspace.manifest import ManifestEntry
from traces.model import Trajectory

MAX_TEXT_BYTES = 1 << 20
"""Largest content that is compared as text."""
MAX_COMPARED_LINES = 2_000
"""Above this, the lines between the first and the last difference are not compared."""
CONTEXT_LINES = 3

type ChangeStatus = Literal["added", "changed", "removed"]
type LineKind = Literal["same", "added", "removed", "skipped"]

NOT_KEPT = {
    "found": "a secret was found in it",
    "secret": "by name it holds secrets",
    "large": "it is too large",
    "repository": "it belongs to the version control",
    "unreadable": "it could not be read",
}


class DiffLine(Struct, frozen=True, kw_only=True):
    """A line of a diff; of kind `skipped`, `text` is the number of equal lines left out."""

    kind: LineKind
    text: str


class FileChange(Struct, frozen=True, kw_only=True):
    """One changed file. A text is None if the file was not there, or is none."""

    path: str
    status: ChangeStatus
    content: str
    """The name of its content at the end; equal names are equal contents."""
    before: str | None = None
    after: str | None = None
    note: str | None = None
    """Why it cannot be shown as text."""

    @property
    def lines(self) -> tuple[DiffLine, ...]:
        """The diff of its texts; empty if it cannot be shown."""
        if self.note is not None:
            return ()
        return tuple(diff_lines(self.before or "", self.after or ""))

    def count_lines(self) -> tuple[int, int] | None:
        """Return the numbers of added and removed lines; None if it cannot be shown."""
        if self.note is not None:
            return None
        kinds = [line.kind for line in self.lines]
        return kinds.count("added"), kinds.count("removed")

    def describe(self) -> str:
        """Describe the change in a few words."""
        counts = self.count_lines()
        extent = f"+{counts[0]} -{counts[1]}" if counts else self.note
        return f"{self.status} {self.path} ({extent})"


class RunFiles(Struct, frozen=True, kw_only=True):
    """What a run changed in its workspace, or why that is not known."""

    run: str
    changes: tuple[FileChange, ...] = field(default=())
    more: int = 0
    """Number of further changes."""
    unknown: str | None = None


class ComparedFile(Struct, frozen=True, kw_only=True):
    """A file that one of two runs changed, or both."""

    path: str
    clean: FileChange | None
    faulted: FileChange | None
    comparison: str
    """How the clean run differs, in words; empty if that is not known."""
    is_equal: bool = False


def compare_files(clean: RunFiles | None, faulted: RunFiles) -> list[ComparedFile]:
    """Pair the changes of two runs by path; those that differ come first."""
    known = clean if clean is not None and clean.unknown is None else None
    sides = [{each.path: each for each in run.changes} if run else {} for run in (known, faulted)]
    pairs = list[ComparedFile]()
    for path in sorted(sides[0] | sides[1]):
        one, two = sides[0].get(path), sides[1].get(path)
        is_equal = known is not None and one is not None and two is not None and (
            one.content == two.content and not (two.note or "").startswith("not kept")
        )  # fmt: skip
        words = "the clean twin did not" if one is None else "the clean twin otherwise"
        if is_equal:
            words = "so did the clean twin"
        elif one is not None and two is not None and one.content == two.content:
            words = ""
        pairs.append(
            ComparedFile(
                path=path,
                clean=one,
                faulted=two,
                comparison=words if known else "",
                is_equal=is_equal,
            )
        )
    return sorted(pairs, key=lambda each: each.is_equal)


def list_changes(files: RunFiles) -> list[dict[str, object]] | None:
    """Return the changes as plain data; None if they are not known."""
    if files.unknown is not None:
        return None
    listed = list[dict[str, object]]()
    for each in files.changes:
        added, removed = each.count_lines() or (None, None)
        row: dict[str, object] = {"path": each.path, "status": each.status, "note": each.note}
        listed.append(row | {"added": added, "removed": removed})
    return listed


def read_run_files(blobs: BlobStore, trajectory: Trajectory) -> RunFiles:
    """Read what a run changed in its workspace."""
    run = trajectory.id
    try:
        left = load_left_files(blobs, run)
        if left is None:
            why = "no snapshot of its workspace was kept" if trajectory.snapshot is None else (
                "what it left in its workspace is not in this store"
            )  # fmt: skip
            return RunFiles(run=run, unknown=why)
        start = blobs.load_manifest(left.start)
    except ValueError as error:
        return RunFiles(run=run, unknown=str(error))
    old = {entry.path: entry for entry in start.entries} if start else {}
    entries: list[tuple[str, ManifestEntry | None]] = [(each.path, each) for each in left.changed]
    entries += [(path, None) for path in left.removed]
    changes = (_read_change(blobs, path, old.get(path), now) for path, now in sorted(entries))
    return RunFiles(run=run, changes=tuple(changes), more=left.more)


def _read_change(
    blobs: BlobStore, path: str, old: ManifestEntry | None, now: ManifestEntry | None
) -> FileChange:
    status: ChangeStatus = "removed" if now is None else "changed" if old else "added"
    content = "" if now is None else f"{now.kind} {now.target} {now.size}"
    texts = list[str | None]()
    for entry in (old, now):
        text, note = _read_text(blobs, entry)
        if note is not None:
            return FileChange(path=path, status=status, content=content, note=note)
        texts.append(text)
    return FileChange(path=path, status=status, content=content, before=texts[0], after=texts[1])


def _read_text(blobs: BlobStore, entry: ManifestEntry | None) -> tuple[str | None, str | None]:
    """Return the text of an entry, or why it has none."""
    if entry is None or entry.kind == "folder":
        return None, None
    if entry.kind == "link":
        return f"link to {entry.target}", None
    if entry.kind == "out":
        return None, f"not kept: {NOT_KEPT.get(entry.target, entry.target)}"
    if entry.size > MAX_TEXT_BYTES:
        return None, f"{entry.size:,} bytes"
    try:
        data = blobs.read_blob(entry.target, MAX_TEXT_BYTES)
        if b"\0" in data:
            raise UnicodeDecodeError("utf-8", data, 0, 1, "NUL")
        return data.decode("utf-8"), None
    except UnicodeDecodeError:
        return None, f"binary, {entry.size:,} bytes"
    except ValueError as error:
        return None, str(error)


def diff_lines(before: str, after: str) -> Iterator[DiffLine]:
    """Yield the lines of a diff with CONTEXT_LINES equal lines around each change."""
    old, new = before.splitlines(), after.splitlines()
    first = len(commonprefix([old, new]))
    last = len(commonprefix([old[first:][::-1], new[first:][::-1]]))
    middle = old[first : len(old) - last], new[first : len(new) - last]
    lines = [DiffLine(kind="same", text=text) for text in old[:first]]
    lines += _diff_middle(*middle)
    lines += [DiffLine(kind="same", text=text) for text in old[len(old) - last :]]
    return _fold_equal(lines)


def _diff_middle(old: Sequence[str], new: Sequence[str]) -> Iterator[DiffLine]:
    matcher = SequenceMatcher(None, old, new, autojunk=False)
    blocks = (
        matcher.get_opcodes()
        if max(len(old), len(new)) <= MAX_COMPARED_LINES
        else [("replace", 0, len(old), 0, len(new))]
    )
    for tag, a, b, c, d in blocks:
        if tag == "equal":
            yield from (DiffLine(kind="same", text=text) for text in old[a:b])
            continue
        yield from (DiffLine(kind="removed", text=text) for text in old[a:b])
        yield from (DiffLine(kind="added", text=text) for text in new[c:d])


def _fold_equal(lines: Sequence[DiffLine]) -> Iterator[DiffLine]:
    near = set[int]()
    for at, line in enumerate(lines):
        if line.kind != "same":
            near.update(range(at - CONTEXT_LINES, at + CONTEXT_LINES + 1))
    skipped = 0
    for at, line in enumerate(lines):
        if at not in near:
            skipped += 1
            continue
        if skipped:
            yield DiffLine(kind="skipped", text=str(skipped))
            skipped = 0
        yield line
    if skipped:
        yield DiffLine(kind="skipped", text=str(skipped))
