"""The agent's standard input is passed on, its beginning is kept, and it is played again."""

import os
import pty
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from recorder.agent.agent_input import (
    PipedInput,
    mark_terminal_unread,
    open_piped_input,
    was_terminal_read,
)
from traces.model import MAX_INPUT_BYTES


def run(given: PipedInput, script: str) -> bytes:
    with given.open_pipe() as stdin:
        command = [sys.executable, "-c", f"import sys\n{script}"]
        return subprocess.run(command, stdin=stdin, stdout=-1, timeout=60, check=True).stdout


def filled_pipe(data: bytes) -> int:
    reader, writer = os.pipe()

    def fill() -> None:
        with os.fdopen(writer, "wb", buffering=0) as end:
            try:
                end.write(data)
            except BrokenPipeError:
                return

    threading.Thread(target=fill, daemon=True).start()
    return reader


READ_ALL = "sys.stdout.buffer.write(sys.stdin.buffer.read())"


@pytest.mark.parametrize("data", [b"", b"hi\n", bytes(range(256)) * 1000])
def test_what_is_piped_in_is_passed_on_and_kept(data: bytes) -> None:
    reader = filled_pipe(data)
    given = open_piped_input(reader)
    assert given is not None
    assert run(given, READ_ALL) == data
    assert (given.kept, given.is_whole) == (data, True)
    assert run(PipedInput(data=given.kept), READ_ALL) == data
    os.close(reader)


def test_a_file_is_passed_on_too(tmp_path: Path) -> None:
    (tmp_path / "task").write_bytes(b"do it")
    with (tmp_path / "task").open("rb") as file:
        given = open_piped_input(file.fileno())
        assert given is not None
        assert run(given, READ_ALL) == b"do it"


def test_input_without_an_end_is_not_waited_for() -> None:
    reader, writer = os.pipe()
    os.write(writer, b"first\n")
    given = PipedInput(reader)
    assert run(given, "print(sys.stdin.readline())") == b"first\n\n"
    assert given.kept == b"first\n"
    for each in (reader, writer):
        os.close(each)


def test_more_than_a_tape_holds_is_named() -> None:
    reader = filled_pipe(b"x" * (MAX_INPUT_BYTES + 1))
    given = PipedInput(reader)
    assert run(given, "print(len(sys.stdin.read()))") == b"%d\n" % (MAX_INPUT_BYTES + 1)
    assert (len(given.kept), given.is_whole) == (MAX_INPUT_BYTES, False)
    os.close(reader)


def test_what_is_neither_a_pipe_nor_a_file_is_inherited() -> None:
    with open(os.devnull, "rb") as nothing:  # noqa: PTH123
        assert open_piped_input(nothing.fileno()) is None


def test_a_terminal_that_was_read_is_known() -> None:
    ours, terminal = pty.openpty()
    try:
        assert mark_terminal_unread(terminal)
        os.write(ours, b"typed\n")
        assert not was_terminal_read(terminal)
        assert os.read(terminal, 100) == b"typed\n"
        assert was_terminal_read(terminal)
    finally:
        os.close(ours)
        os.close(terminal)
