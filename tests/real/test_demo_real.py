"""`stumble demo --real` on a fresh machine: a new environment with the extra, and an empty home.

`make test-real` runs it. It downloads 130 MB unless uv has them.
"""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from bootstrap import clean_path, find_uv

ROOT = Path(__file__).resolve().parents[2]
pytestmark = pytest.mark.timeout(2400)
LIMIT = 900
"""Seconds of one step, on a machine that does other things."""


@pytest.fixture(scope="module")
def stumble(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The program as the documentation installs it, at the versions of the locks."""
    venv, uv = tmp_path_factory.mktemp("fresh") / "venv", find_uv()
    into = ("--quiet", "--python", str(venv / "bin" / "python"))
    run([uv, "venv", "--quiet", "--python", sys.executable, str(venv)])
    run([uv, "pip", "sync", *into, "--require-hashes", str(ROOT / "requirements.lock")])
    real = str(ROOT / "tests" / "agents" / "real.txt")
    run([uv, "pip", "install", *into, "--no-deps", "--require-hashes", "-r", real])
    run([uv, "pip", "install", *into, "--no-deps", "--no-build-isolation", f"{ROOT}[real]"])
    return venv / "bin" / "stumble"


def run(command: list[str], **options: object) -> str:
    done = subprocess.run(
        command,
        capture_output=True,
        text=True,
        timeout=LIMIT,
        check=False,
        **options,  # type: ignore[call-overload]
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return str(done.stdout)


def demonstrate(stumble: Path, machine: Path) -> tuple[str, str]:
    """Run the demo on an empty machine; return its table, and every answer of the model."""
    home = machine / "home"
    home.mkdir(parents=True)
    env = {"HOME": str(home), "PATH": f"{stumble.parent}{os.pathsep}{clean_path()}"}
    printed = run([str(stumble), "demo", "--real"], cwd=machine, env=env)
    answers = run(
        [str(stumble), "sql", "--format", "csv", ANSWERS],
        cwd=machine,
        env=env | {"STUMBLE_STORE": str(machine / ".stumble" / "demo-real")},
    )
    table = printed.partition("smollm2, temperature 0")[2].partition("replies by class")[0]
    return table, answers


ANSWERS = """
    with answers as (
        select trajectory_id, tool || arguments as answer from tool_calls
        union all
        select trajectory_id, content from messages where role = 'assistant'
    )
    select t.agent, t.task, t.condition, answer, count(*) as answers
    from answers
    join trajectories t using (trajectory_id)
    group by all order by all
"""


def test_a_fresh_machine_shows_it_and_again_with_the_same_tokens(
    stumble: Path, tmp_path: Path
) -> None:
    first, answers = demonstrate(stumble, tmp_path / "one")
    for policy in ("none", "retries", "read-back"):
        assert policy in first
    assert answers.count("\n") > 10
    assert demonstrate(stumble, tmp_path / "two") == (first, answers)
