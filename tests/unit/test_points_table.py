"""The points of docs/judging.md: each names tests that exist, and mutants that these kill."""

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[2]
ROW = re.compile(r"^\| (\d+) \| [^|]+ \| ([^|]+) \| ([^|]+) \|$", re.MULTILINE)


def read_rows() -> dict[int, tuple[list[str], list[str]]]:
    """Return the tests and the mutants of each point."""
    rows = ROW.findall((ROOT / "docs" / "judging.md").read_text(encoding="utf-8"))
    return {
        int(point): (re.findall(r"`(\w+)`", tests), re.findall(r"`(\w+)`", mutants))
        for point, tests, mutants in rows
    }


def test_each_of_twelve_points_has_a_test_that_a_mutant_fails() -> None:
    rows = read_rows()
    assert list(rows) == list(range(1, 13))
    for point, (tests, mutants) in rows.items():
        assert mutants, point
        for name in mutants:
            path = ROOT / "tests" / "mutation" / "mutants" / f"{name}.toml"
            killers = {
                each.rpartition("::")[2] for each in tomllib.loads(path.read_text())["tests"]
            }
            assert killers & set(tests), (point, name)


def test_each_named_test_exists() -> None:
    code = "\n".join(path.read_text() for path in (ROOT / "tests").rglob("test_*.py"))
    defined = set(re.findall(r"^\s*def (test_\w+)", code, re.MULTILINE))
    named = {name for tests, _ in read_rows().values() for name in tests}
    assert named - defined == set()
