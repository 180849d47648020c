"""A tape survives what happens to files, and says what it lost."""

import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Buffer, Sequence
from copy import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from tests.support.tiers import examples
from traces.model import (
    BodyEdit,
    Chunk,
    Exchange,
    Injection,
    Request,
    Response,
    RunEnding,
    RunEvent,
    Trajectory,
)
from traces.tape.field_types import is_parsable_url
from traces.tape.reader import read_tape
from traces.tape.seal import seal_tape
from traces.tape.writer import TapeWriter

RUN = Trajectory(id="run-1", recorded_at=1.5, command=("python", "agent.py"), task="t", seed=7)


def exchange(seq: int, body: bytes = b"{}", answer: bytes = b"ok") -> Exchange:
    chunks = (Chunk(at=seq + 0.25, data=answer),) if answer else ()
    return Exchange(
        seq=seq,
        started=float(seq),
        connection=3,
        request=Request(
            method="POST", url=f"http://shop/{seq}", headers=(("X-Odd", "caf\xe9"),), body=body
        ),
        response=Response(status=200, chunks=chunks, at=seq + 0.1, ended=seq + 0.5),
    )


def written(path: Path, *exchanges: Exchange, redact: bool = True) -> Path:
    with TapeWriter(path, RUN, redact=redact) as tape:
        for each in exchanges:
            tape.write_exchange(each)
        tape.write_ending(RunEnding(ended="final", exit_code=0, passed=True, at=9.0))
    return path


texts = st.binary(max_size=200)
headers = st.lists(
    st.tuples(st.text("abcXYZ-", min_size=1, max_size=9), st.text("az \xe9", max_size=9)),
    max_size=4,
).map(tuple)
times = st.floats(0, 1e6)


@st.composite
def exchanges(draw: st.DrawFn) -> list[Exchange]:
    out = []
    base = draw(texts) * 20
    for seq in range(draw(st.integers(0, 6))):
        body = base[: draw(st.integers(0, len(base)))] + draw(texts)
        base = draw(st.sampled_from([base, body, base + draw(texts)]))
        answer = None
        if draw(st.booleans()):
            chunks = draw(st.lists(st.builds(Chunk, at=times, data=texts), max_size=4).map(tuple))
            answer = Response(
                status=draw(st.integers(100, 599)),
                headers=draw(headers),
                chunks=chunks,
                trailers=draw(headers),
                reason=draw(st.sampled_from(["", "OK"])),
                version=draw(st.sampled_from(["HTTP/1.1", "HTTP/2.0"])),
                at=draw(times),
                ended=draw(st.none() | times),
            )
        edits = draw(st.sampled_from([(), (BodyEdit(start=0, stop=0, data=b"x"),)]))
        out.append(
            Exchange(
                seq=seq,
                request=Request(method="POST", url="http://h/p", headers=draw(headers), body=body),
                response=answer,
                error=draw(st.sampled_from([None, "reset", "eof: cut"])),
                started=draw(times),
                connection=draw(st.integers(0, 9)),
                stream=draw(st.integers(0, 9)),
                transport=draw(st.sampled_from(["http", "websocket", "stdio"])),
                answered_by=draw(st.sampled_from(["live", "recorded", "fault"])),
                edits=edits,
                cascade=draw(st.booleans()),
                pinned=draw(st.sampled_from([(), ("c1", "c2")])),
            )
        )
    return out


@given(given_exchanges=exchanges())
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
def test_what_is_read_is_what_was_written(
    tmp_path_factory: pytest.TempPathFactory, given_exchanges: list[Exchange]
) -> None:
    path = tmp_path_factory.mktemp("t") / "a.tape"
    # What hypothesis makes up may look like a key.
    tape = read_tape(written(path, *given_exchanges, redact=False))

    assert list(tape.exchanges) == given_exchanges
    assert tape.trajectory == RUN
    assert tape.ending == RunEnding(ended="final", exit_code=0, passed=True, at=9.0)
    assert tape.damage == ()


anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner),
    max_leaves=8,
)


@given(
    scheme=st.sampled_from(["http", "https", "stdio", "ws+x", ""]),
    authority=st.text("aZ09.:[]@%/#?\\ \xe9\u2100\ud800", max_size=12) | st.text(max_size=8),
    path=st.text(max_size=8),
    data=st.dictionaries(st.text(max_size=3), anything, max_size=3),
    redact=st.booleans(),
)
@example(scheme="http", authority="::1:80", path="two", data={}, redact=True)
@example(scheme="stdio", authority="my:[server", path="", data={"n": 2**60}, redact=True)
@example(scheme="http", authority="h:0", path="\ud800", data={"x": float("nan")}, redact=False)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
def test_whatever_is_written_is_read(
    tmp_path_factory: pytest.TempPathFactory,
    scheme: str,
    authority: str,
    path: str,
    data: dict[str, object],
    redact: bool,
) -> None:
    url = f"{scheme}://{authority}/{path}"
    file = tmp_path_factory.mktemp("t") / "a.tape"
    with TapeWriter(file, RUN, redact=redact) as tape:
        tape.write_exchange(replace(exchange(0), request=Request(method="GET", url=url)))
        tape.write_mark(RunEvent(at=1.0, name="n", data=data))
    read = read_tape(file)
    assert read.damage == ()
    assert [each.response.status for each in read.exchanges if each.response] == [200]
    assert [each.name for each in read.marks] == ["n"]
    if redact is False and is_parsable_url(url):
        assert read.exchanges[0].request.url == url


@pytest.mark.parametrize(
    "field", [{"id": "a/b"}, {"seed": 2**60}, {"command": ("a\0b",)}, {"snapshot": ""}]
)
def test_a_trajectory_that_could_not_be_read_is_not_written(
    tmp_path: Path, field: dict[str, Any]
) -> None:
    with pytest.raises((TypeError, ValueError)):
        TapeWriter(tmp_path / "a.tape", replace(RUN, **field))
    assert list(tmp_path.iterdir()) == []


def test_a_tape_of_an_older_format_opens() -> None:
    """Format 1 held in each chunk whether the agent sent it; the answer was never true."""
    tape = read_tape(Path(__file__).parents[3] / "data" / "format-1.tape")
    model, socket = tape.exchanges
    assert model.response is not None
    assert model.response.chunks == (
        Chunk(at=0.25, data=b"data: a\n\n"),
        Chunk(at=0.5, data=b"data: b\n\n"),
    )
    assert (socket.transport, socket.response and socket.response.status) == ("websocket", 101)
    assert (tape.damage, tape.ending and tape.ending.passed) == ((), True)
    assert (tape.trajectory.campaign, tape.trajectory.cell) == (None, None)


def test_an_injection_comes_back_whole(tmp_path: Path) -> None:
    injection = Injection(
        id="run-1/1",
        seq=4,
        side="request",
        op="digit",
        place="model-boundary",
        address="ab",
        params={"min_digits": 3},
        original=b"1250",
        mutated=b"1259",
        edits=(BodyEdit(start=1, stop=2, data=b"9"),),
    )
    with TapeWriter(tmp_path / "a.tape", RUN) as tape:
        tape.write_injection(injection)

    assert read_tape(tmp_path / "a.tape").injections == (injection,)


def test_a_tape_cut_anywhere_gives_a_prefix_and_says_how_much_it_lost(tmp_path: Path) -> None:
    whole = written(tmp_path / "a.tape", *(exchange(seq, b"x" * 400) for seq in range(6)))
    data, full = whole.read_bytes(), read_tape(whole).exchanges

    for cut in random.Random(1).sample(range(120, len(data)), 60):
        part = tmp_path / "cut.tape"
        part.write_bytes(data[:cut])
        tape = read_tape(part)
        asked = [x.request for x in tape.exchanges]
        assert asked == [x.request for x in full][: len(asked)]
        assert len(data[:cut]) - tape.dropped >= 0
        assert tape.ending is None


def test_a_flipped_bit_costs_one_frame_and_is_named(tmp_path: Path) -> None:
    whole = written(tmp_path / "a.tape", *(exchange(seq) for seq in range(8)))
    data = bytearray(whole.read_bytes())
    data[len(data) // 2] ^= 0x40
    whole.write_bytes(data)

    tape = read_tape(whole)

    assert len(tape.damage) == 1
    assert 0 < tape.dropped < 400
    assert len(tape.exchanges) >= 7
    assert tape.ending is not None


def test_flipped_bits_anywhere_never_crash_the_reader(tmp_path: Path) -> None:
    data = written(
        tmp_path / "a.tape", *(exchange(seq, b"y" * 900) for seq in range(8))
    ).read_bytes()
    chance = random.Random(2)
    for _ in range(150):
        mutated = bytearray(data)
        for _ in range(chance.randint(1, 4)):
            mutated[chance.randrange(9, len(mutated))] ^= 1 << chance.randrange(8)
        (tmp_path / "b.tape").write_bytes(mutated)
        try:
            tape = read_tape(tmp_path / "b.tape")
        except ValueError as error:
            assert "first frame" in str(error)  # noqa: PT017
            continue
        assert tape.dropped > 0


@pytest.mark.parametrize("data", [b"", b"PK\x03\x04", b"STUMB", b"\x00" * 50])
def test_what_is_no_tape_is_refused_by_name(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "x.tape").write_bytes(data)
    for read in (read_tape, seal_tape):
        with pytest.raises(ValueError, match=r"x\.tape: not a tape"):
            read(tmp_path / "x.tape")


def test_a_newer_format_is_refused_with_the_next_step(tmp_path: Path) -> None:
    data = bytearray(written(tmp_path / "a.tape").read_bytes())
    data[7] = 99
    (tmp_path / "new.tape").write_bytes(data)
    with pytest.raises(ValueError, match="format 99.*update stumble"):
        read_tape(tmp_path / "new.tape")


def test_a_tape_is_never_written_over(tmp_path: Path) -> None:
    written(tmp_path / "a.tape")
    with pytest.raises(FileExistsError):
        TapeWriter(tmp_path / "a.tape", RUN)


def test_a_tape_is_for_its_owner_only(tmp_path: Path) -> None:
    assert written(tmp_path / "a.tape").stat().st_mode & 0o777 == 0o600


def test_a_tape_appears_with_its_first_frame(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[list[Path]] = []
    write = os.writev

    def watched(file: int, parts: Sequence[Buffer]) -> int:
        seen.append(list(tmp_path.iterdir()))
        return write(file, parts)

    monkeypatch.setattr(os, "writev", watched)
    with TapeWriter(tmp_path / "a.tape", RUN):
        assert read_tape(tmp_path / "a.tape").trajectory.id == RUN.id
    assert seen == [[]]


def refuse(*_: object, **__: object) -> None:
    raise PermissionError(1, "Operation not permitted")


@pytest.mark.parametrize("lacking", ["O_TMPFILE", "link"])
def test_a_tape_needs_no_file_without_a_name(
    lacking: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if lacking == "link":
        monkeypatch.setattr(os, "link", refuse)
    else:
        monkeypatch.delattr(os, lacking)
    path = written(tmp_path / "a.tape", exchange(0))
    assert path.stat().st_mode & 0o777 == 0o600
    with pytest.raises(FileExistsError):
        TapeWriter(path, RUN)
    assert len(read_tape(path).exchanges) == 1


FILL_UP = """
import resource, signal, sys
from pathlib import Path
from traces.model import Exchange, Request, Trajectory
from traces.errors import TapeWriteError
from traces.tape.writer import TapeWriter
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))
tape = TapeWriter(Path(sys.argv[1]), Trajectory(id="r", recorded_at=0.0))
try:
    for seq in range(1_000):
        body = b"%d" % seq * 500
        tape.request(Exchange(seq=seq, request=Request(method="POST", url="u", body=body)))
except TapeWriteError as error:
    print(error)
    tape.close()
"""


def test_a_tape_is_synced_on_a_system_without_fdatasync(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced = list[int]()
    monkeypatch.delattr(os, "fdatasync")
    monkeypatch.setattr(os, "fsync", synced.append)
    path = written(tmp_path / "a.tape", exchange(1))
    assert synced
    assert [each.seq for each in read_tape(path).exchanges] == [1]


def test_a_file_that_takes_no_more_stops_loudly_and_stays_readable(tmp_path: Path) -> None:
    path = tmp_path / "a.tape"
    result = subprocess.run(
        [sys.executable, "-c", FILL_UP, str(path)], capture_output=True, text=True, timeout=30
    )

    assert "File too large" in result.stdout, result.stderr
    assert len(read_tape(path).exchanges) > 20


def test_sixty_turns_of_a_growing_conversation_cost_a_fraction(tmp_path: Path) -> None:
    turns, body = [], b'{"messages":['
    for seq in range(60):
        body += random.Random(seq).randbytes(600).hex().encode()
        turns.append(exchange(seq, body))
    path = written(tmp_path / "a.tape", *turns)

    assert [x.request.body for x in read_tape(path).exchanges] == [x.request.body for x in turns]
    assert path.stat().st_size < sum(len(x.request.body) for x in turns) / 20


def test_a_reminder_at_the_front_does_not_undo_that(tmp_path: Path) -> None:
    turns, body = [], b""
    for seq in range(60):
        body += random.Random(seq).randbytes(600).hex().encode()
        turns.append(exchange(seq, b"reminder %d " % (seq % 7) + body))
    path = written(tmp_path / "a.tape", *turns)

    assert [x.request.body for x in read_tape(path).exchanges] == [x.request.body for x in turns]
    assert path.stat().st_size < sum(len(x.request.body) for x in turns) / 15


WRITE_UNTIL_KILLED = """
import sys
from pathlib import Path
from traces.model import Chunk, Exchange, Request, Response, Trajectory
from traces.tape.writer import TapeWriter
tape = TapeWriter(Path(sys.argv[1]), Trajectory(id="r", recorded_at=0.0))
for seq in range(1_000_000):
    body = b"%d " % seq * 200
    answer = Response(status=200, chunks=(Chunk(at=0.0, data=body),), ended=1.0)
    request = Request(method="POST", url="http://h/", body=body)
    tape.write_exchange(Exchange(seq=seq, request=request, response=answer))
    print(seq, flush=True)
"""


@pytest.mark.gate
@pytest.mark.many
def test_killed_at_any_moment_nothing_acknowledged_is_missing(tmp_path: Path) -> None:
    chance = random.Random(3)
    for round in range(examples(50)):
        path = tmp_path / f"{round}.tape"
        writer = subprocess.Popen(
            [sys.executable, "-c", WRITE_UNTIL_KILLED, str(path)], stdout=subprocess.PIPE
        )
        assert writer.stdout is not None
        first = writer.stdout.readline()
        time.sleep(chance.random() * 0.03)
        writer.send_signal(signal.SIGKILL)
        rest, _ = writer.communicate(timeout=30)
        acknowledged = int((first + rest).split()[-1])

        tape = read_tape(path)

        over = [x.seq for x in tape.exchanges if x.response is not None and x.response.ended]
        assert over[: acknowledged + 1] == list(range(acknowledged + 1))
        assert all(len(x.request.body) == len(b"%d " % x.seq * 200) for x in tape.exchanges)


def test_what_was_under_way_when_it_was_killed_keeps_its_chunks(tmp_path: Path) -> None:
    path = tmp_path / "a.tape"
    tape, under_way = TapeWriter(path, RUN), exchange(0)
    tape.request(under_way)
    tape.head(under_way)
    tape.chunk(under_way, Chunk(at=0.3, data=b"par"))
    tape.chunk(under_way, Chunk(at=0.4, data=b"tial"))
    seen = read_tape(path).exchanges[0]
    tape.close()

    assert seen.response is not None
    assert seen.response.body == b"partial"
    assert [chunk.at for chunk in seen.response.chunks] == [0.3, 0.4]
    assert seen.response.ended is None


def test_edits_are_kept_beside_what_was_asked(tmp_path: Path) -> None:
    asked = replace(
        exchange(0, b'{"content":"1250"}'), edits=(BodyEdit(start=12, stop=16, data=b"1259"),)
    )
    seen = read_tape(written(tmp_path / "a.tape", asked)).exchanges[0]

    assert seen.request.body == b'{"content":"1250"}'
    assert seen.forwarded.body == b'{"content":"1259"}'


def test_an_answer_that_lost_a_frame_is_named_damaged_and_not_taken_for_whole(
    tmp_path: Path,
) -> None:
    whole = written(tmp_path / "a.tape", exchange(0, answer=b"forty-two"), exchange(1))
    data = bytearray(whole.read_bytes())
    data[data.index(b"forty-two")] ^= 1
    whole.write_bytes(data)

    first, second = read_tape(whole).exchanges

    assert first.error == "damaged: 0 of 9 bytes of the answer are on the tape"
    assert second.error is None
