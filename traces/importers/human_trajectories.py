"""Name files of people's demonstrations (Mind2Web, WebArena): no model speaks in them.

They are refused with what they are, so that nobody takes them for runs of an agent. The traffic of
such a session, as HAR, is imported as traffic.
"""

import zipfile
from collections.abc import Iterator
from pathlib import Path

from traces.importers.shared.file_reader import read_file_head
from traces.importers.shared.run_reader import RawRun

NAME = "demonstrations of Mind2Web and WebArena (refused: they have no messages)"
_MIND2WEB = (b'"annotation_id"', b'"confirmed_task"')
_TASKS = (b'"require_login"', b'"intent_template"')


def can_import(path: Path) -> bool:
    """Whether a file is a demonstration, a list of tasks, or a trace of Playwright."""
    return _describe(path) is not None


def read_runs(path: Path) -> Iterator[RawRun]:
    """Refuse the file by what it is."""
    raise ValueError(_describe(path))
    yield  # makes this an iterator, as the other formats have it


def _describe(path: Path) -> str | None:
    start = read_file_head(path)
    if all(name in start for name in _MIND2WEB):
        return "it has actions of people in Mind2Web and no messages, so no run of an agent"
    if all(name in start for name in _TASKS):
        return "it has tasks of WebArena and no run"
    if start[:4] == b"PK\x03\x04" and _is_playwright_trace(path):
        return "it is a trace of Playwright without messages: export the traffic as HAR instead"
    return None


def _is_playwright_trace(path: Path) -> bool:
    try:
        with zipfile.ZipFile(path) as packed:
            names = packed.namelist()
    except (zipfile.BadZipFile, OSError, ValueError, NotImplementedError, EOFError):
        return False
    return any(name.endswith((".trace", "trace.network")) for name in names)
