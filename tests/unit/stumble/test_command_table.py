"""`stumble --help` lists each command by job, and each of them can be loaded."""

from pathlib import Path

import pytest
from click.testing import CliRunner

import stumble.cli
from stumble.cli.app import cli
from stumble.cli.command_table import (
    COMMAND_GROUPS,
    COMMANDS,
    JOB_FOLDERS,
    OTHER_NAMES,
    load_command,
)

PARTS = {"golden", "newcomer", "import_command", "show_stored_run", "__init__"}
"""Modules that are no command of that name."""


def test_each_module_of_a_command_is_in_the_table() -> None:
    [root] = map(Path, stumble.cli.__path__)
    modules = {path.stem for job in JOB_FOLDERS.values() for path in (root / job).glob("*.py")}
    names = {name.replace("-", "_") for name in COMMANDS}
    assert modules - PARTS == names - {"import"}


@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_is_called_what_the_table_calls_it(name: str) -> None:
    assert load_command(name).name == name


def test_help_lists_the_commands_by_job() -> None:
    printed = CliRunner().invoke(cli, ["--help"]).output
    at = [printed.index(f"{job}:") for job in COMMAND_GROUPS]
    assert at == sorted(at)
    for name, line in COMMANDS.items():
        assert f"  {name} " in printed
        assert len(line) < 70, name


@pytest.mark.parametrize("name", OTHER_NAMES)
def test_a_name_of_other_tools_leads_to_a_command_that_exists(name: str) -> None:
    done = CliRunner().invoke(cli, [name])
    assert done.exit_code == 2
    meant = OTHER_NAMES[name]
    assert f"did you mean {meant}?" in done.output
    assert meant.startswith("--") or meant.split()[0] in COMMANDS


def test_a_name_that_is_nearly_a_command_gets_a_suggestion() -> None:
    done = CliRunner().invoke(cli, ["recrod"])
    assert done.exit_code == 2
    assert "no command 'recrod'; did you mean record?" in done.output


def test_a_name_that_is_like_no_command_is_sent_to_the_list() -> None:
    done = CliRunner().invoke(cli, ["zzz"])
    assert done.exit_code == 2
    assert "stumble --help lists the commands" in done.output
