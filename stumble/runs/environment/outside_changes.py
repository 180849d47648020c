"""What a run changed outside of its copy: named, thrown away, and logins that it renewed kept."""

import json
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

from recorder.agent.outside_files import OutsideFiles
from stumble.runs.environment.workspaces import RunLocation, format_first_names

OAUTH_FILES = (
    ".codex/auth.json",
    ".claude/.credentials.json",
    ".gemini/oauth_creds.json",
    ".qwen/oauth_creds.json",
)
"""Files in the home in which agents keep tokens that a provider exchanges for new ones once."""


def settle_outside_changes(place: RunLocation, *, live: bool) -> tuple[str, ...]:
    """Return lines about the user's files outside of the copy that the run changed.

    After a `live` run a renewed login takes the place of the real one, which the provider no longer
    accepts. Raises OSError if it cannot be written.
    """
    outside = place.room.outside if place.room else None
    if outside is None:
        return ()
    changed, home = list(outside.find_changes()), Path.home()
    renewed = list(_keep_renewed_logins(outside, changed, home)) if live else []
    # Agents keep their own state in hidden folders of the home.
    lost = [path for path in changed if path not in renewed and not _is_hidden(path, home)]
    lines = []
    if renewed:
        lines.append(f"outside: the login in {_join(renewed)} was renewed, and kept")
    if lost:
        lines.append(
            f"outside: changes of {_join(lost)} were thrown away (--writable PATH lets them take "
            "effect)"
        )
    return tuple(lines)


def _join(paths: list[Path]) -> str:
    return format_first_names([str(path) for path in paths])


def _is_hidden(path: Path, home: Path) -> bool:
    return path.is_relative_to(home) and path.relative_to(home).parts[0].startswith(".")


def _keep_renewed_logins(outside: OutsideFiles, changed: list[Path], home: Path) -> Iterator[Path]:
    """Copy each changed login of an agent that has the fields of the real one to its place."""
    for path in (home / name for name in OAUTH_FILES):
        new = outside.find_layer_file(path)
        if path not in changed or new is None:
            continue
        if (fields := _read_fields(path)) is None or _read_fields(new) != fields:
            continue
        temporary = path.with_name(f"{path.name}.stumble-{os.getpid()}")
        shutil.copy2(new, temporary)
        temporary.replace(path)
        yield path


def _read_fields(path: Path) -> frozenset[str] | None:
    try:
        fields = json.loads(path.read_bytes())
    except ValueError:
        return None
    return frozenset(fields) if isinstance(fields, dict) else None
