"""The repository in examples/quickstart: its README and its workflow, run as written."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest
import yaml

from tests.support.action_runner import ROOT, WITH_STUMBLE, ActionRunner
from tests.support.campaign_folder import Bench

QUICKSTART = ROOT / "examples/quickstart"


@pytest.fixture
def repository(tmp_path: Path) -> Bench:
    """A copy of the repository in another folder."""
    shutil.copytree(QUICKSTART, tmp_path / "copy")
    return Bench(tmp_path / "copy")


def test_the_readme_is_run_as_written(repository: Bench) -> None:
    commands = re.findall(r"^    (\S.*)$", (QUICKSTART / "README.md").read_text(), re.MULTILINE)
    script = "\n".join(f'{each}\necho "[$?]"' for each in commands)
    done = subprocess.run(
        ("bash", "-c", script),
        cwd=repository.folder,
        env=repository.environment() | {"PATH": WITH_STUMBLE},
        capture_output=True,
        text=True,
        timeout=280,
    )
    codes = [int(each) for each in re.findall(r"^\[(\d+)\]$", done.stdout, re.MULTILINE)]
    # Too few recordings for an interval is the 5 of a campaign; double actions are counted.
    assert codes == [0, 0, 3, 5, 0, 0, 5, 1], done.stdout + done.stderr
    assert "leave it out: --match 'ignore:messages[0].content'" in done.stderr
    assert "double actions at most 0: 0 in 1 faulted runs  refund-agent" in done.stdout
    assert "double actions at most 0: 1 in 1 faulted runs  refund-agent" in done.stdout


@pytest.mark.thorough
def test_the_workflow_is_green(repository: Bench) -> None:
    workflow = yaml.safe_load((QUICKSTART / ".github/workflows/stumble.yml").read_text())
    *_, step = workflow["jobs"]["faults"]["steps"]
    assert step["uses"] == "OWNER/stumble@v1"
    push = {"event_name": "push"}
    job = ActionRunner(repository.folder, repository.environment(), push).run({}, step["with"])
    assert (job.code, job.outputs) == (0, {"verdict": "pass"}), job.log
    assert "| recordings/refund.stumble | as recorded |" in job.summary
    assert "| pass | double actions at most 0 | 0 in 1 faulted runs | refund-agent" in job.summary


def test_the_scenario_runs_the_agent_of_the_repository(repository: Bench) -> None:
    result = repository.stumble("run", "./scenario.toml", "--twins", "0", "--json")
    assert result.code in (0, 5), result.err
    recorded, faulted = sorted(repository.runs(), key=lambda run: run.id)
    assert (recorded.agent, recorded.model, recorded.task) == (
        "refund-agent", "practice/verifies", "refund-1"
    )  # fmt: skip
    assert recorded.command[:2] == ("python3", "agent.py")
