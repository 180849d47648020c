"""The tables of published results come out of their recordings, to the digit.

Everything comes out of all packs, in the judge's answers too: by the verdicts of the day on which
the plans were sealed, whatever the judge of today says.
"""

import csv
import hashlib
import json
import re
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from traces.tape.reader import read_tape

RESULTS = Path(__file__).resolve().parents[3] / "docs" / "results" / "real-model"
LOCAL_PATH = re.compile(r"(?<![\w/.])/(?:work|root|tmp|var|mnt|Users)/[\w.-]+|/home/(?!demo/)\w+")
PART = "t0.8-read-back"
PARTS = sorted(path.stem for path in RESULTS.glob("*.stumble"))


def make(folder: Path, *words: str) -> None:
    command = [sys.executable, str(RESULTS / "make.py"), str(folder), *words]
    assert subprocess.run(command, timeout=1000, check=False).returncode == 0


@pytest.mark.gate
def test_tables_and_figure_come_out_of_the_rows(tmp_path: Path) -> None:
    make(tmp_path, "--rows", str(RESULTS / "rows.csv"))
    for name in ("rates.csv", "differences.csv", "rates.svg"):
        assert (tmp_path / name).read_bytes() == (RESULTS / name).read_bytes(), name


@pytest.mark.gate
@pytest.mark.timeout(1200)
def test_everything_comes_out_of_the_recordings(tmp_path: Path) -> None:
    make(tmp_path / "made")
    for name in ("rows.csv", "answers.csv", "rates.csv", "differences.csv", "rates.svg"):
        assert (tmp_path / "made" / name).read_bytes() == (RESULTS / name).read_bytes(), name


def test_the_rows_are_those_of_the_packs() -> None:
    """As many as there are tapes, and by their names: no run is left out, and none is added."""
    with (RESULTS / "rows.csv").open(newline="") as file:
        rows = sorted(row["run"] for row in csv.DictReader(file))
    tapes = []
    for part in PARTS:
        with zipfile.ZipFile(RESULTS / f"{part}.stumble") as pack:
            tapes += [Path(name).stem for name in pack.namelist() if name.endswith(".tape")]
    assert rows == sorted(tapes)


@pytest.mark.gate
@pytest.mark.parametrize("part", PARTS)
def test_recordings_are_of_the_sealed_plan_and_name_no_machine(part: str, tmp_path: Path) -> None:
    seal = json.loads((RESULTS / f"{part}.seal.json").read_text())["seal"]
    with zipfile.ZipFile(RESULTS / f"{part}.stumble") as file:
        tapes = [name for name in file.namelist() if name.endswith(".tape")]
        file.extractall(tmp_path)
    assert tapes
    for name in tapes:
        tape = read_tape(tmp_path / name)
        assert tape.trajectory.seal == seal, name
        found = LOCAL_PATH.findall(repr(tape).replace(str(tmp_path), ""))
        assert not found, (name, found[:3])


def test_every_plan_was_sealed_and_run() -> None:
    plans = sorted(path.stem for path in RESULTS.glob("*.toml"))
    seals = {path.name.removesuffix(".seal.json") for path in RESULTS.glob("*.seal.json")}
    assert len(plans) == 9
    assert set(plans) == seals == set(PARTS)
    digests = {hashlib.sha256(path.read_bytes()).hexdigest() for path in RESULTS.glob("*.json")}
    assert len(digests) == len(plans)
