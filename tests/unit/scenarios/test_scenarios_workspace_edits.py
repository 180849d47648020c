"""Which differences of a folder are its user's, and which an agent's."""

from scenarios.workspace.edits import RecordedFolder, apply_edits, find_edits, name_edits
from scenarios.workspace.manifest import ManifestEntry, SnapshotManifest


def folder(mtime: int = 0, **files: str) -> SnapshotManifest:
    """A folder whose files have these contents, named with `__` for a slash and `_` for a dot."""
    paths = {name.replace("__", "/").replace("_", "."): text for name, text in files.items()}
    parents = sorted({path.rpartition("/")[0] for path in paths} - {""})
    entries = [ManifestEntry(path=".", kind="folder", mode=0o755)]
    entries += [ManifestEntry(path=each, kind="folder", mode=0o755) for each in parents]
    entries += [
        ManifestEntry(path=path, kind="file", mode=0o644, mtime=mtime, target=text)
        for path, text in sorted(paths.items())
    ]
    return SnapshotManifest(entries=tuple(entries))


def edited(spans: list[RecordedFolder], now: SnapshotManifest) -> tuple[str, ...]:
    before = spans[0].before
    return name_edits(before, apply_edits(before, find_edits(spans, now)))


BEFORE = folder(agent_py="one", notes="n1")
LEFT = folder(agent_py="one", notes="n2", log="by the agent")
RUN = [RecordedFolder(before=BEFORE, after=LEFT)]


def test_what_the_agent_wrote_is_no_edit() -> None:
    assert edited(RUN, LEFT) == ()


def test_another_time_is_no_edit() -> None:
    assert edited(RUN, folder(mtime=7, agent_py="one", notes="n2", log="by the agent")) == ()


def test_a_changed_an_added_and_a_removed_file_are_edits() -> None:
    now = folder(agent_py="two", lib__new_py="x", log="by the agent")
    assert edited(RUN, now) == ("agent.py", "lib/new.py", "notes")
    result = apply_edits(BEFORE, find_edits(RUN, now))
    assert [entry.path for entry in result.entries] == [".", "agent.py", "lib", "lib/new.py"]


def test_an_edit_back_to_what_was_recorded_changes_nothing() -> None:
    assert edited(RUN, BEFORE) == ()


def test_a_later_recording_of_the_agent_is_no_edit_and_an_edit_before_it_is_one() -> None:
    then = folder(agent_py="two", notes="n2", log="by the agent")
    after = folder(agent_py="two", notes="n3", log="again", more="x")
    spans = [*RUN, RecordedFolder(before=then, after=after)]
    assert edited(spans, after) == ("agent.py",)


def test_what_an_agent_writes_over_an_edit_leaves_the_edit() -> None:
    then = folder(agent_py="one", notes="mine", log="by the agent")
    after = folder(agent_py="one", notes="mine, and the agent's", log="by the agent")
    spans = [*RUN, RecordedFolder(before=then, after=after)]
    assert find_edits(spans, after)["notes"] == next(e for e in then.entries if e.path == "notes")


def test_a_file_in_the_place_of_a_folder_takes_it_away() -> None:
    before = folder(data__a="1", data__b="2")
    found = find_edits([RecordedFolder(before=before, after=before)], folder(data="one file"))
    result = apply_edits(before, found)
    assert [(entry.path, entry.kind) for entry in result.entries] == [
        (".", "folder"),
        ("data", "file"),
    ]


def test_a_file_that_may_now_be_run_is_an_edit() -> None:
    entries = [
        ManifestEntry(path=".", kind="folder"),
        ManifestEntry(path="x", kind="file", mode=0o644, target="1"),
    ]
    before = SnapshotManifest(entries=tuple(entries))
    entries[1] = ManifestEntry(path="x", kind="file", mode=0o755, target="1")
    assert edited(
        [RecordedFolder(before=before, after=before)], SnapshotManifest(entries=tuple(entries))
    ) == ("x",)
