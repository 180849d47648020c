"""Agents whose settings we know and cannot add to for one run: their servers are named."""

import json
from collections.abc import Mapping
from pathlib import Path

from recorder.adapters.servers import Adapted, Run, by_name, stdio_command, unseen

SETTINGS: Mapping[str, tuple[str, tuple[str, ...]]] = {
    "gemini": ("mcpServers", ("~/.gemini/settings.json", ".gemini/settings.json")),
    "qwen": ("mcpServers", ("~/.qwen/settings.json", ".qwen/settings.json")),
    "openhands": ("mcpServers", ("~/.openhands/mcp.json",)),
    "opencode": ("mcp", ("~/.config/opencode/opencode.json", "opencode.json")),
}
"""Program to the key of its servers and the files that may have it, in HOME or the folder."""


def adapt(command: tuple[str, ...], run: Run) -> Adapted:
    """The command as it is, with a line where its stdio servers will not be seen."""
    program = Path(command[0]).name.partition(".")[0]
    key, files = SETTINGS.get(program, ("", ()))
    home = run.path("HOME", "")
    names = set[str]()
    for file in files:
        path = home / file[2:] if file.startswith("~/") else run.cwd / file
        names |= {name for name, server in by_name(_table(path).get(key)) if _stdio(server)}
    return Adapted(command=command, warnings=unseen(program, sorted(names)))


def _stdio(server: dict[str, object]) -> bool:
    words = server.get("command")
    if isinstance(words, list):  # opencode has program and arguments in one list
        server = {"command": str(words[0]), "args": words[1:]} if words else {}
    return stdio_command(server) is not None


def _table(path: Path) -> dict[str, object]:
    """Comments, which some of them allow, are not read: then nothing is warned of."""
    try:
        said = json.loads(path.read_text())
    except (FileNotFoundError, NotADirectoryError, PermissionError, ValueError):
        return {}
    return said if isinstance(said, dict) else {}
