"""Texts on a tape of somebody else, printed: for a terminal, in JSON, and nested without end."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from traces.model import Chunk, Exchange, Request, Response, RunEnding, Trajectory
from traces.tape.writer import TapeWriter

CONTROLS = "\x1b]0;pwned\x07\x1b[2J\x9b31m\u202egnp.exe\roverwritten"
HALF = "\ud83d"
DEEP = "[" * 200_000


def write_talk(path: Path, text: str, arguments: str) -> None:
    """A model's answer with this text and one call with these arguments."""
    call = {"id": text, "type": "function", "function": {"name": text, "arguments": arguments}}
    message = {"role": "assistant", "content": text, "tool_calls": [call]}
    asked = json.dumps({"model": "m", "messages": [{"role": "user", "content": text}]})
    said = json.dumps({"model": "m", "choices": [{"message": message}]})
    kind = (("content-type", "application/json"),)
    url = "http://m/v1/chat/completions"
    request = Request(method="POST", url=url, headers=kind, body=asked.encode())
    chunks = (Chunk(at=0.0, data=said.encode()),)
    answer = Response(status=200, headers=kind, chunks=chunks, at=0.0, ended=0.0)
    with TapeWriter(path, Trajectory(id="talk", recorded_at=0.0)) as tape:
        tape.write_exchange(Exchange(seq=0, request=request, response=answer, started=0.0))
        tape.write_ending(RunEnding(ended="final"))


def show(path: Path, *options: str) -> bytes:
    done = subprocess.run(
        [sys.executable, "-m", "stumble", "show", str(path), *options],
        capture_output=True, timeout=60, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, b""), done.stderr[-500:]
    return done.stdout


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "talk.tape"


def test_no_control_character_reaches_the_terminal(path: Path) -> None:
    write_talk(path, CONTROLS, CONTROLS)
    text = show(path).decode()
    assert text.count("pwned") == 4
    assert not set(text) & set("\x1b\x07\x9b\r\u202e")


def test_half_a_surrogate_pair_is_printed_and_stays_json(path: Path) -> None:
    write_talk(path, HALF, DEEP)
    assert b"\\ud83d" in show(path)
    assert HALF in json.loads(show(path, "--json"))[0].values()
