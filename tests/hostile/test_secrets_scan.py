"""`stumble scan` finds what lies in files already, ends in 1 and never prints a value."""

import gzip
import json
from pathlib import Path
from random import Random

import pytest
import zstandard
from click.testing import CliRunner, Result

from stumble.cli.app import cli
from tests.support.secret_shapes import TOKENS, key, password
from traces.model import Chunk, Exchange, Request, Response, Trajectory
from traces.tape.writer import TapeWriter

CHANCE = Random(4)
TOKEN, PASSWORD, KEY = TOKENS["npm"](CHANCE), password(CHANCE), key(CHANCE)


def scanned(folder: Path, *words: str, **env: str) -> Result:
    env = {"STUMBLE_STORE": str(folder / "store"), "HOME": str(folder), **env}
    return CliRunner().invoke(cli, ["scan", *words], env=env)


def record(path: Path, *, redact: bool) -> None:
    request = Request(
        method="POST",
        url=f"http://h/?api_key={KEY}",
        headers=(("Authorization", f"Bearer {KEY}"),),
        body=json.dumps({"password": PASSWORD}).encode(),
    )
    packed = gzip.compress(TOKEN.encode())
    answer = Response(
        status=200,
        headers=(("content-encoding", "gzip"),),
        chunks=(Chunk(at=0.0, data=packed),),
        ended=0.1,
    )
    run = Trajectory(id="r", recorded_at=0.0, command=("agent", "--token", KEY))
    with TapeWriter(path, run, redact=redact) as tape:
        tape.write_exchange(Exchange(seq=0, request=request, response=answer))


def test_a_recording_without_redaction_is_told_place_by_place(tmp_path: Path) -> None:
    path = tmp_path / "a.tape"
    record(path, redact=False)
    done = scanned(tmp_path, str(path), "--json")
    assert done.exit_code == 1
    places = " ".join(each["where"] for each in json.loads(done.stdout)[0]["secrets"])
    for where in ("command", "address", "header Authorization", "request body", "answer body"):
        assert where in places
    assert not [each for each in (TOKEN, PASSWORD, KEY) if each in done.output]


def test_a_packed_recording_is_told_as_the_file_it_was(tmp_path: Path) -> None:
    path, packed = tmp_path / "a.tape", tmp_path / "blob"
    record(path, redact=False)
    packed.write_bytes(zstandard.compress(path.read_bytes()))
    plain, done = (
        json.loads(scanned(tmp_path, str(each), "--json").stdout)[0]["secrets"]
        for each in (path, packed)
    )
    assert done == plain


def test_a_redacted_recording_is_clean(tmp_path: Path) -> None:
    path = tmp_path / "a.tape"
    record(path, redact=True)
    done = scanned(tmp_path, str(path))
    assert (done.exit_code, done.stdout) == (0, "")
    assert "0 secrets in 0 of 1 files" in done.stderr


@pytest.mark.parametrize("packed", [False, True])
def test_files_of_a_folder_are_told_without_their_values(packed: bool, tmp_path: Path) -> None:
    folder = tmp_path / "work"
    folder.mkdir()
    said = f"first line\nnpm = {TOKEN}\nit is {KEY}\n".encode()
    (folder / "notes.txt").write_bytes(gzip.compress(said) if packed else said)
    (folder / "clean.txt").write_text("nothing")
    done = scanned(tmp_path, str(folder), SHOP_KEY=KEY)
    assert done.exit_code == 1
    assert "notes.txt: 1 known secret or password, 1 token of a service" in done.stdout or (
        "notes.txt: 1 token of a service, 1 known secret or password" in done.stdout
    )
    assert "2 secrets in 1 of 2 files" in done.stderr
    assert TOKEN not in done.output
    assert KEY not in done.output


def test_a_damaged_recording_is_told_and_the_others_are_scanned(tmp_path: Path) -> None:
    folder = tmp_path / "work"
    folder.mkdir()
    record(folder / "a.tape", redact=False)
    (folder / "b.parquet").write_bytes(b"PAR1 no table")
    done = scanned(tmp_path, str(folder))
    assert done.exit_code == 1
    assert "not read" in done.stderr
    assert "a.tape" in done.stdout


def test_a_file_that_cannot_be_read_is_no_clean_one(tmp_path: Path) -> None:
    (tmp_path / "broken.parquet").write_bytes(b"PAR1 and nothing else")
    done = scanned(tmp_path, str(tmp_path), "--json")
    assert done.exit_code == 6
    assert "not read: " in done.stderr
    assert [each["unread"] is not None for each in json.loads(done.stdout)] == [True]
