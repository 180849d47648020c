"""What a client has, the tape has: a recorder that is killed under load, and a tape that is cut.

The client's own log, written before it goes on, says which answers it had whole. `KILLS` sets how
often the recorder is killed, at about a second each, and `SEED` when: few times here, and by hand

    for SEED in 1 2 3 4 5; do
        SEED=$SEED KILLS=200 python -m pytest -s tests/hostile/test_durability.py -k killed
    done

which says after each kill how many answers the client has had so far.
"""

import json
import os
import random
import signal
import sys
import threading
import time
from collections.abc import Iterator
from copy import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from tests.support.practice_shop import Said
from tests.support.warm_stumble import SERVER, _main, run_stumble
from traces.model import Chunk, Exchange, Request, Response, Trajectory
from traces.tape.reader import Tape, read_tape
from traces.tape.writer import TapeWriter

KILLS = int(os.environ.get("KILLS", "8"))
SEED = int(os.environ.get("SEED", "20261122"))
AGENT = """
import http.client, os, sys, threading
log = os.open("../log", os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
def work(name):
    host, _, port = os.environ["HTTP_PROXY"].removeprefix("http://").partition(":")
    line = http.client.HTTPConnection(host, int(port))
    for n in range(10**6):
        line.request("GET", f"http://load.test/{name}/{n}")
        body = line.getresponse().read()
        os.write(log, f"{name}/{n} {len(body)}\\n".encode())
threads = [threading.Thread(target=work, args=(name,)) for name in range(6)]
[each.start() for each in threads]
"""


class Load(BaseHTTPRequestHandler):
    """Answers of all sizes, with their length or in chunks."""

    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        said = self.path.encode()
        body = said * (1 + len(said) * hash(said) % 300)
        self.send_response(200)
        if hash(said) % 3:
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)
            return
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        for start in range(0, len(body), 4096):
            piece = body[start : start + 4096]
            self.wfile.write(b"%x\r\n%s\r\n" % (len(piece), piece))
        self.wfile.write(b"0\r\n\r\n")

    def log_message(self, format: str, *args: object) -> None:
        pass


class Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request: object, client_address: object) -> None:
        """The recorder was killed: that is the point."""


@pytest.fixture
def load() -> Iterator[int]:
    with Server(("127.0.0.1", 0), Load) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield server.server_address[1]
        server.shutdown()
        thread.join(timeout=10)


def environment(above: Path) -> dict[str, str]:
    kept = {k: v for k, v in os.environ.items() if not k.startswith("STUMBLE")}
    return kept | {"HOME": str(above), "STUMBLE_STORE": str(above / "store")}


def killed(above: Path, port: int, after: float) -> tuple[dict[str, int], Path]:
    """A recording that is killed so many seconds after its first answer; what the client had."""
    work = above / "work"
    work.mkdir()
    (work / "agent.py").write_text(AGENT)
    options = ("--no-snapshot", "--host", f"load.test=127.0.0.1:{port}", "-o", "../a.tape")
    words = ("record", *options, "--", sys.executable, "agent.py")
    outs = (str(above / "out"), str(above / "err"))
    process = SERVER.Process(target=_main, args=(words, str(work), environment(above), *outs))
    process.start()
    log = above / "log"
    until = time.monotonic() + 60
    while not (log.exists() and log.stat().st_size):
        assert time.monotonic() < until, Path(outs[1]).read_text()
        time.sleep(0.005)
    time.sleep(after)
    assert process.pid is not None
    os.kill(process.pid, signal.SIGKILL)
    process.join(20)
    time.sleep(0.1)  # the agent dies with its minder, and may write one line more
    lines = [line.split() for line in log.read_text().splitlines()]
    return {name: int(size) for name, size in lines}, above / "a.tape"


def find_losses(had: dict[str, int], tape: Tape) -> list[str]:
    """What the client had, by its names and their sizes, and the tape does not have."""
    found = {x.request.url.removeprefix("http://load.test/"): x for x in tape.exchanges}
    return [
        f"{asked}: {loss}" for asked, size in had.items() if (loss := lost(found.get(asked), size))
    ]


def lost(found: Exchange | None, size: int) -> str | None:
    if found is None or found.response is None:
        return "not on the tape"
    if found.error is not None or found.response.ended is None:
        return f"has no end on the tape ({found.error})"
    recorded = sum(len(chunk.data) for chunk in found.response.chunks)
    return None if recorded == size else f"{recorded} of {size} bytes"


@pytest.mark.timeout(60 + 20 * KILLS)
def test_a_killed_recorder_loses_no_answer_and_no_end_that_the_client_had(load: int) -> None:
    chance = random.Random(SEED)
    losses, answers = list[str](), 0
    for kill in range(KILLS):
        with TemporaryDirectory(prefix="s-") as name:
            had, path = killed(Path(name), load, chance.uniform(0, 0.4))
            tape = read_tape(path)
        losses += [f"kill {kill}, {each}" for each in find_losses(had, tape)]
        if tape.cut_at is None:
            losses.append(f"kill {kill}: the tape is not said to be cut")
        answers += len(had)
        sys.stderr.write(f"{kill + 1} kills, {answers} answers, {len(losses)} lost\n")
    assert not losses, "\n".join(losses)
    assert answers >= KILLS  # how many more depends on the machine


def test_a_loss_would_be_found(tmp_path: Path) -> None:
    cut(path := tmp_path / "a.tape", an_answer(b"half", length=8))
    had = {"0": 2, "1": 4, "2": 1}
    assert find_losses(had, read_tape(path)) == [
        "1: has no end on the tape (None)",
        "2: not on the tape",
    ]
    assert find_losses({"0": 3}, read_tape(path)) == ["0: 2 of 3 bytes"]


def a_request(seq: int) -> Request:
    return Request(method="GET", url=f"http://load.test/{seq}")


def an_answer(*pieces: bytes, length: int | None = None) -> Response:
    headers = () if length is None else (("Content-Length", str(length)),)
    chunks = tuple(Chunk(at=0.1 + n, data=piece) for n, piece in enumerate(pieces))
    return Response(status=200, headers=headers, chunks=chunks, at=0.1)


@pytest.mark.parametrize("count", [1023, 1025, 3000])
def test_a_stream_of_any_number_of_chunks_is_written_at_once(count: int, tmp_path: Path) -> None:
    answer = an_answer(*(b"x%d" % n for n in range(count)))
    whole = Exchange(seq=0, request=a_request(0), response=answer, started=0.0)
    with TapeWriter(tmp_path / "a.tape", Trajectory(id="a", recorded_at=0.0)) as tape:
        tape.write_exchange(whole)
    again = read_tape(tmp_path / "a.tape").exchanges[0].response
    assert again is not None
    assert again.chunks == answer.chunks


def cut(path: Path, last: Response | None) -> None:
    """A recording of one answer, and of another of which only the head and its pieces came."""
    path.unlink(missing_ok=True)
    trajectory = Trajectory(id="cut", recorded_at=0.0, command=("true",))
    with TapeWriter(path, trajectory) as tape:
        first = replace(an_answer(b"ok", length=2), ended=0.2)
        tape.write_exchange(Exchange(seq=0, request=a_request(0), response=first, started=0.0))
        second = Exchange(seq=1, request=a_request(1), response=last, started=1.0)
        tape.request(second)
        if last is not None:
            tape.head(second)
            for chunk in last.chunks:
                tape.chunk(second, chunk)


@pytest.mark.parametrize(
    ("last", "at", "completed"),
    [
        (None, 1, ()),
        (an_answer(b"half", length=8), 1, ()),
        (an_answer(b"half", b"more", length=8), 2, (1,)),
        (an_answer(length=0), 2, (1,)),
        (an_answer(b"no length"), 1, ()),
    ],
)
def test_a_tape_knows_where_it_was_cut(
    last: Response | None, at: int, completed: tuple[int, ...], tmp_path: Path
) -> None:
    cut(path := tmp_path / "a.tape", last)
    tape = read_tape(path)
    assert (tape.cut_at, tape.completed) == (at, completed)
    answer = tape.exchanges[1].response
    assert (answer is not None and answer.ended is not None) == bool(completed)


def test_a_cut_recording_is_said_to_be_one_everywhere(tmp_path: Path) -> None:
    (tmp_path / "store" / "tapes").mkdir(parents=True)
    cut(path := tmp_path / "store" / "tapes" / "cut.tape", an_answer(b"half", length=8))
    asks = "import urllib.request as u\nfor n in range(99):\n    try: u.urlopen("
    asks += "f'http://load.test/{n}', timeout=9)\n    except OSError: pass\n"
    (tmp_path / "agent.py").write_text(asks)

    def stumble(*words: str) -> Said:
        return run_stumble(words, cwd=tmp_path, env=environment(tmp_path), timeout=90)

    shown = stumble("show", str(path))
    assert "cut at exchange 1" in shown.out
    assert "the run was not closed: cut at exchange 1" in shown.err
    row = stumble("sql", "select cut_at, ended, passed_reason from trajectories", "--json").json
    assert row == [
        {"cut_at": 1, "ended": None, "passed_reason": "the recording has no end: cut at exchange 1"}
    ]
    agent = ("--in-place", "--json", "--", sys.executable, "agent.py")
    again = stumble("replay", str(path), *agent)
    assert (again.code, again.json["cut_at"], again.json["answered"]) == (3, 1, 1)
    again = stumble("replay", str(path), "--in-place", "--", sys.executable, "agent.py")
    assert "the recording was cut at exchange 1: a replay can follow it up to there" in again.err
    assert json.loads(stumble("show", str(path), "--exchanges", "--json").out)[1]["seq"] == 1
