"""Where coding agents keep the sessions of a user."""

import os
from pathlib import Path

_FOLDERS = (
    ("CLAUDE_CONFIG_DIR", ".claude", "projects"),
    ("CODEX_HOME", ".codex", "sessions"),
    ("CODEX_HOME", ".codex", "archived_sessions"),
)
"""The variable that names an agent's folder, the folder without it, and that of its sessions."""


def find_session_folders() -> tuple[Path, ...]:
    """Return those that exist."""
    places = (
        Path(os.environ.get(variable) or Path.home() / usual) / sessions
        for variable, usual, sessions in _FOLDERS
    )
    return tuple(place for place in places if place.is_dir())
