"""Agents whose settings are read but cannot be extended for one run: their servers are named."""

import json
from collections.abc import Mapping
from pathlib import Path

from recorder.agent.adapters.stdio_servers import (
    AdaptedCommand,
    AdapterContext,
    format_unseen_warning,
    iter_servers_by_name,
    parse_stdio_command,
)

SETTINGS_FILES: Mapping[str, tuple[str, tuple[str, ...]]] = {
    "gemini": ("mcpServers", ("~/.gemini/settings.json", ".gemini/settings.json")),
    "qwen": ("mcpServers", ("~/.qwen/settings.json", ".qwen/settings.json")),
    "openhands": ("mcpServers", ("~/.openhands/mcp.json",)),
    "opencode": ("mcp", ("~/.config/opencode/opencode.json", "opencode.json")),
}
"""Per program: the key of its servers and the files that may contain it, in HOME or the folder."""


def warn_about_unseen_servers(command: tuple[str, ...], run: AdapterContext) -> AdaptedCommand:
    """Return the command unchanged, with a warning if it has stdio servers."""
    program = Path(command[0]).name.partition(".")[0]
    key, files = SETTINGS_FILES.get(program, ("", ()))
    home = run.find_folder("HOME", "")
    names = set[str]()
    for file in files:
        path = home / file[2:] if file.startswith("~/") else run.cwd / file
        names |= {
            name
            for name, server in iter_servers_by_name(_read_agent_settings(path).get(key))
            if _is_stdio_server(server)
        }
    return AdaptedCommand(command=command, warnings=format_unseen_warning(program, sorted(names)))


def _is_stdio_server(server: dict[str, object]) -> bool:
    words = server.get("command")
    if isinstance(words, list):  # opencode has program and arguments in one list
        server = {"command": str(words[0]), "args": words[1:]} if words else {}
    return parse_stdio_command(server) is not None


def _read_agent_settings(path: Path) -> dict[str, object]:
    """Read a settings file; {} if it is not JSON: some agents allow comments."""
    try:
        settings = json.loads(path.read_text())
    except (FileNotFoundError, NotADirectoryError, PermissionError, ValueError):
        return {}
    return settings if isinstance(settings, dict) else {}
