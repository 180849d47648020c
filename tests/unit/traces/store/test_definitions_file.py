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

type Definitions = list[tuple[object, ...]]


def load(home: Path, asked: str = "cohorts") -> Definitions:
    """What a load defines, of which one view is asked."""
    with pytest.MonkeyPatch.context() as patch, duckdb.connect() as connection:
        patch.setenv("XDG_CACHE_HOME", str(home))
        load_definitions(connection)
        connection.execute(f"FROM {asked}")
        return connection.execute(DEFINED).fetchall()


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Definitions]:
    """The file that the first load makes, and what that load defined."""
    home = tmp_path_factory.mktemp("cache")
    first = load(home)
    (file,) = (home / "stumble").iterdir()
    return file, first


@pytest.mark.gate
def test_the_next_loads_copy_the_file_that_the_first_one_made(
    made: tuple[Path, Definitions],
) -> None:
    file, first = made
    before = file.stat()
    assert load(file.parents[1], "leaderboard") == first
    assert file.stat().st_mtime_ns == before.st_mtime_ns


@pytest.mark.gate
def test_with_a_damaged_one_they_are_created(
    made: tuple[Path, Definitions], tmp_path: Path
) -> None:
    file, whole = made
    damaged = tmp_path / "stumble" / file.name
    damaged.parent.mkdir()
    damaged.write_bytes(file.read_bytes()[:5000])
    assert load(tmp_path) == whole


@pytest.mark.gate
def test_without_a_folder_for_the_cache_they_are_created(
    made: tuple[Path, Definitions], tmp_path: Path
) -> None:
    (tmp_path / "a-file").touch()
    assert load(tmp_path / "a-file") == made[1]
