"""mini-swe-agent goes through the first stages of the pipeline, in both sandboxes."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from sandbox.docker import engine, images
from tests.agents import environment

ROOT = Path(__file__).resolve().parents[2]
MODEL = "openai/practice/solver:T0=good,T1=good,T2=good"
VARIABLES = "MSWEA_CONFIGURED=true MSWEA_COST_TRACKING=ignore_errors"
OPTIONS = "-m minisweagent.run.mini -m {model} -t {task} -y --exit-immediately"


@pytest.fixture
def packages() -> Iterator[Path]:
    """mini-swe-agent below the interpreter's folder, which sandboxes show to an agent."""
    [own] = environment("sdks-httpx").parents[1].glob("lib/python3*/site-packages")
    copied = Path(sys.prefix) / f"agent-packages-{os.getpid()}"
    shutil.copytree(own, copied, copy_function=os.link)
    yield copied
    shutil.rmtree(copied)


@pytest.mark.thorough
@pytest.mark.timeout(1500)
@pytest.mark.parametrize("sandbox", ["process", "docker"])
def test_mini_swe_agent_solves_three_stages(tmp_path: Path, packages: Path, sandbox: str) -> None:
    if sandbox == "docker":
        with engine.open_docker_engine() as client:
            images.build_host_image(client, images.DEFAULT_IMAGE)
    agent = f"env {VARIABLES} PYTHONPATH={packages} {sys.executable} {OPTIONS}"
    words = ("--sandbox", sandbox, "--stages", "T0,T1,T2", "--model", MODEL, "--json")
    done = subprocess.run(
        (sys.executable, "-m", "stumble", "pipeline", "demo", "--agent", agent, *words),
        cwd=tmp_path, env=os.environ | {"PYTHONPATH": str(ROOT)}, capture_output=True, text=True,
        timeout=1400,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    stages = json.loads(done.stdout)["stages"]
    assert [(row["stage"], row["score"]) for row in stages] == [
        ("T0", 100.0),
        ("T1", 100.0),
        ("T2", 100.0),
    ]
    assert all(row["calls"] > 3 and row["seen"] == "[]" for row in stages)
