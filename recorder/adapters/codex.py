"""Codex: `-c mcp_servers.NAME.command=...` and `.args=...`, before everything else.

Found by running 0.169.0: `-c` is taken before `exec` and after it, a later one wins, and each
sets one key, so that `env`, `enabled` and the rest of a server stay as the user has them. A key
is cut at its dots, quoted or not, so that a server with a dot in its name cannot be reached.
What a project's own `.codex/config.toml` adds counts only where the user trusts it; naming it
would answer for the user.
"""

import json
import tomllib
from collections.abc import Sequence
from pathlib import Path

from recorder.adapters.servers import Adapted, Run, by_name, stdio_command, unseen

TABLE = "mcp_servers"


def adapt(command: tuple[str, ...], run: Run) -> Adapted:
    """The command with the user's stdio servers behind tees."""
    servers = dict(by_name(_file(run.path("CODEX_HOME", ".codex") / "config.toml").get(TABLE)))
    own = _overridden(command)
    added, left = list[str](), list[str]()
    for name, server in servers.items():
        if (words := stdio_command(server)) is None:
            continue
        if "." in name or name in own:
            left.append(name)
            continue
        program, *args = run.teed(name, words)
        added += ["-c", f"{TABLE}.{name}.command={_toml(program)}"]
        added += ["-c", f"{TABLE}.{name}.args=[{', '.join(_toml(arg) for arg in args)}]"]
    left += _of_project(run.cwd, servers)
    at = 2 if Path(command[0]).name in ("node", "npx") else 1
    return Adapted(command=(*command[:at], *added, *command[at:]), warnings=unseen("codex", left))


def _overridden(command: Sequence[str]) -> set[str]:
    """The servers that the command itself sets something of."""
    words = [word.removeprefix("--config=").removeprefix("-c") for word in command]
    keys = [word.lstrip(" =").split(".") for word in words]
    return {key[1] for key in keys if key[0] == TABLE and len(key) > 2}


def _of_project(cwd: Path, known: dict[str, dict[str, object]]) -> list[str]:
    found = list[str]()
    for folder in (cwd, *cwd.parents):
        table = _file(folder / ".codex" / "config.toml").get(TABLE)
        found += [name for name, server in by_name(table) if stdio_command(server)]
    return sorted({name for name in found if name not in known})


def _toml(text: str) -> str:
    """A basic string: what JSON escapes, TOML does alike."""
    return json.dumps(text).replace("\x7f", "\\u007F")


def _file(path: Path) -> dict[str, object]:
    """What Codex could not read either, it tells the user itself."""
    try:
        return tomllib.loads(path.read_text())
    except (FileNotFoundError, NotADirectoryError, PermissionError, tomllib.TOMLDecodeError):
        return {}
