import json
import stat
import tomllib
from pathlib import Path

import pytest

from recorder.agent.adapters import AdaptedCommand, adapt_agent_command

SMALL = {"type": "stdio", "command": "small", "args": ["--fast"], "env": {"KEY": "${KEY}"}}
WEB = {"type": "http", "url": "http://mcp.test/"}


@pytest.fixture
def home(tmp_path: Path) -> Path:
    for name in ("home", "work/sub", "run"):
        (tmp_path / name).mkdir(parents=True)
    return tmp_path / "home"


def adapted(home: Path, *command: str, cwd: str = "work", **env: str) -> AdaptedCommand:
    root = home.parent
    return adapt_agent_command(
        command,
        {"HOME": str(home), **env},
        run=root / "run" / "tees",
        folder=root / "run",
        cwd=root / cwd,
    )


def says(path: Path, **table: object) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(table))


def servers(found: AdaptedCommand) -> dict[str, dict[str, object]]:
    """What the last --mcp-config of a command holds."""
    (option,) = [word for word in found.command if word.startswith("--mcp-config=/")]
    path = Path(option.partition("=")[2])
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    read: dict[str, dict[str, object]] = json.loads(path.read_text())["mcpServers"]
    return read


def behind(server: dict[str, object]) -> list[object]:
    """The command that the tee of a server starts."""
    args = server["args"]
    assert isinstance(args, list)
    assert args[2].endswith("tee.py")
    return args[args.index("--") + 1 :]


def test_claude_gets_its_stdio_servers_behind_tees_and_all_else_as_it_is(home: Path) -> None:
    says(home / ".claude.json", mcpServers={"small": SMALL, "web": WEB})
    before = (home / ".claude.json").read_bytes()
    found = adapted(home, "claude", "-p", "do it", "--model", "opus")
    assert found.command[:-1] == ("claude", "-p", "do it", "--model", "opus")
    assert found.warnings == ()
    (name, server), *others = servers(found).items()
    assert (name, others, server["env"]) == ("small", [], SMALL["env"])
    assert behind(server) == ["small", "--fast"]
    assert "--strict-mcp-config" not in found.command
    assert (home / ".claude.json").read_bytes() == before


def test_of_claudes_scopes_the_nearer_wins(home: Path) -> None:
    work = home.parent / "work"

    def one(name: str) -> dict[str, dict[str, object]]:
        return {"one": {"command": name}, name: {"command": name}}

    local = {str(work / "sub"): {"mcpServers": {"local": {"command": "local"}}}}
    says(home / ".claude.json", mcpServers=one("user"), projects=local)
    says(work / ".mcp.json", mcpServers=one("outer"))
    says(work / "sub" / ".mcp.json", mcpServers=one("inner"))
    wrapped = servers(adapted(home, "claude", "-p", "x", cwd="work/sub"))
    assert {name: behind(server) for name, server in wrapped.items()} == {
        "one": ["inner"],
        "user": ["user"],
        "outer": ["outer"],
        "inner": ["inner"],
        "local": ["local"],
    }


def test_what_claude_would_ask_the_user_about_is_not_answered_for_the_user(home: Path) -> None:
    says(home.parent / "work" / ".mcp.json", mcpServers={"theirs": {"command": "theirs"}})
    asked = adapted(home, "claude")
    assert asked.command == ("claude",)
    assert "theirs; put `stumble mcp --` before the command" in asked.warnings[0]
    assert list(servers(adapted(home, "claude", "--print", "x"))) == ["theirs"]
    work = str(home.parent / "work")
    says(home / ".claude.json", projects={work: {"enabledMcpjsonServers": ["theirs"]}})
    assert list(servers(adapted(home, "claude"))) == ["theirs"]
    says(home / ".claude.json", projects={work: {"disabledMcpServers": ["theirs"]}})
    assert adapted(home, "claude", "-p", "x").command == ("claude", "-p", "x")


def test_claudes_own_options_are_kept_and_come_first(home: Path, tmp_path: Path) -> None:
    says(home / ".claude.json", mcpServers={"user": {"command": "user"}})
    says(tmp_path / "work" / "mine.json", mcpServers={"mine": {"command": "mine"}})
    inline = json.dumps({"mcpServers": {"inline": {"command": "inline"}}})
    words = ("claude", "--mcp-config", "mine.json", inline, "--strict-mcp-config", "-p", "--", "x")
    found = adapted(home, *words)
    assert [word for word in found.command if not word.startswith("--mcp-config=/")] == [*words]
    assert found.command[-2:] == ("--", "x")
    assert sorted(servers(found)) == ["inline", "mine"]


@pytest.mark.parametrize("command", [("claude", "mcp", "list"), ("claude", "doctor")])
def test_what_is_no_agent_is_left_alone(home: Path, command: tuple[str, ...]) -> None:
    says(home / ".claude.json", mcpServers={"small": SMALL})
    assert adapted(home, *command) == AdaptedCommand(command=command)


def test_what_stands_behind_a_tee_already_does_not_get_another(home: Path) -> None:
    by_hand = {"command": "/usr/bin/stumble", "args": ["mcp", "--", "small"]}
    says(home / ".claude.json", mcpServers={"small": by_hand})
    assert adapted(home, "claude", "-p", "x").command == ("claude", "-p", "x")


def test_claudes_settings_are_where_its_variable_says(home: Path) -> None:
    says(home / "other" / ".claude.json", mcpServers={"small": SMALL})
    found = adapted(home, "/opt/claude", "-p", "x", CLAUDE_CONFIG_DIR=str(home / "other"))
    assert list(servers(found)) == ["small"]


CODEX = """
[mcp_servers.small]
command = "small"
args = ["a \\"quoted\\" word", "back\\\\slash", "new\\nline", "ü"]
env = { KEY = "value" }
[mcp_servers.web]
url = "http://mcp.test/"
[mcp_servers."with.dot"]
command = "unreachable"
"""


def test_codex_gets_two_keys_per_stdio_server_before_everything_else(home: Path) -> None:
    (home / ".codex").mkdir()
    (home / ".codex" / "config.toml").write_text(CODEX)
    found = adapted(home, "codex", "exec", "do it")
    assert found.command[0] == "codex"
    assert found.command[5:] == ("exec", "do it")
    assert (found.command[1], found.command[3]) == ("-c", "-c")
    told = tomllib.loads("\n".join((found.command[2], found.command[4])))
    (name, server), *others = told["mcp_servers"].items()
    assert (name, others, sorted(server)) == ("small", [], ["args", "command"])
    wanted = tomllib.loads(CODEX)["mcp_servers"]["small"]
    assert behind(server) == [wanted["command"], *wanted["args"]]
    assert "server with.dot;" in found.warnings[0]


def test_what_the_command_says_of_a_codex_server_is_not_said_over(home: Path) -> None:
    folder = home / "elsewhere"
    folder.mkdir()
    (folder / "config.toml").write_text('[mcp_servers.small]\ncommand = "small"\n')
    words = ("codex", "-c", 'mcp_servers.small.command="other"', "exec", "x")
    found = adapted(home, *words, CODEX_HOME=str(folder))
    assert found.command == words
    assert "server small;" in found.warnings[0]


def test_an_agent_that_cannot_be_told_is_warned_of_in_one_line(home: Path) -> None:
    says(home / ".gemini" / "settings.json", mcpServers={"a": SMALL, "b": SMALL, "web": WEB})
    found = adapted(home, "gemini", "-p", "x")
    assert found.command == ("gemini", "-p", "x")
    assert found.warnings == (
        "gemini: nothing will be seen of the stdio MCP servers a, b; "
        "put `stumble mcp --` before the command in its settings",
    )
    assert adapted(home, "python", "agent.py") == AdaptedCommand(command=("python", "agent.py"))


def test_settings_that_cannot_be_read_are_for_the_agent_to_complain_of(home: Path) -> None:
    (home / ".claude.json").write_text("{ no json")
    (home.parent / "work" / ".mcp.json").write_text('["a list"]')
    (home / ".codex").mkdir()
    (home / ".codex" / "config.toml").write_text("= no toml")
    assert adapted(home, "claude", "-p", "x").command == ("claude", "-p", "x")
    assert adapted(home, "codex", "exec", "x").command == ("codex", "exec", "x")
