"""Commands that only read, in a folder without a store."""

from pathlib import Path

import pytest
from click.testing import CliRunner

from stumble.cli.app import cli

READING = (
    ("sql", "select 1"),
    ("sql", "--rebuild"),
    ("report",),
    ("report", "--json"),
    ("compare", "before", "after"),
    ("gate", "--max-silent", "0.1"),
    ("leaderboard",),
    ("drift",),
    ("export", "--to", "parquet", "-o", "warehouse"),
    ("export", "20261121T101500-3f2a", "--to", "har", "-o", "run.har"),
    ("why", "20261121T101500-3f2a"),
    ("judge", "--llm", "openai/gpt-5"),
)


@pytest.mark.parametrize("arguments", READING, ids=" ".join)
def test_a_command_that_reads_creates_no_store(
    arguments: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("STUMBLE_STORE", raising=False)
    answer = CliRunner().invoke(cli, arguments)
    assert (answer.exit_code, answer.stdout) == (2, "")
    assert f"no store at {tmp_path / '.stumble'}" in answer.stderr
    assert "stumble record -- COMMAND" in answer.stderr
    assert list(tmp_path.iterdir()) == []


def test_a_store_that_is_named_and_missing_is_not_created(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("STUMBLE_STORE", str(tmp_path / "gone"))
    answer = CliRunner().invoke(cli, ("sql", "select 1"))
    assert answer.exit_code == 2
    assert f"no store at {tmp_path / 'gone'}" in answer.stderr
    assert not (tmp_path / "gone").exists()


def test_the_names_of_questions_need_no_store(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    answer = CliRunner().invoke(cli, ("sql", "--list"))
    assert answer.exit_code == 0
    assert "recovery" in answer.stdout
    assert list(tmp_path.iterdir()) == []
