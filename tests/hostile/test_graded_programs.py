"""Programs that look for the answers while they are graded, in the store and on the machine."""

import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from sandbox.limited_process import WALLS
from scenarios.pipeline.compiler import golden
from scenarios.pipeline.compiler.grading import grade_stage
from tests.support.compiler_workspaces import answers, given, script

CASE = golden.list_graded_cases()[:1]
RIGHT = golden.load_golden_slot("T2").artifacts[CASE[0].name]
VISIBLE = Path("/opt")
"""A folder of the system, which `build` sees."""


@pytest.fixture(params=["anywhere", "in a visible folder"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Path]:
    """A store with two pipeline runs, of which `other` has the answers of T2."""
    place = tmp_path if request.param == "anywhere" else VISIBLE
    if not os.access(place, os.W_OK):  # only root can put a store there
        place = tmp_path
    folder = Path(tempfile.mkdtemp(prefix="store-", dir=place))
    try:
        for name in ("tapes", "graded", "pipelines/mine/slots", "pipelines/other/slots"):
            (folder / name).mkdir(parents=True)
            (folder / name / "right").write_bytes(RIGHT)
        answers(folder / "pipelines" / "other" / "workspace", "T2")
        (folder / "pipelines" / "other" / "workspace" / "right").write_bytes(RIGHT)
        (folder / "pipelines" / "mine" / "workspace" / "t2").mkdir(parents=True)
        yield folder
    finally:
        shutil.rmtree(folder)


def grade_looking_at(store: Path, path: str) -> tuple[float | None, str]:
    """Score and reason of a program that copies a file to OUTPUT, in mine/workspace."""
    workspace = store / "pipelines" / "mine" / "workspace"
    script(workspace, "T2", f'#!/bin/sh\ncp "{path}" "$2"\n')
    done = grade_stage("T2", workspace, given("T2"), jobs=1, cases=CASE)
    assert done.walls == WALLS
    return done.cases[0].score, done.cases[0].why


def test_what_it_brings_itself_is_right(store: Path) -> None:
    (store / "pipelines" / "mine" / "workspace" / "own").write_bytes(RIGHT)
    assert grade_looking_at(store, "../own") == (100.0, "")
    workspace = store / "pipelines" / "mine" / "workspace"
    assert grade_looking_at(store, f"{workspace}/own") == (100.0, "")


@pytest.mark.parametrize(
    "path",
    [
        "../../slots/right",
        "{store}/pipelines/mine/slots/right",
        "{store}/pipelines/other/slots/right",
        "{store}/pipelines/other/workspace/right",
        "{store}/graded/right",
        "{store}/tapes/right",
        "/proc/1/root{store}/tapes/right",
        "/proc/self/cwd/../../../other/slots/right",
    ],
)
def test_answers_in_the_store_are_not_there(store: Path, path: str) -> None:
    score, why = grade_looking_at(store, path.format(store=store))
    assert score == 0.0
    assert why.endswith((": No such file or directory", ": Permission denied"))


@pytest.mark.parametrize(
    "path",
    [
        golden.__file__,
        str(Path(__file__).resolve().parents[2] / "pyproject.toml"),
        str(Path(__file__).resolve()),
        str(Path.home() / ".profile-of-a-test"),
        "/tmp/beside",
        "/var/lib/dpkg/status",
    ],
)
def test_nothing_of_the_machine_is_there_but_its_programs(tmp_path: Path, path: str) -> None:
    workspace = tmp_path / "workspace"
    script(workspace, "T2", f'#!/bin/sh\ntest ! -e "{path}" && cp ../own "$2"\n')
    (workspace / "own").write_bytes(RIGHT)
    placed = Path(path)
    if made := not placed.exists():
        placed.touch()
    try:
        [case] = grade_stage("T2", workspace, given("T2"), jobs=1, cases=CASE).cases
    finally:
        if made:
            placed.unlink()
    assert (case.score, case.why) == (100.0, "")
