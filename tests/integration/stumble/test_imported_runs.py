"""`stumble show` and `stumble forget` of an imported conversation, by its id."""

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.warm_stumble import CommandResult, run_stumble

CALL = {"id": "c1", "function": {"name": "get_order", "arguments": '{"id": "7"}'}}
MESSAGES = [
    {"role": "system", "content": "# Airline agent policy"},
    {"role": "user", "content": "Where is my order?"},
    {"role": "assistant", "content": "I look.", "tool_calls": [CALL]},
    {"role": "tool", "tool_call_id": "c1", "name": "get_order", "content": "x" * 300},
    {"role": "assistant", "content": "It left. \x1b[31mred"},
]
ENDS = [[*MESSAGES, {"role": "user", "content": f"{n} ###STOP###"}] for n in range(2)]
RUNS = [{"task_id": n, "trial": 0, "reward": 1.0, "traj": traj} for n, traj in enumerate(ENDS)]

type Stumble = Callable[..., CommandResult]


def open_store(folder: Path) -> Stumble:
    """Import two runs of one file; return what runs a command in their store."""
    environment = os.environ | {"STUMBLE_STORE": str(folder / ".stumble"), "HOME": str(folder)}

    def run(*arguments: str) -> CommandResult:
        return run_stumble(arguments, cwd=folder, env=environment, timeout=60)

    (folder / "gpt-4o-airline.json").write_text(json.dumps(RUNS))
    assert run("import", "gpt-4o-airline.json").code == 0
    return run


@pytest.fixture(scope="module")
def stumble(tmp_path_factory: pytest.TempPathFactory) -> Stumble:
    return open_store(tmp_path_factory.mktemp("imported"))


def list_ids(stumble: Stumble) -> list[str]:
    result = stumble(
        "sql", "select trajectory_id from trajectories order by task", "--format", "csv"
    )
    return result.out.split()[1:]


def list_kept(folder: Path) -> list[Path]:
    """The kept copies of imported files."""
    return [path for path in (folder / ".stumble" / "imports").rglob("*") if "airline" in path.name]


def test_show_prints_a_conversation_that_has_no_tape(stumble: Stumble) -> None:
    id, _ = list_ids(stumble)
    result = stumble("show", id)
    assert result.code == 0, result.err
    lines = result.out.splitlines()
    assert lines[:4] == ["  1  system", "       # Airline agent policy", "  2  user",
                         "       Where is my order?"]  # fmt: skip
    assert '       -> get_order({"id": "7"})' in lines
    assert f"       <- {'x' * 96}…" in lines
    assert "\x1b" not in result.out
    assert lines[-1] == (
        f"{id}: gpt-4o, 2 steps, 1 tool calls, imported, without its traffic, ended final,"
        " end state right"
    )
    assert f"       <- {'x' * 300}" in stumble("show", id, "--step", "3").out.splitlines()
    rows = stumble("show", id, "--json").json
    assert [row["source"] for row in rows] == ["system", "user", "agent", "agent", "user"]
    (call,) = rows[2]["tool_calls"]
    assert (call["tool"], call["result"], call["is_error"]) == ("get_order", "x" * 300, False)


def test_show_refuses_what_a_conversation_does_not_have(stumble: Stumble) -> None:
    id, _ = list_ids(stumble)
    for options, why in (
        (("--exchanges",), "which has only steps"),
        (("--tools",), "which has only steps"),
        (("--step", "9"), "has steps 1 to 5, but no step 9"),
    ):
        result = stumble("show", id, *options)
        assert (result.code, why in result.err) == (2, True), result.err
    result = stumble("show", "no-such-run")
    assert (result.code, "no run of that id" in result.err) == (2, True)


def test_forget_removes_runs_by_id_and_by_file_and_names_unknown_ones(tmp_path: Path) -> None:
    stumble = open_store(tmp_path)
    one, other = list_ids(stumble)
    assert list_kept(tmp_path)
    result = stumble("forget", one, "no-such-run")
    assert result.code == 1
    assert result.out.startswith("forgot 1 run\nnote: imports/")
    assert result.err == "not an imported run: no-such-run\n"
    assert list_ids(stumble) == [other]
    stumble("sql", "select 1", "--rebuild")
    assert list_ids(stumble) == [other], "a rebuilt index does not bring it back"
    result = stumble("forget", "--file", "gpt-4o-airline.json")
    assert result.out == "forgot 1 run\n"
    assert list_ids(stumble) == []
    assert list_kept(tmp_path) == []
    assert stumble("import", "gpt-4o-airline.json").code == 0
    assert list_ids(stumble) == [one, other]
