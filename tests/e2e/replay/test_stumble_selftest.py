"""`stumble selftest` is run once; each property is a test, so that a mutant can be held to one."""

import os
import re
import shutil
import signal
import subprocess
import sys
from base64 import b64encode
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote_from_bytes

import pytest

from recorder.agent.isolation import find_missing_capabilities
from scenarios.practice.fixed_pace_server import PAUSE, PIECES
from stumble.selftest.leak_scan import count_secret_copies, read_file_texts
from tests.support.servers.replay_server_thread import eventually
from traces.model import Exchange
from traces.tape.reader import Tape, read_tape

type Said = subprocess.CompletedProcess[str]

FIGURES = {
    "strict replay": r"(\d+) of \1 requests .* tape, 2 over TLS, 0 connections .*, 0 diverged",
    "same bytes": r"(\d+) of \1 answers equal, [\d,]{5,} bytes",
    "same pace": r"4 gaps of 200 ms between chunks, off by [\d.]+ ms at most, .*",
    "no false recovery": r"2 of 2 .* exit 3, 0 reached .*, 0 requests to a live model, 0 verdicts",
    "no guess": r"5 of 5 requests .* refused, 0 guessed",
    "no secret written": r"0 copies in \d{2,} files of 3 secrets that crossed .* \d{2,} times",
    "fault delivered": r"2 of 2 faults fired, (\d{2,}) of \1 later .* byte for byte",
    "sham changes nothing": r"0 of \d{2,} exchanges changed, \d+ of them live model requests",
    "isolation": r"1 request past the proxy, 0 got through, 1 seen",
}
MEASURED = "same pace"
"""Fails on a busy machine too; a test of its own reads the times of the tapes."""
ALONE = find_missing_capabilities().alone is None
if not ALONE:
    FIGURES["isolation"] = r"not isolated: .+"


@pytest.fixture(scope="module")
def said() -> Said:
    command = [sys.executable, "-m", "stumble", "selftest", "--keep"]
    return subprocess.run(command, capture_output=True, text=True, timeout=100, check=False)


@pytest.fixture(scope="module")
def kept(said: Said) -> Iterator[Path]:
    found = re.search(r"^the evidence is kept in (.+)$", said.stderr, re.MULTILINE)
    assert found, said.stderr
    yield Path(found[1])
    shutil.rmtree(found[1])


@pytest.mark.many(1)
@pytest.mark.parametrize("name", FIGURES)
def test_a_property_holds_and_has_its_figure(said: Said, kept: Path, name: str) -> None:
    (line,) = [line for line in said.stdout.splitlines() if name in line] or [said.stderr]
    verdict = "ok " if ALONE or name != "isolation" else "unknown "
    assert line.startswith((verdict, "FAILED ") if name == MEASURED else verdict), line
    assert re.search(FIGURES[name] + "$", line), line


def test_no_chunk_is_played_earlier_than_it_was_recorded(kept: Path) -> None:
    tapes = [read_tape(path) for path in (kept / "store" / "tapes").glob("*.tape")]
    times = {tape.trajectory.source: find_chunk_times(tape) for tape in tapes if paced(tape)}
    recorded, replayed = times["record"], times["replay"]
    assert recorded[-1] >= PAUSE * (len(PIECES) - 1), "the server slept so long before the last"
    for before, after in zip(recorded, replayed, strict=True):
        assert after > before - 0.001


def find_chunk_times(tape: Tape) -> list[float]:
    """Return when each chunk of the paced answer was written, in seconds since its request."""
    asked = paced(tape)
    assert asked is not None
    assert asked.response is not None
    return [chunk.at - asked.started for chunk in asked.response.chunks]


def paced(tape: Tape) -> Exchange | None:
    asked = (each for each in tape.exchanges if each.request.url.endswith("/pieces"))
    return next(asked, None)


def test_it_ends_in_0_if_all_holds_and_says_what_it_does(said: Said, kept: Path) -> None:
    failed = [line for line in said.stdout.splitlines() if line.startswith("FAILED")]
    assert said.returncode == bool(failed), said.stderr
    assert len(said.stdout.splitlines()) == len(FIGURES)
    assert "  recording\n" in said.stderr


def test_the_evidence_is_kept_where_it_says(kept: Path) -> None:
    tapes = list((kept / "store" / "tapes").glob("*.tape"))
    assert len(tapes) == len(list((kept / "agent").iterdir())) == 10 + ALONE
    assert list((kept / "store" / "index").rglob("*.parquet"))


@pytest.mark.parametrize("shift", range(3))
def test_a_secret_is_found_in_any_spelling(shift: int) -> None:
    secret = "a/b+c%d-e_f=g\u00e9h"
    before = b"x" * shift
    for spell in (bytes, b64encode, lambda data: quote_from_bytes(data, safe="").encode()):
        assert count_secret_copies(secret, [spell(before + secret.encode() + b"yy")]) == 1
    assert count_secret_copies(secret, [secret[1:].encode()]) == 0


def test_what_a_tape_says_is_read_though_it_is_packed(kept: Path) -> None:
    words = "the token is "
    tapes = list((kept / "store" / "tapes").glob("*.tape"))
    unpacked = [
        list(read_file_texts(tape))[1:] for tape in tapes
    ]  # the first is the file as it lies there
    assert sum(count_secret_copies(words, said) > 0 for said in unpacked) == 2


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_told_to_end_it_leaves_no_folder(number: signal.Signals, tmp_path: Path) -> None:
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    running = subprocess.Popen(
        [sys.executable, "-m", "stumble", "selftest"],
        env=dict(os.environ) | {"TMPDIR": str(temporary)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    try:
        assert eventually(lambda: list(temporary.iterdir()) or running.poll() is not None, 120)
        running.send_signal(number)
        _, err = running.communicate(timeout=60)
    finally:
        running.kill()
        running.wait()
    assert running.returncode == 128 + number, err.decode()
    assert eventually(lambda: not list(temporary.iterdir()))
