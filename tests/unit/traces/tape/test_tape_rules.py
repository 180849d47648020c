"""Rules that somebody accepted when the tape was over."""

from pathlib import Path

import pytest

from traces.model import Chunk, Exchange, Request, Response, RunEnding, Trajectory
from traces.tape.appended_rules import add_rules
from traces.tape.reader import read_tape, read_tape_lazily
from traces.tape.seal import seal_tape
from traces.tape.writer import TapeWriter

ASKED = Request(method="POST", url="http://h/", body=b'{"a": 1}')
ANSWER = Response(status=200, chunks=(Chunk(at=0.0, data=b"ok"),), at=0.0, ended=0.0)


@pytest.fixture
def tape(tmp_path: Path) -> Path:
    path = tmp_path / "run.tape"
    with TapeWriter(path, Trajectory(id="run", recorded_at=0.0, rules=("ignore:body.a",))) as tape:
        tape.write_exchange(Exchange(seq=0, request=ASKED, response=ANSWER, started=0.0))
        tape.write_ending(RunEnding(ended="final", at=1.0))
    return path


@pytest.mark.parametrize("sealed", [False, True])
def test_rules_are_put_behind_those_of_the_recording(tape: Path, sealed: bool) -> None:
    before = read_tape(tape)
    if sealed:
        assert seal_tape(tape)
    add_rules(tape, ["day:body.b", "ignore:body.a"])
    add_rules(tape, ['day:body.c "on {}"'])
    for opened in (read_tape, read_tape_lazily):
        now = opened(tape)
        assert now.trajectory.rules == ("ignore:body.a", "day:body.b", 'day:body.c "on {}"')
        assert tuple(now.exchanges) == before.exchanges
        assert now.damage == ()
    seal_tape(tape)
    assert len(read_tape_lazily(tape).trajectory.rules) == 3


def test_a_tape_that_is_being_written_takes_none(tmp_path: Path) -> None:
    path = tmp_path / "run.tape"
    with TapeWriter(path, Trajectory(id="run", recorded_at=0.0)), pytest.raises(BlockingIOError):
        add_rules(path, ["ignore:body.a"])
