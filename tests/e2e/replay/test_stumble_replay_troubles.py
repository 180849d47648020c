"""A replay of what does not fit: one clear line, the right exit code, an end, and nothing left."""

import os
import subprocess
import sys
import time
from copy import replace
from pathlib import Path

import pytest

from tests.support.practice_shop import (
    Said,
    Shop,
)
from traces.model import Chunk, Exchange, Request, Response, RunEnding, Trajectory
from traces.tape.reader import read_tape
from traces.tape.writer import TapeWriter

URL = "http://teller.test/ask"
AGENT = '''
"""Asks what its arguments say; `leave` hears only the beginning, `loop` never ends."""
import json, os, signal, socket, sys, urllib.error, urllib.parse, urllib.request

# Python drops a KeyboardInterrupt that it raises inside a destructor, as urllib's has one.
signal.signal(signal.SIGINT, signal.SIG_DFL)
URL = "http://teller.test/ask"


def ask(body):
    try:
        request = urllib.request.Request(URL, body.encode())
        print(urllib.request.urlopen(request, timeout=60).status, flush=True)
    except urllib.error.HTTPError as refused:
        print(refused.code, flush=True)


def leave(body):
    proxy = urllib.parse.urlsplit(os.environ["HTTP_PROXY"])
    with socket.create_connection((proxy.hostname, proxy.port), timeout=60) as line:
        head = f"POST {URL} HTTP/1.1\\r\\nhost: teller.test\\r\\ncontent-length: {len(body)}"
        line.sendall(f"{head}\\r\\n\\r\\n{body}".encode())
        assert line.recv(20).startswith(b"HTTP/1.1 200")


for word in sys.argv[1:]:
    verb, _, body = word.rpartition("=")
    if verb == "leave":
        leave(body)
    elif verb == "loop":
        number = 0
        while True:
            ask(json.dumps({"number": number, "of": body}))
            number += 1
    elif verb == "env":
        ask(json.dumps({"said": os.environ[body]}))
    else:
        ask(body)
'''


def exchange(seq: int, body: str, answer: bytes = b'{"ok": true}') -> Exchange:
    headers = (("content-type", "application/json"), ("content-length", str(len(answer))))
    return Exchange(
        seq=seq,
        started=float(seq),
        request=Request(method="POST", url=URL, body=body.encode()),
        response=Response(
            status=200,
            reason="OK",
            headers=headers,
            chunks=(Chunk(at=seq + 0.25, data=answer),),
            at=seq + 0.1,
            ended=seq + 0.5,
        ),
    )


class Desk(Shop):
    """A folder with an agent and a tape of what it did, as a user has them."""

    def command(self, *words: str) -> tuple[str, ...]:
        return (sys.executable, "agent.py", *words)

    def tape(self, *exchanges: Exchange, at: float = 0.0) -> Path:
        path = self.folder / "a.tape"
        run = Trajectory(id="r", recorded_at=at, command=self.command("a"))
        with TapeWriter(path, run) as tape:
            for each in exchanges:
                tape.write_exchange(each)
            tape.write_ending(RunEnding(ended="final", exit_code=0, at=9.0))
        return path

    def replay(self, *words: str, more: tuple[str, ...] = (), **env: str) -> Said:
        options = ("--budget", "60", *more)
        return self.stumble(
            "replay", "a.tape", "--in-place", *options, "--", *self.command(*words), env=env
        )

    def left(self) -> list[str]:
        """Programs of this folder that still run."""
        listed = subprocess.run(["ps", "-eo", "args"], capture_output=True, text=True, check=True)
        return [line for line in listed.stdout.splitlines() if str(self.folder) in line]


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    (tmp_path / "agent.py").write_text(AGENT)
    return Desk(folder=tmp_path, book=tmp_path, log=tmp_path, hosts=(), task="none")


def test_another_agent_is_told_where_it_parts_from_the_recorded_one(desk: Desk) -> None:
    desk.tape(exchange(0, '{"find": "a"}'), exchange(1, '{"find": "b"}'))
    said = desk.replay('{"look_up": "a"}', '{"find": "b"}')
    assert said.code == 3
    assert said.out.split() == ["422", "200"]
    assert "1 answered from the tape, 0 upstream, 1 diverged" in said.err
    assert (
        f"diverged: nothing recorded for POST {URL}; nearest is exchange 0 (- recorded, + now):"
        in said.err
    )
    assert "look_up" in said.err


def test_another_method_is_a_difference_like_any_other(desk: Desk) -> None:
    asked = exchange(0, "a")
    desk.tape(replace(asked, request=replace(asked.request, method="PUT")))
    said = desk.replay("a")
    assert said.code == 3
    assert (
        "nearest is exchange 0 (- recorded, + now):\n  method\n    - PUT\n    + POST\n" in said.err
    )


def test_an_agent_that_goes_on_behind_the_end_is_told_that_there_is_nothing(desk: Desk) -> None:
    desk.tape(exchange(0, "a"))
    said = desk.replay("a", "b")
    assert said.code == 3
    assert f"nothing recorded for POST {URL}: the recording holds nothing more" in said.err


def test_a_newer_format_is_refused_before_anything_starts(desk: Desk) -> None:
    path = desk.tape(exchange(0, "a"))
    path.write_bytes(path.read_bytes()[:7] + b"\x63" + path.read_bytes()[8:])
    said = desk.replay("a")
    assert (said.code, said.out) == (2, "")
    assert "tape format 99, this version reads up to" in said.err
    assert said.err.count("\n") == 1


def test_an_answer_that_the_tape_lost_is_refused_and_named(desk: Desk) -> None:
    path = desk.tape(exchange(0, "a", b"x" * 40), exchange(1, "b"))
    whole = path.read_bytes()
    path.write_bytes(whole.replace(b"x" * 40, b"x" * 39 + b"y"))
    assert read_tape(path).damage
    said = desk.replay("a", "b")
    assert said.code == 3
    assert said.out.split() == ["422", "200"]
    assert "could not be read" in said.err
    assert "nearest is exchange 0 (- recorded, + now):" in said.err
    assert "its answer is not whole on the tape (damaged:" in said.err


def test_an_answer_that_never_ended_is_refused_and_named(desk: Desk) -> None:
    path, cut = desk.folder / "a.tape", exchange(0, "a")
    run = Trajectory(id="r", recorded_at=0.0)
    with TapeWriter(path, run) as tape:
        tape.request(cut)
        tape.head(cut)
    said = desk.replay("a")
    assert said.code == 3
    assert "the run was not closed" in said.err
    assert "its answer is not whole on the tape (the recording ended before it did)" in said.err


def test_a_secret_of_another_user_finds_what_was_recorded(desk: Desk) -> None:
    mine, yours = "sk-live-0123456789abcdef", "sk-proj-" + "aB3d" * 12
    path = desk.tape(exchange(0, f'{{"said": "{mine}"}}'), exchange(1, "b"))
    assert mine.encode() not in path.read_bytes()
    said = desk.replay("env=SHOP_API_KEY", "b", SHOP_API_KEY=yours)
    assert said.code == 0, said.err
    assert said.out.split() == ["200", "200"]
    for tape in (desk.folder / ".stumble").rglob("*.tape"):
        assert all(yours.encode() not in x.request.body for x in read_tape(tape).exchanges)


def test_an_agent_that_never_ends_is_ended_and_told_of_in_a_few_lines(desk: Desk) -> None:
    desk.tape(exchange(0, '{"number": -1}'))
    said = desk.replay("loop=x", more=("--budget", "4"))
    assert said.code == 124
    assert len(said.out.splitlines()) > 30, "it was refused many times"
    assert said.err.count("diverged: nothing recorded") == 3
    assert "more; `stumble show" in said.err
    assert "it went on after it was refused; --on-miss halt ends an agent there" in said.err
    assert "the agent was ended after 4 s (--budget)" in said.err
    assert len(said.err.splitlines()) < 40
    assert desk.left() == []


def test_an_agent_that_never_ends_can_be_ended_at_its_first_miss(desk: Desk) -> None:
    desk.tape(exchange(0, '{"number": -1}'))
    said = desk.replay("loop=x", more=("--on-miss", "halt"))
    assert said.code == 3
    assert len(said.out.split()) < 20
    assert desk.left() == []


@pytest.mark.parametrize("together", [True, False])
def test_two_copies_of_an_agent_do_not_both_follow_the_recording(
    desk: Desk, together: bool
) -> None:
    desk.tape(exchange(0, "a"), exchange(1, "b"))
    one = " ".join(desk.command("a", "b"))
    both = f"{one} & {one}; wait" if together else f"{one}; {one}"
    result = desk.stumble(
        "replay", "a.tape", "--in-place", "--budget", "60", "--", "sh", "-c", both
    )
    assert result.code == 3
    assert sorted(result.out.split()) == ["200", "200", "422", "422"]
    assert "it was asked more often than the recording holds" in result.err
    assert desk.left() == []


def test_a_client_that_leaves_while_it_is_answered_has_used_up_its_answer(desk: Desk) -> None:
    desk.tape(exchange(0, "a", b"x" * 3_000_000), exchange(1, "b"))
    said = desk.replay("leave=a", "b")
    assert said.code == 0, said.err
    again = desk.replay("leave=a", "a", "b")
    assert (again.code, again.out.split()) == (3, ["422", "200"])
    assert "asked more often" in again.err


def test_a_recording_from_the_future_is_played_at_its_own_pace(desk: Desk) -> None:
    """The wall clock was set back since: nothing of a replay goes by it."""
    desk.tape(exchange(0, "a"), exchange(1, "b"), at=time.time() + 3e8)
    for speed in ("0", "1"):
        said = desk.replay("a", "b", more=("--speed", speed))
        assert said.code == 0, said.err


def test_a_date_in_what_is_asked_is_shown_with_the_rule_for_it(desk: Desk) -> None:
    desk.tape(exchange(0, '{"said": "today is 2026-11-20"}'))
    said = desk.replay("env=TODAY", TODAY="today is 2026-11-21")
    assert said.code == 3
    assert '- "today is 2026-11-20"' in said.err
    assert '+ "today is 2026-11-21"' in said.err
    rule = "--match 'ignore:body.said'"
    assert f"to let it pass: {rule}" in said.err
    more = ("--match", "ignore:body.said")
    assert desk.replay("env=TODAY", more=more, TODAY="today is 2026-11-21").code == 0


def test_ctrl_c_ends_the_agent_and_every_replay_after_it(desk: Desk) -> None:
    desk.tape(exchange(0, '{"number": -1}'))
    words = ("replay", "a.tape", "--in-place", "--times", "5", "--", *desk.command("loop=x"))
    running = subprocess.Popen(
        [sys.executable, "-m", "stumble", *words],
        cwd=desk.folder,
        env=desk.environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    assert running.stdout is not None
    assert running.stdout.readline() == "422\n"
    os.kill(running.pid, 2)
    out, err = running.communicate(timeout=60)
    assert running.returncode == 130, err
    assert "stumble/__main__" not in err, "the agent's own words are its own"
    assert desk.left() == []
