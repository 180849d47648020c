"""A write is known by the commands that it runs, whatever values they get."""

import json

import pytest

from faults.judging.claims.required_writes import _does_the_same
from faults.judging.command_names import list_commands
from traces.conversation.derived_steps import ToolUse


def make_use(command: str, tool: str = "sh") -> ToolUse:
    return ToolUse(
        step=1,
        call_id="c",
        tool=tool,
        arguments=json.dumps({"command": command}),
        lane=0,
        asked_by=0,
        prefix="",
        ordinal=1,
        result=None,
        result_seq=None,
        is_error=None,
        place="local",
        join=None,
        seqs=(),
    )


@pytest.mark.parametrize(
    ("command", "names"),
    [
        ("git commit -m 'build 41722'", {("git", "commit")}),
        (
            "cd /repo && git add . && git commit -m x",
            {("cd", ""), ("git", "add"), ("git", "commit")},
        ),
        ("A=1 B=2 make test | tail -3", {("make", "test"), ("tail", "")}),
        ("echo 'an open quote", {("echo", "")}),
        ("# nothing", set()),
    ],
)
def test_commands_of_a_line_are_named_by_program_and_sub_command(
    command: str, names: set[tuple[str, str]]
) -> None:
    assert list_commands(json.dumps({"command": command})) == names


def test_arguments_without_a_command_name_none() -> None:
    assert list_commands('{"order": "ord-7314", "amount": 1284.57}') == frozenset()
    assert list_commands("no json") == frozenset()


@pytest.mark.parametrize(
    ("own", "wanted", "same"),
    [
        ("git checkout setup.cfg", "git commit -m x", False),
        ("git commit -m 'build 41729'", "git commit -m 'build 41722'", True),
        ("cd /repo && git commit -am x", "git commit -m x", True),
        ("set-build 41729", "set-build 41722", True),
    ],
)
def test_another_sub_command_is_another_write(own: str, wanted: str, same: bool) -> None:
    assert _does_the_same(make_use(own), make_use(wanted)) is same
    assert not _does_the_same(make_use(own, tool="bash"), make_use(wanted))
