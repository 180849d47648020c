"""Where coding agents keep the sessions of a user."""

import os
from pathlib import Path

AIDER = ".aider.chat.history.md"
_FOLDERS = (
    ("CLAUDE_CONFIG_DIR", ".claude", "projects"),
    ("CODEX_HOME", ".codex", "sessions"),
    ("CODEX_HOME", ".codex", "archived_sessions"),
    ("GEMINI_CLI_HOME", ".gemini", "tmp"),
    ("CONTINUE_GLOBAL_DIR", ".continue", "sessions"),
    ("XDG_DATA_HOME", ".local/share", "opencode/opencode.db"),
    ("XDG_DATA_HOME", ".local/share", "opencode/storage/session"),
    *(
        ("", settings, f"User/globalStorage/{extension}/tasks")
        for settings in (".config/Code", "Library/Application Support/Code", ".vscode-server/data")
        for extension in ("saoudrizwan.claude-dev", "rooveterinaryinc.roo-cline")
    ),
    ("", "", AIDER),
)
"""The variable that names an agent's folder, the folder without it, and that of its sessions."""


def find_session_folders() -> tuple[Path, ...]:
    """Return those that exist; aider keeps its history in each project, so that of this folder."""
    places = [
        Path(os.environ.get(variable) or Path.home() / usual) / sessions
        for variable, usual, sessions in _FOLDERS
    ]
    places.append(Path.cwd() / AIDER)
    return tuple(dict.fromkeys(place for place in places if place.exists()))


def is_shown_file(name: str) -> bool:
    """Return whether a file of a folder or an archive is looked at; hidden ones are settings."""
    return name == AIDER or bool(name) and not name.startswith(".")
