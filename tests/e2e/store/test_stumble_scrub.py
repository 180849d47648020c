"""A tape with secrets in it becomes one without, whole or not at all."""

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from stumble.store import index
from stumble.store.tape_files import keep_tape
from tests.support.leak_search import (
    copies,
    leaks,
)
from tests.support.practice_shop import shop
from traces.model import Chunk, Exchange, Request, Response, RunEnding, Trajectory
from traces.redaction.redactor import Redactor
from traces.store.trace_store import TraceStore
from traces.tape.reader import read_tape
from traces.tape.writer import TapeWriter

KEY, PIN = "ghp_" + "aB3d" * 9, "h4x0r/77-pin"


def stumble(folder: Path, *words: str, **variables: str) -> subprocess.CompletedProcess[str]:
    env = {"PATH": os.environ["PATH"], "HOME": str(folder)} | variables
    command = [sys.executable, "-m", "stumble", *words]
    env["PYTHONPATH"] = str(Path(__file__).parents[3])
    return subprocess.run(
        command, cwd=folder, env=env, capture_output=True, text=True, timeout=60, check=False
    )


@pytest.fixture
def tape(tmp_path: Path) -> Path:
    path = tmp_path / "a.tape"
    bodies = [b"nothing", f'{{"key": "{KEY}"}}'.encode(), f"pin={PIN}".encode()]
    with TapeWriter(path, Trajectory(id="r", recorded_at=0.0), redact=False) as writer:
        for seq, body in enumerate(bodies):
            answer = Response(
                status=200, chunks=(Chunk(at=seq + 0.5, data=b"ok"),), ended=seq + 0.6
            )
            request = Request(method="POST", url="http://h/", body=body)
            writer.write_exchange(Exchange(seq=seq, request=request, response=answer))
        under_way = Exchange(
            seq=3, request=Request(method="GET", url="http://h/"), response=Response(status=200)
        )
        writer.request(under_way)
        writer.head(under_way)
        writer.chunk(under_way, Chunk(at=9.0, data=b"my key: " + KEY.encode()[:30]))
        writer.write_ending(RunEnding(ended="final", exit_code=0))
    assert leaks(KEY, path)
    assert read_tape(path).verbatim
    return path


def test_scrubbing_writes_a_new_tape_and_says_how_much_changed(tape: Path) -> None:
    result = stumble(tape.parent, "scrub", "a.tape", "-o", "b.tape", "--secret-env", "PIN", PIN=PIN)

    assert result.returncode == 0, result.stderr
    assert "3 of 4 exchanges changed" in result.stderr
    new, old = read_tape(tape.parent / "b.tape"), read_tape(tape)
    assert leaks(KEY, new.path) == leaks(PIN, new.path) == leaks(KEY[:30], new.path) == 0
    assert leaks(KEY, tape) > 0
    assert (new.trajectory, new.ending) == (old.trajectory, old.ending)
    assert not new.verbatim
    for a, b in zip(new.exchanges, old.exchanges, strict=True):
        assert len(a.request.body) == len(b.request.body)
        assert a.response is not None
        assert b.response is not None
        assert a.response.ended == b.response.ended
        assert [(c.at, len(c.data)) for c in a.response.chunks] == [
            (c.at, len(c.data)) for c in b.response.chunks
        ]
    assert sorted(path.name for path in tape.parent.glob("*tape*")) == ["a.tape", "b.tape"]


def test_in_place_is_asked_for_and_leaves_nothing_of_the_old_one(tape: Path) -> None:
    assert stumble(tape.parent, "scrub", "a.tape", "--in-place").returncode == 0
    assert leaks(KEY, tape) == 0
    assert [path.name for path in tape.parent.iterdir() if path.name != ".local"] == ["a.tape"]
    again = stumble(tape.parent, "scrub", "a.tape", "--in-place")
    assert "0 of 4 exchanges changed" in again.stderr


def test_in_place_the_rows_of_the_store_are_made_again_too(tape: Path) -> None:
    store = TraceStore(tape.parent / ".stumble")
    url = f"http://h/?q={KEY}"
    with TapeWriter(
        tape.parent / "b.tape", Trajectory(id="s", recorded_at=0.0), redact=False
    ) as new:
        new.write_exchange(Exchange(seq=0, request=Request(method="GET", url=url), error="reset"))
        new.write_ending(RunEnding(ended="final", exit_code=0))
    keep_tape(store, tape.parent / "b.tape", "s")
    assert index.refresh_index(store) == []
    asked = "select url from exchanges where trajectory_id = 's'"
    with store.connect() as connection:
        assert connection.execute(asked).fetchall() == [(url,)]

    result = stumble(tape.parent, "scrub", "b.tape", "--in-place")

    assert result.returncode == 0, result.stderr
    assert "warning" not in result.stderr
    with store.connect() as connection:
        ((now,),) = connection.execute(asked).fetchall()
    assert now.startswith("http://h/?q=REDACTEDg1")
    assert not any(copies(KEY.encode(), file.read_bytes())
                   for file in store.root.rglob("*") if file.is_file())  # fmt: skip


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (("-o", "a.tape"), "exists already"),
        (("-o", "b.tape", "--in-place"), "exclude each other"),
        (("--secret-env", "NONE"), "unset"),
    ],
)
def test_what_makes_no_sense_is_said_and_changes_nothing(
    tape: Path, words: tuple[str, ...], why: str
) -> None:
    before = tape.read_bytes()
    result = stumble(tape.parent, "scrub", "a.tape", *words)
    assert result.returncode == 2
    assert why in result.stderr
    assert tape.read_bytes() == before


def test_a_file_that_is_no_tape_is_refused(tmp_path: Path) -> None:
    (tmp_path / "x.tape").write_bytes(b"no tape")
    result = stumble(tmp_path, "scrub", "x.tape")
    assert result.returncode == 2
    assert "not a tape" in result.stderr
    assert [path.name for path in tmp_path.glob("*tape*")] == ["x.tape"]


def test_a_tape_that_holds_no_secret_says_the_same_as_before(tmp_path: Path) -> None:
    path = tmp_path / "a.tape"
    request = Request(method="POST", url="http://h/", body=b"x" * 5000)
    with TapeWriter(path, Trajectory(id="r", recorded_at=0.0)) as writer:
        writer.write_exchange(
            Exchange(seq=0, request=Redactor().redact_request(request), error="reset")
        )
    assert stumble(tmp_path, "scrub", "a.tape").returncode == 0
    assert read_tape(tmp_path / "a.scrubbed.tape").exchanges == read_tape(path).exchanges


@pytest.mark.keeps_secrets
def test_what_was_recorded_as_it_came_replays_and_so_does_what_was_scrubbed(
    tmp_path: Path,
) -> None:
    with shop(tmp_path) as world:
        world.reset()
        key = world.environment()["OPENAI_API_KEY"]
        agent = world.agent("practice/retries")
        result = world.stumble(
            "record", "--no-redact", "-o", "a.tape", *world.host_options(), "--", *agent
        )
    assert result.code == 0, result.err
    assert "stumble scrub a.tape" in result.err
    assert leaks(key, tmp_path / "a.tape")

    assert world.stumble("replay", "a.tape", "--", *agent).code == 0
    assert world.stumble("scrub", "a.tape", "-o", "b.tape").code == 0
    again = world.stumble("replay", "b.tape", "--", *agent)

    assert again.code == 0, again.err
    assert leaks(key, tmp_path / "b.tape") == 0


@pytest.mark.gate
@pytest.mark.parametrize("options", [("--in-place",), ("-o", "b.tape")])
def test_a_killed_scrub_leaves_no_part(tmp_path: Path, options: tuple[str, ...]) -> None:
    body = f'{{"key": "{KEY}"}}'.encode()
    with TapeWriter(tmp_path / "a.tape", Trajectory(id="r", recorded_at=0.0), redact=False) as tape:
        for seq in range(3000):
            request = Request(method="POST", url=f"http://h/{seq}", body=body * 9 + b"%d" % seq)
            tape.write_exchange(Exchange(seq=seq, request=request, response=Response(status=200)))
    before = (tmp_path / "a.tape").read_bytes()
    command = (sys.executable, "-m", "stumble", "scrub", "a.tape", *options)
    with subprocess.Popen(command, cwd=tmp_path, env={**os.environ, "HOME": str(tmp_path)}) as run:
        deadline = time.monotonic() + 60
        while not list(tmp_path.glob(".scrub-*/*.tape")) and time.monotonic() < deadline:
            time.sleep(0.001)
        run.kill()
    while list(tmp_path.glob(".scrub-*")) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert run.returncode == -9
    assert sorted(tmp_path.glob(".scrub-*")) == []
    assert (tmp_path / "a.tape").read_bytes() == before
    assert not (tmp_path / "b.tape").exists()
