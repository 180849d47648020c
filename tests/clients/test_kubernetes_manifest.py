"""The manifest of the Indexed Job, against the schemas of Kubernetes."""

import subprocess
from pathlib import Path

import pytest

from tests.agents import environment

MANIFEST = Path(__file__).resolve().parents[2] / "examples" / "cluster" / "kubernetes-job.yaml"
pytestmark = [pytest.mark.thorough, pytest.mark.agents]


def validate(path: Path, version: str) -> "subprocess.CompletedProcess[str]":
    command = environment("kubernetes").with_name("kubernetes-validate")
    return subprocess.run(
        [command, "--strict", "--kubernetes-version", version, path],
        capture_output=True, text=True, timeout=60,
    )  # fmt: skip


@pytest.mark.parametrize("version", ["1.30", "1.37"])
def test_the_manifest_is_a_job_of_kubernetes(version: str) -> None:
    done = validate(MANIFEST, version)
    assert done.returncode == 0, done.stderr


def test_an_unknown_field_would_be_found(tmp_path: Path) -> None:
    wrong = tmp_path / "wrong.yaml"
    wrong.write_text(MANIFEST.read_text().replace("completions: 16", "completion: 16", 1))
    done = validate(wrong, "1.37")
    assert done.returncode == 1
    assert "'completion' was unexpected" in done.stdout + done.stderr
