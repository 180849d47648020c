"""Codex: `-c mcp_servers.NAME.command=...` and `.args=...`, before all other arguments.

Determined by running 0.169.0: `-c` is accepted before and after `exec`, a later one wins, and each
sets one key, so that a server's `env`, `enabled` and other keys are unchanged. Keys are split at
dots, quoted or not, so a server with a dot in its name cannot be set. A project's
`.codex/config.toml` applies only if the user trusts the project; setting its servers would answer
for the user.
"""

import json
from collections.abc import Sequence
from pathlib import Path

from recorder.agent.adapters.stdio_servers import (
    AdaptedCommand,
    AdapterContext,
    format_unseen_warning,
    iter_servers_by_name,
    parse_stdio_command,
)

SERVERS_TABLE = "mcp_servers"


def adapt_codex_command(command: tuple[str, ...], run: AdapterContext) -> AdaptedCommand:
    """Return the command with the user's stdio servers behind tees."""
    servers = dict(
        iter_servers_by_name(
            _read_codex_config(run.find_folder("CODEX_HOME", ".codex") / "config.toml").get(
                SERVERS_TABLE
            )
        )
    )
    overridden = _find_overridden_servers(command)
    added, unseen = list[str](), list[str]()
    for name, server in servers.items():
        if (words := parse_stdio_command(server)) is None:
            continue
        if "." in name or name in overridden:
            unseen.append(name)
            continue
        program, *args = run.wrap_in_tee(name, words)
        added += ["-c", f"{SERVERS_TABLE}.{name}.command={_to_toml_string(program)}"]
        added += [
            "-c",
            f"{SERVERS_TABLE}.{name}.args=[{', '.join(_to_toml_string(arg) for arg in args)}]",
        ]
    unseen += _list_project_servers(run.cwd, servers)
    insert_at = 2 if Path(command[0]).name in ("node", "npx") else 1
    return AdaptedCommand(
        command=(*command[:insert_at], *added, *command[insert_at:]),
        warnings=format_unseen_warning("codex", unseen),
    )


def _find_overridden_servers(command: Sequence[str]) -> set[str]:
    """Return the names of servers for which the command itself sets a key."""
    words = [word.removeprefix("--config=").removeprefix("-c") for word in command]
    keys = [word.lstrip(" =").split(".") for word in words]
    return {key[1] for key in keys if key[0] == SERVERS_TABLE and len(key) > 2}


def _list_project_servers(cwd: Path, known: dict[str, dict[str, object]]) -> list[str]:
    names = list[str]()
    for folder in (cwd, *cwd.parents):
        table = _read_codex_config(folder / ".codex" / "config.toml").get(SERVERS_TABLE)
        names += [
            name for name, server in iter_servers_by_name(table) if parse_stdio_command(server)
        ]
    return sorted({name for name in names if name not in known})


def _to_toml_string(text: str) -> str:
    """Return a TOML basic string: JSON escapes are the same."""
    return json.dumps(text).replace("\x7f", "\\u007F")


def _read_codex_config(path: Path) -> dict[str, object]:
    """Read a config file; {} on an error, which Codex reports to the user itself."""
    import tomllib

    try:
        return tomllib.loads(path.read_text())
    except (FileNotFoundError, NotADirectoryError, PermissionError, tomllib.TOMLDecodeError):
        return {}
