"""Claude Code: wrapped servers in a file of the run, passed with one more `--mcp-config`.

Determined by running 2.1.197: a server in `--mcp-config` replaces one of the same name from any
other scope, and a later file an earlier one; all others stay. `--strict-mcp-config` is not added,
because it would remove the servers of plugins and of the organisation, which are in no file read
here. Variables (`${HOME}`, `${X:-default}`) are expanded in such a file as in the others. Local
servers take precedence over those of the project (`.mcp.json` here or above), these over the
user's. With `-p` the project's servers start without a question; otherwise the user is asked, and
passing them would answer for the user, so they are left out unless approved by name.
"""

import json
from collections.abc import Iterator, Sequence
from pathlib import Path

from recorder.agent.adapters.stdio_servers import (
    AdaptedCommand,
    AdapterContext,
    format_unseen_warning,
    iter_servers_by_name,
    parse_stdio_command,
)

CONFIG, STRICT = "--mcp-config", "--strict-mcp-config"
NON_AGENT_COMMANDS = frozenset(
    ("agents", "auth", "auto-mode", "doctor", "gateway", "install", "mcp", "plugin", "plugins")
    + ("project", "setup-token", "ultrareview", "update", "upgrade")
)
"""Subcommands that do not run an agent."""


def adapt_claude_command(command: tuple[str, ...], run: AdapterContext) -> AdaptedCommand:
    """Return the command with the user's stdio servers behind tees."""
    if any(word in NON_AGENT_COMMANDS for word in command[1:3]):
        return AdaptedCommand(command=command)
    wrapped: dict[str, object] = {}
    servers, unapproved = _find_claude_servers(command, run)
    for name, server in servers.items():
        if (words := parse_stdio_command(server)) is not None:
            program, *args = run.wrap_in_tee(name, words)
            wrapped[name] = server | {"command": program, "args": args}
    warnings = format_unseen_warning(
        "claude", [name for name, server in unapproved.items() if parse_stdio_command(server)]
    )
    if not wrapped:
        return AdaptedCommand(command=command, warnings=warnings)
    path = run.folder / "claude-mcp.json"
    path.touch(mode=0o600)
    path.write_text(json.dumps({"mcpServers": wrapped}))
    # The option takes all words up to the next option, so the value follows `=`; and as the last of
    # its kind it wins.
    end = command.index("--") if "--" in command else len(command)
    return AdaptedCommand(
        command=(*command[:end], f"{CONFIG}={path}", *command[end:]), warnings=warnings
    )


type _ServerTables = dict[str, dict[str, object]]


def _find_claude_servers(
    command: Sequence[str], run: AdapterContext
) -> tuple[_ServerTables, _ServerTables]:
    """Return the servers that will start, according to files, and those waiting for approval."""
    servers, unapproved = dict[str, dict[str, object]](), dict[str, dict[str, object]]()
    if STRICT not in command:
        settings = _read_claude_settings(run)
        projects = settings.get("projects")
        project = projects.get(str(run.cwd)) if isinstance(projects, dict) else None
        local = project if isinstance(project, dict) else {}
        servers.update(iter_servers_by_name(settings.get("mcpServers")))
        for name, server in _iter_project_servers(run.cwd):
            approved = _is_print_mode(command) or name in _list_server_names(
                local, "enabledMcpjsonServers"
            )
            (servers if approved else unapproved)[name] = server
        servers.update(iter_servers_by_name(local.get("mcpServers")))
        for disabled in _list_server_names(local, "disabledMcpServers") + _list_server_names(
            local, "disabledMcpjsonServers"
        ):
            servers.pop(disabled, None)
    for option in _iter_config_options(command):
        servers.update(iter_servers_by_name(_read_config_option(option, run.cwd).get("mcpServers")))
    return servers, {name: server for name, server in unapproved.items() if name not in servers}


def _read_claude_settings(run: AdapterContext) -> dict[str, object]:
    folder = run.env.get("CLAUDE_CONFIG_DIR") or run.env.get("HOME") or str(Path.home())
    return _read_claude_file(Path(folder) / ".claude.json")


def _iter_project_servers(cwd: Path) -> Iterator[tuple[str, dict[str, object]]]:
    """Yield from the outermost folder inwards: nearer files come later and win."""
    for folder in reversed((cwd, *cwd.parents)):
        yield from iter_servers_by_name(_read_claude_file(folder / ".mcp.json").get("mcpServers"))


def _list_server_names(table: dict[str, object], key: str) -> list[str]:
    names = table.get(key)
    return [str(name) for name in names] if isinstance(names, list) else []


def _is_print_mode(command: Sequence[str]) -> bool:
    return "-p" in command or "--print" in command


def _iter_config_options(command: Sequence[str]) -> Iterator[str]:
    """Yield the files and JSON texts that the command names; the option takes several."""
    in_option = False
    for word in command[1:]:
        if word == "--":
            return
        if word.startswith(f"{CONFIG}="):
            yield word.partition("=")[2]
        elif in_option and not word.startswith("-"):
            yield word
        in_option = word == CONFIG or (in_option and not word.startswith("-"))


def _read_config_option(given: str, cwd: Path) -> dict[str, object]:
    if given.lstrip().startswith("{"):
        return _parse_claude_json(given)
    return _read_claude_file(cwd / given)


def _read_claude_file(path: Path) -> dict[str, object]:
    try:
        return _parse_claude_json(path.read_text())
    except (FileNotFoundError, NotADirectoryError, PermissionError):
        return {}


def _parse_claude_json(text: str) -> dict[str, object]:
    """Parse a JSON object; {} on an error, which Claude Code reports to the user itself."""
    try:
        settings = json.loads(text)
    except ValueError:
        return {}
    return settings if isinstance(settings, dict) else {}
