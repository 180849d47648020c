"""The pytest plugin, built and installed as its users do, in a process that has no `stumble`."""

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from tests.e2e.campaigns.test_stumble_gate import here, traces
from tests.support.practice_shop import shop

ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("attach")
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    subprocess.run(build, cwd=ROOT / "attach", check=True, capture_output=True, timeout=60)
    [wheel] = folder.glob("*.whl")
    with zipfile.ZipFile(wheel) as file:
        file.extractall(folder / "site")
    return folder / "site"


def run(installed: Path, folder: Path, test: str, **env: str) -> tuple[int, str]:
    """A user's test, run by pytest in a folder of its own."""
    (folder / "test_it.py").write_text(f"import pytest\n\n{test}")
    (folder / "stumble.sh").write_text(f'#!/bin/sh\nexec {sys.executable} -P -m stumble "$@"\n')
    (folder / "stumble.sh").chmod(0o755)
    ran = subprocess.run(
        [
            sys.executable,
            "-P",
            "-m",
            "pytest",
            "-q",
            "-W",
            "error",
            "--rootdir",
            str(folder),
            "test_it.py",
        ],
        cwd=folder,
        env={
            "PATH": os.environ["PATH"],
            "HOME": str(folder),
            "PYTHONPATH": str(installed),
            "STUMBLE_COMMAND": str(folder / "stumble.sh"),
        }
        | env,
        capture_output=True,
        text=True,
        timeout=90,
    )
    return ran.returncode, ran.stdout + ran.stderr


MARKED = """
@pytest.mark.stumble(store=".stumble", min_recovery=0.9)
def test_it(stumble):
    rows = stumble("sql", "--json", "select count(*) as runs from trajectories").json
    assert rows == [{"runs": RUNS}]
"""


@pytest.mark.thorough
def test_a_limit_that_is_kept_passes(installed: Path, tmp_path: Path) -> None:
    here(tmp_path, traces(30))
    code, said = run(installed, tmp_path, MARKED.replace("RUNS", "30"))
    assert code == 0, said


@pytest.mark.thorough
def test_a_broken_limit_fails_the_test(installed: Path, tmp_path: Path) -> None:
    here(tmp_path, traces(30, **{"class": "silent_wrong"}))
    code, said = run(installed, tmp_path, MARKED.replace("RUNS", "30"))
    assert code == 1
    assert "FAIL" in said
    assert "0.000 [0.000, 0.095]" in said


@pytest.mark.thorough
def test_too_little_evidence_is_no_pass(installed: Path, tmp_path: Path) -> None:
    here(tmp_path, traces(10))
    code, said = run(installed, tmp_path, MARKED.replace("RUNS", "10"))
    assert code == 1
    assert "about 19 more recordings would decide" in said


def test_a_test_that_fails_by_itself_is_not_judged(installed: Path, tmp_path: Path) -> None:
    here(tmp_path, traces(30))
    code, said = run(installed, tmp_path, MARKED.replace("RUNS", "31"))
    assert code == 1
    assert "stumble gate" not in said


@pytest.mark.thorough
def test_without_a_marker_a_test_has_an_empty_store_of_its_own(
    installed: Path, tmp_path: Path
) -> None:
    test = """
def test_it(stumble):
    assert stumble.gate(min_recovery=0.9).code == 5
    with pytest.raises(AssertionError, match="exit 2"):
        stumble("gate")
"""
    code, said = run(installed, tmp_path, test)
    assert code == 0, said
    assert not (tmp_path / ".stumble").exists()


@pytest.mark.parametrize("marker", ["()", "(store='x')", "(0.9)"])
def test_a_marker_that_judges_nothing_is_an_error(
    installed: Path, tmp_path: Path, marker: str
) -> None:
    test = f"@pytest.mark.stumble{marker}\ndef test_it(stumble): pass\n"
    code, said = run(installed, tmp_path, test)
    assert code == 1
    assert "judges nothing" in said


def test_a_missing_command_says_how_to_install_it(installed: Path, tmp_path: Path) -> None:
    test = "def test_it(stumble): stumble('sql')\n"
    code, said = run(installed, tmp_path, test, STUMBLE_COMMAND="", PATH="/nowhere")
    assert code == 1
    assert "uv tool install stumble" in said


FORKING = """
def test_it(stumble):
    stumble.replay(TAPE)
    forked = stumble.fork(
        TAPE, fault="http_status:code=503", where={"tool": "get_order"},
        reset=RESET, verify=VERIFY, host=HOSTS,
    )
    assert forked.json["outcome"] in ("recovered", "masked"), forked.out
    with pytest.raises(AssertionError, match="exit 3"):
        stumble.replay(TAPE, *OTHER)
"""


def test_a_recording_is_replayed_and_forked(installed: Path, tmp_path: Path) -> None:
    (tmp_path / "shop").mkdir()
    with shop(tmp_path / "shop") as world:
        assert world.record().code == 0
        _, reset, _, verify = world.world()
        test = (
            FORKING.replace("TAPE", repr(str(world.folder / "a.tape")))
            .replace("RESET", repr(reset))
            .replace("VERIFY", repr(verify))
            .replace("HOSTS", repr(list(world.hosts)))
            .replace("OTHER", repr(world.agent("practice/naive")))
        )
        store = world.folder / ".stumble"
        home = str(world.folder / "home")  # of the user who recorded
        addopts = f"--stumble {store}"
        code, said = run(installed, tmp_path, test, PYTEST_ADDOPTS=addopts, HOME=home)
    assert code == 0, said
