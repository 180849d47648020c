"""Macros and views come from a cached file, and are the same without one."""

from pathlib import Path

import duckdb
import pytest

from traces.store.definitions_file import load_definitions

DEFINED = """
SELECT view_name AS name, list_sort(regexp_extract_all(sql, '\\w+')) FROM duckdb_views()
WHERE NOT internal
UNION ALL
SELECT function_name, [macro_definition] FROM duckdb_functions() WHERE NOT internal
ORDER BY ALL
"""


def load(home: Path, monkeypatch: pytest.MonkeyPatch) -> list[tuple[object, ...]]:
    monkeypatch.setenv("XDG_CACHE_HOME", str(home))
    with duckdb.connect() as connection:
        load_definitions(connection)
        connection.execute("FROM leaderboard")
        return connection.execute(DEFINED).fetchall()


def test_the_first_load_makes_the_file_and_the_next_ones_copy_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = load(tmp_path, monkeypatch)
    (file,) = (tmp_path / "stumble").iterdir()
    made = file.stat()
    assert load(tmp_path, monkeypatch) == first
    assert file.stat().st_mtime_ns == made.st_mtime_ns


def test_without_a_cache_or_with_a_damaged_one_they_are_created(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = load(tmp_path, monkeypatch)
    (file,) = (tmp_path / "stumble").iterdir()
    file.write_bytes(file.read_bytes()[:5000])
    assert load(tmp_path, monkeypatch) == whole

    (tmp_path / "a-file").touch()
    assert load(tmp_path / "a-file", monkeypatch) == whole
