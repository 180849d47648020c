"""Copies of files without secrets, packed ones too."""

import gzip
import json
import zipfile
from pathlib import Path

import pytest

from traces.importers import read_run_tables
from traces.redaction.redacted_copy import write_redacted_copy
from traces.redaction.redacted_log import redact_file_end

SECRET = "sk-ant-" + "api03-" + "Zq7" * 20
SAMPLE = {"id": 1, "epoch": 1, "messages": [{"role": "user", "content": f"my key is {SECRET}"}]}
START = {"version": 2, "eval": {"task": "t", "model": "m"}}


def write_log(path: Path, *samples: object, method: int = zipfile.ZIP_DEFLATED) -> Path:
    with zipfile.ZipFile(path, "w", method) as packed:
        packed.writestr("_journal/start.json", json.dumps(START))
        for n, sample in enumerate(samples):
            packed.writestr(f"samples/{n}_epoch_1.json", json.dumps(sample))
    return path


@pytest.mark.parametrize("method", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])
def test_no_secret_is_in_the_members_of_a_packed_log(method: int, tmp_path: Path) -> None:
    log = write_log(tmp_path / "a.eval", SAMPLE, method=method)
    copy = tmp_path / "copy.eval"
    assert write_redacted_copy(log, copy)
    with zipfile.ZipFile(copy) as packed, zipfile.ZipFile(log) as before:
        assert packed.namelist() == before.namelist()
        for name in packed.namelist():
            assert SECRET.encode() not in packed.read(name)
            assert len(packed.read(name)) == len(before.read(name))
    [step] = read_run_tables(copy)["steps"].to_pylist()
    assert step["message"].startswith("my key is ")
    assert SECRET not in step["message"]


def test_known_secrets_of_the_user_are_found_in_members(tmp_path: Path) -> None:
    log = write_log(tmp_path / "a.eval", {"id": 1, "note": "hunter2-of-mine"})
    assert not write_redacted_copy(log, tmp_path / "b.eval")
    assert write_redacted_copy(log, tmp_path / "c.eval", secrets=["hunter2-of-mine"])
    with zipfile.ZipFile(tmp_path / "c.eval") as packed:
        assert b"hunter2" not in packed.read("samples/0_epoch_1.json")


def test_the_copy_of_the_same_log_is_the_same(tmp_path: Path) -> None:
    log = write_log(tmp_path / "a.eval", SAMPLE)
    for name in ("b", "c"):
        write_redacted_copy(log, tmp_path / name)
    assert (tmp_path / "b").read_bytes() == (tmp_path / "c").read_bytes()


def test_a_packed_log_that_was_cut_is_refused(tmp_path: Path) -> None:
    log = write_log(tmp_path / "a.eval", SAMPLE)
    log.write_bytes(log.read_bytes()[:-30])
    with pytest.raises(ValueError, match="its zip cannot be read"):
        write_redacted_copy(log, tmp_path / "b.eval")


def test_text_and_gzip_are_redacted_as_before(tmp_path: Path) -> None:
    text = json.dumps(SAMPLE).encode()
    for name, data in (("a.json", text), ("a.json.gz", gzip.compress(text))):
        (tmp_path / name).write_bytes(data)
        assert write_redacted_copy(tmp_path / name, tmp_path / "copy")
        assert SECRET.encode() not in (tmp_path / "copy").read_bytes()


def test_the_end_of_a_log_loses_its_secrets_in_place(tmp_path: Path) -> None:
    log, key = tmp_path / "agent.log", "sk-proj-" + "q7Rt5zX9wB3mK1v" * 3
    log.write_text("before\n")
    start = log.stat().st_size
    with log.open("a") as file:
        file.write(f"DB_PASSWORD=q7Rt5zX9wB3mK1v\nkey {key}\n{'x' * 600_000}\n{key} end\n")
    size = log.stat().st_size
    redact_file_end(log, start)
    assert log.stat().st_size == size
    assert log.read_text().startswith("before\nDB_PASSWORD=REDACTED")
    assert "q7Rt5z" not in log.read_text()
    assert log.read_text().endswith(" end\n")
