"""Recording and asking in folders with unusual names: each works, or is refused in one line."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from stumble.cli.app import cli

NOT_UTF8 = os.fsdecode(b"\xff\xfe")


def run_stumble(folder: Path, *arguments: str, **env: str) -> str:
    command = (sys.executable, "-m", "stumble", *arguments)
    done = subprocess.run(
        command, cwd=folder, env=os.environ | env, capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.gate
def test_a_run_in_a_folder_of_any_name_is_recorded_and_asked_for(tmp_path: Path) -> None:
    folder = tmp_path / "a*[b]" / "[slug]" / 'it\'s "q"' / "two\nlines" / "große 单"
    folder.mkdir(parents=True)
    run_stumble(folder, "record", "--", "true")
    counted = run_stumble(
        folder, "sql", "--format", "csv", "select count(*) as n from trajectories"
    )
    assert counted.split() == ["n", "1"]


@pytest.mark.parametrize("command", [("record", "--", "true"), ("sql", "select 1"), ("report",)])
@pytest.mark.parametrize("name", ["which?", NOT_UTF8])
def test_a_store_that_could_not_be_asked_is_not_begun(
    name: str, command: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / name
    folder.mkdir()
    monkeypatch.chdir(folder)
    monkeypatch.delenv("STUMBLE_STORE", raising=False)
    done = CliRunner().invoke(cli, command)
    assert done.exit_code == 2
    assert "UTF-8" in done.stderr
    assert list(folder.iterdir()) == []


def test_with_a_store_elsewhere_a_question_mark_is_no_trouble(tmp_path: Path) -> None:
    folder = tmp_path / "which?"
    folder.mkdir()
    run_stumble(folder, "record", "--", "true", STUMBLE_STORE=str(tmp_path / "store"))
    assert len(list((tmp_path / "store" / "tapes").iterdir())) == 1


def test_an_argument_that_no_tape_can_hold_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    done = CliRunner().invoke(cli, ("record", "--", "true", NOT_UTF8))
    assert done.exit_code == 2
    assert r"\udcff\udcfe is not UTF-8" in done.stderr
    assert list(tmp_path.iterdir()) == []
