"""Claude Code: wrapped servers in a file of the run, named by one more `--mcp-config`.

Found by running 2.1.197: a server in `--mcp-config` takes the place of one of the same name
from any other scope, a later file that of an earlier; all others stay. So `--strict-mcp-config`
is not added: it would take away the servers of plugins and of the organisation, which no file
that we read holds. Variables (`${HOME}`, `${X:-default}`) are expanded in such a file as in the
others. Local servers come before those of the project (`.mcp.json` here or above), these before
the user's. With `-p` those of the project start unasked; else the user is asked, and naming
them would answer for the user, so they are left alone unless they were approved by name.
"""

import json
from collections.abc import Iterator, Sequence
from pathlib import Path

from recorder.adapters.servers import Adapted, Run, by_name, stdio_command, unseen

CONFIG, STRICT = "--mcp-config", "--strict-mcp-config"
COMMANDS = frozenset(
    ("agents", "auth", "auto-mode", "doctor", "gateway", "install", "mcp", "plugin", "plugins")
    + ("project", "setup-token", "ultrareview", "update", "upgrade")
)
"""Words that make it something else than an agent."""


def adapt(command: tuple[str, ...], run: Run) -> Adapted:
    """The command with the user's stdio servers behind tees."""
    if any(word in COMMANDS for word in command[1:3]):
        return Adapted(command=command)
    wrapped: dict[str, object] = {}
    found, left = _servers(command, run)
    for name, server in found.items():
        if (words := stdio_command(server)) is not None:
            program, *args = run.teed(name, words)
            wrapped[name] = server | {"command": program, "args": args}
    warnings = unseen("claude", [name for name, server in left.items() if stdio_command(server)])
    if not wrapped:
        return Adapted(command=command, warnings=warnings)
    path = run.folder / "claude-mcp.json"
    path.touch(mode=0o600)
    path.write_text(json.dumps({"mcpServers": wrapped}))
    # The option takes all words up to the next option, so it has its value behind `=`; and it is
    # the last of its kind, which wins.
    end = command.index("--") if "--" in command else len(command)
    return Adapted(command=(*command[:end], f"{CONFIG}={path}", *command[end:]), warnings=warnings)


type _Servers = dict[str, dict[str, object]]


def _servers(command: Sequence[str], run: Run) -> tuple[_Servers, _Servers]:
    """The servers that will be started, as far as files say; and those that wait for approval."""
    found, left = dict[str, dict[str, object]](), dict[str, dict[str, object]]()
    if STRICT not in command:
        settings = _settings(run)
        projects = settings.get("projects")
        here = projects.get(str(run.cwd)) if isinstance(projects, dict) else None
        local = here if isinstance(here, dict) else {}
        found.update(by_name(settings.get("mcpServers")))
        for name, server in _project(run.cwd):
            approved = _prints(command) or name in _names(local, "enabledMcpjsonServers")
            (found if approved else left)[name] = server
        found.update(by_name(local.get("mcpServers")))
        for off in _names(local, "disabledMcpServers") + _names(local, "disabledMcpjsonServers"):
            found.pop(off, None)
    for given in _given(command):
        found.update(by_name(_read(given, run.cwd).get("mcpServers")))
    return found, {name: server for name, server in left.items() if name not in found}


def _settings(run: Run) -> dict[str, object]:
    folder = run.env.get("CLAUDE_CONFIG_DIR") or run.env.get("HOME") or str(Path.home())
    return _file(Path(folder) / ".claude.json")


def _project(cwd: Path) -> Iterator[tuple[str, dict[str, object]]]:
    """From the outermost folder inwards: what is nearer comes later and wins."""
    for folder in reversed((cwd, *cwd.parents)):
        yield from by_name(_file(folder / ".mcp.json").get("mcpServers"))


def _names(table: dict[str, object], key: str) -> list[str]:
    names = table.get(key)
    return [str(name) for name in names] if isinstance(names, list) else []


def _prints(command: Sequence[str]) -> bool:
    return "-p" in command or "--print" in command


def _given(command: Sequence[str]) -> Iterator[str]:
    """The files and texts that the command names: the option takes several."""
    takes = False
    for word in command[1:]:
        if word == "--":
            return
        if word.startswith(f"{CONFIG}="):
            yield word.partition("=")[2]
        elif takes and not word.startswith("-"):
            yield word
        takes = word == CONFIG or (takes and not word.startswith("-"))


def _read(given: str, cwd: Path) -> dict[str, object]:
    if given.lstrip().startswith("{"):
        return _table(given)
    return _file(cwd / given)


def _file(path: Path) -> dict[str, object]:
    try:
        return _table(path.read_text())
    except (FileNotFoundError, NotADirectoryError, PermissionError):
        return {}


def _table(text: str) -> dict[str, object]:
    """What Claude Code could not read either, it tells the user itself."""
    try:
        said = json.loads(text)
    except ValueError:
        return {}
    return said if isinstance(said, dict) else {}
