"""Promises of docs/limits.md hold for a user without privileges: their tests, run as nobody.

Points whose tests start an agent in namespaces have tests of their own as nobody.
"""

import os
import re
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from tests.hostile.test_isolation import AS_ROOT, NOBODY

ROOT = Path(__file__).parents[2]
ROW = re.compile(r"^\| (\d+)\. [^|]+ \| ([^|]+) \| ([^|]+) \|$", re.MULTILINE)
SAME = "the same"


def read_points() -> dict[int, tuple[list[str], str]]:
    """Return for each point its tests, and the cell that says how it holds for nobody."""
    rows = ROW.findall((ROOT / "docs" / "limits.md").read_text(encoding="utf-8"))
    return {int(point): (re.findall(r"`(\w+)`", tests), nobody) for point, tests, nobody in rows}


def find_tests(names: list[str]) -> list[str]:
    """Return the ids of tests by their names; raises AssertionError for one without a test."""
    found = {
        name: f"{path.relative_to(ROOT)}::{name}"
        for path in (ROOT / "tests").rglob("test_*.py")
        for name in re.findall(r"^def (test_\w+)", path.read_text(encoding="utf-8"), re.MULTILINE)
    }
    assert set(names) <= set(found)
    return [found[name] for name in names]


def test_each_point_has_tests_as_root_and_as_nobody() -> None:
    points = read_points()
    assert list(points) == list(range(1, 11))
    for tests, nobody in points.values():
        assert find_tests(tests)
        assert SAME in nobody or find_tests(re.findall(r"`(\w+)`", nobody))


@pytest.mark.skipif(not AS_ROOT, reason="only root may become somebody else")
def test_the_same_tests_pass_as_nobody() -> None:
    named = [tests[0] for tests, nobody in read_points().values() if SAME in nobody]
    with TemporaryDirectory(prefix="s-") as folder:
        os.chown(folder, 65534, 65534)
        kept = {k: v for k, v in os.environ.items() if not k.startswith(("PYTEST", "XDG"))}
        quiet = ("-q", "-n0", "-p", "no:cacheprovider")
        done = subprocess.run(
            [*NOBODY, sys.executable, "-m", "pytest", *quiet, *find_tests(named)],
            cwd=ROOT,
            env=kept | {"HOME": folder, "TMPDIR": folder, "PYTHONDONTWRITEBYTECODE": "1"},
            capture_output=True,
            text=True,
            timeout=300,
        )
    assert done.returncode == 0, done.stdout[-4000:]
    assert " passed" in done.stdout
