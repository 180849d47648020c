"""A third party's package brings operators of its own, and is installed like any other."""

import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

PROJECT = """
[project]
name = "acme-faults"
version = "1.0"
[project.entry-points."stumble.faults"]
acme = "acme_faults"
[build-system]
requires = ["hatchling"]
build-backend = "hatchling.build"
[tool.hatch.build.targets.wheel]
include = ["acme_faults.py"]
"""
MODULE = '''
from random import Random
from typing import Annotated

from faults.response_body import decode_response_text, replace_response_text
from faults.operator import NumberRange, operator
from traces.model import Exchange


@operator("{code}")
def shout(
    exchange: Exchange, rng: Random, *, times: Annotated[int, NumberRange(1, 3)] = 1
) -> Exchange:
    """Say it louder.

    Incident: a colleague.
    """
    return replace_response_text(exchange, decode_response_text(exchange).upper() + "!" * times)
'''


def installed(folder: Path, code: str) -> Path:
    """A folder for PYTHONPATH in which the package is installed."""
    project, place = folder / "acme", folder / "site"
    project.mkdir()
    (project / "pyproject.toml").write_text(PROJECT)
    (project / "acme_faults.py").write_text(MODULE.replace("{code}", code))
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    subprocess.run(build, cwd=project, check=True, capture_output=True, timeout=60)
    (wheel,) = folder.glob("*.whl")
    # A wheel of Python alone is installed by unpacking it (PEP 427).
    zipfile.ZipFile(wheel).extractall(place)
    return place


def stumble(site: Path | None, *words: str) -> subprocess.CompletedProcess[str]:
    path = os.pathsep.join(filter(None, [str(site or ""), os.environ.get("PYTHONPATH", "")]))
    return subprocess.run(
        [sys.executable, "-m", "stumble", *words],
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        timeout=60,
    )


@pytest.mark.gate
def test_an_operator_of_another_package_is_listed_explained_and_bound(tmp_path: Path) -> None:
    site = installed(tmp_path, "V90")
    listed = stumble(site, "faults").stdout
    assert listed.index("V10  enum_swap") < listed.index("V90  shout") < listed.index("X1")

    document = json.loads(stumble(site, "faults", "v90", "--json").stdout)
    assert (document["name"], document["params"]) == ("shout", {"times": 1, "copy": "both"})
    assert document["allowed"] == {"times": "1 to 3", "copy": "both, content, structuredContent"}
    assert document["example"]["after"].endswith("!")

    tape = tmp_path / "none.tape"
    tape.touch()
    wrong = stumble(site, "fork", str(tape), "--fault", "shout:times=9", "--", "true")
    assert "shout: times is 9, not within 1 to 3" in wrong.stderr
    assert stumble(None, "faults", "shout").returncode == 2


def test_an_operator_that_takes_a_name_or_code_of_another_is_refused(tmp_path: Path) -> None:
    result = stumble(installed(tmp_path, "V4"), "faults")
    assert result.returncode == 2
    assert result.stderr == (
        "stumble: the faults of acme-faults (acme_faults): "
        "there is a fault called shout or V4 already\n"
    )


def test_all_families_are_listed_and_a_code_explains_one_with_its_example() -> None:
    listed = stumble(None, "faults").stdout
    codes = [line.split()[0] for line in listed.splitlines() if line.startswith("  ")
             and line[2] != " "]  # fmt: skip
    assert codes == ["T1", "T2", "T3", "E1", "E2", "E3", "E4", "E5", "E6", "S1", "S2", "S3", "S4",
                     "S5", "S6", *(f"V{n}" for n in range(1, 12)), "X1", "X2", "sham"]  # fmt: skip
    result = stumble(None, "faults", "V4").stdout
    assert result.startswith("V4 stale\n")
    for part in ("Incident: a cache", "stamp=old  old, fresh", "  mcp: another text", "before\n"):
        assert part in result
    assert '"status": "open"' in result.partition("after\n")[2]


@pytest.mark.gate
@pytest.mark.parametrize(("name", "says"), [("truncate", True), ("digit", True), ("E1", False)])
def test_it_is_said_how_a_part_is_bent(name: str, says: bool) -> None:
    assert ("path=none  a JSONPath" in stumble(None, "faults", name).stdout) is says


@pytest.mark.parametrize("name", ["v41", "stail"])
def test_a_name_that_is_none_is_refused_with_the_nearest(name: str) -> None:
    result = stumble(None, "faults", name)
    assert result.returncode == 2
    assert f"no fault is called {name!r}" in result.stderr
