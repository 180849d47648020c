"""Options from `stumble.toml`."""

import re
import shutil
import subprocess
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from stumble.cli.app import cli
from stumble.cli.command_table import load_command
from stumble.cli.project_defaults import find_project_file, read_project_defaults
from stumble.errors import UsageError

ROOT = Path(__file__).resolve().parents[3]


def read(folder: Path, text: str, name: str) -> dict[str, object]:
    path = folder / "stumble.toml"
    path.write_text(text)
    return dict(read_project_defaults(path, name, load_command(name)))


def test_keys_are_long_options_and_the_world_serves_each_command_that_has_it(
    tmp_path: Path,
) -> None:
    text = """
    [world]
    reset = "{project}/reset.sh"
    verify = "./verify.sh"
    [fork]
    seed = 7
    fault = ["digit", "delay:ms=5"]
    [pipeline.run]
    agent = "builtin"
    """
    fork = read(tmp_path, text, "fork")
    assert fork["reset"] == f"{tmp_path}/reset.sh"
    assert fork["verify"] == "./verify.sh"
    assert fork["seed"] == 7
    assert set(fork) >= {"reset", "verify", "seed"}
    assert ["digit", "delay:ms=5"] in fork.values()
    assert read(tmp_path, text, "sql") == {}
    assert read(tmp_path, text, "pipeline")["run"] == {"agent": "builtin"}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[frok]", "no command 'frok'; did you mean fork?"),
        ("[fork]\nsede = 1", r"\[fork\] has no option 'sede'; did you mean seed?"),
        ("[world]\nrest = 'x'", "has reset, verify, state, ledger, ledger-key, but no 'rest'"),
        ("fork = 1", "fork is no table"),
        ("[fork]\nseed = 2026-01-01", "seed is no text, number"),
        ("[fork]\nseed = {a = 1}", "seed is no text, number"),
        ("[fork", "Expected"),
    ],
)
def test_a_mistake_is_named_with_the_file(text: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=rf"stumble\.toml: .*{message}"):
        read(tmp_path, text, "fork")


def test_the_command_line_wins_over_the_file_and_the_file_over_the_default(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "stumble.toml").write_text('[faults]\njson = true\n[world]\nreset = "true"\n')
    (tmp_path / "below").mkdir()
    monkeypatch.chdir(tmp_path / "below")
    assert CliRunner().invoke(cli, ["faults"]).stdout.startswith(("[", "{"))
    (tmp_path / "stumble.toml").unlink()
    assert not CliRunner().invoke(cli, ["faults"]).stdout.startswith(("[", "{"))


def test_the_nearest_file_counts(tmp_path: Path) -> None:
    inner = tmp_path / "a" / "b"
    inner.mkdir(parents=True)
    (tmp_path / "stumble.toml").touch()
    assert find_project_file(inner) == tmp_path / "stumble.toml"
    (tmp_path / "a" / "stumble.toml").touch()
    assert find_project_file(inner) == tmp_path / "a" / "stumble.toml"


def test_a_file_of_another_user_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "stumble.toml"
    path.write_text("[world]\nreset = 'rm -rf ~'\n")
    owner = path.stat().st_uid
    if owner == 0:
        import os

        os.chown(path, 12345, 12345)
    else:
        monkeypatch.setattr("os.getuid", lambda: owner + 1)
    with pytest.raises(UsageError, match="belongs to another user"):
        find_project_file(tmp_path)


def test_every_option_of_every_command_can_be_a_default() -> None:
    """Names of options are unique after their dashes, so that a key means one option."""

    def walk(command: click.Command) -> None:
        names = [
            long
            for parameter in command.params
            if isinstance(parameter, click.Option)
            for long in parameter.opts
            if long.startswith("--")
        ]
        assert len(names) == len(set(names)), command.name
        for inner in command.commands.values() if isinstance(command, click.Group) else ():
            walk(inner)

    from stumble.cli.command_table import COMMANDS

    for name in COMMANDS:
        walk(load_command(name))


def test_the_documented_file_is_accepted(tmp_path: Path) -> None:
    page = (ROOT / "docs/configuration.md").read_text().partition("## Variables")[0]
    lines = [line[4:] for line in page.splitlines() if line.startswith("    ") or not line]
    for name in ("record", "fork", "pipeline", "campaign"):
        read(tmp_path, "\n".join(lines), name)
    assert read(tmp_path, "\n".join(lines), "pipeline")["run"] == {"agent": "builtin"}


def test_each_variable_is_documented() -> None:
    documented = (ROOT / "docs/configuration.md").read_text()
    packages = ("stumble", "recorder", "replay", "faults", "traces", "scenarios", "sandbox")
    names = {
        name
        for package in packages
        for path in (ROOT / package).rglob("*.py")
        for name in re.findall(r'"(STUMBLE_[A-Z_]+[A-Z])"', path.read_text())
    }
    assert names
    assert [name for name in sorted(names) if f"`{name}`" not in documented] == []


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_prints_a_script_for_the_shell(shell: str) -> None:
    answer = CliRunner().invoke(cli, ["completion", shell])
    assert answer.exit_code == 0
    assert "_STUMBLE_COMPLETE" in answer.stdout
    if shell == "bash" and (bash := shutil.which("bash")):
        subprocess.run((bash, "-n"), input=answer.stdout, text=True, check=True)


def test_commands_and_options_are_completed() -> None:
    import os

    answer = CliRunner().invoke(
        cli,
        [],
        prog_name="stumble",
        env={
            **os.environ,
            "_STUMBLE_COMPLETE": "bash_complete",
            "COMP_WORDS": "stumble rec",
            "COMP_CWORD": "1",
        },
    )
    assert "plain,record" in answer.stdout
