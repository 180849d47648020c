"""The GitHub action, its steps run as a runner runs them: inputs, files of outputs and summary."""

import os
import re
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest
import yaml

from tests.support.campaign_folder import Bench, practising

ROOT = Path(__file__).resolve().parents[3]
ACTION = yaml.safe_load((ROOT / "action.yml").read_text())
EXPRESSION = re.compile(r"\$\{\{ (inputs|github)\.([\w-]+) \}\}")


NOTHING: Mapping[str, str] = {}
NO_LIMIT = {"max-cost": ""}
"""The practice model has no price."""


@dataclass(frozen=True, slots=True)
class Job:
    """A finished job: exit code, log, outputs and summary."""

    code: int
    log: str
    outputs: Mapping[str, str]
    summary: str


def run_action(bench: Bench, env: Mapping[str, str] = NOTHING, /, **inputs: str) -> Job:
    """Run the shell steps of the action that have no condition, as a runner does."""
    given = {name: each.get("default", "") for name, each in ACTION["inputs"].items()} | inputs
    assert set(given) == set(ACTION["inputs"])
    context = {"inputs": given, "github": {"action_path": str(ROOT)}}

    def fill(text: str) -> str:
        return EXPRESSION.sub(lambda match: context[match[1]][match[2]], text)

    command = Path(sys.executable).parent / "stumble"
    files = {name: bench.folder / f"runner-{name}" for name in ("output", "summary")}
    for file in files.values():
        file.write_text("")
    [step] = [step for step in ACTION["runs"]["steps"] if "run" in step and "if" not in step]
    done = subprocess.run(
        ("bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", fill(step["run"])),
        cwd=bench.folder / fill(step["working-directory"]),
        env={
            **bench.environment(),
            "PATH": f"{command.parent}{os.pathsep}{os.environ['PATH']}",
            **{name: fill(str(value)) for name, value in step["env"].items()},
            "GITHUB_OUTPUT": str(files["output"]),
            "GITHUB_STEP_SUMMARY": str(files["summary"]),
            "GITHUB_RUN_ID": "17",
            "GITHUB_RUN_ATTEMPT": "1",
            **env,
        },
        capture_output=True,
        text=True,
        timeout=300,
    )
    lines = files["output"].read_text().splitlines()
    return Job(
        code=done.returncode,
        log=done.stdout + done.stderr,
        outputs=dict(line.split("=", 1) for line in lines),
        summary=files["summary"].read_text(),
    )


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Bench:
    """The folder of an agent with a campaign."""
    made = Bench(tmp_path_factory.mktemp("repository"))
    text = practising(("refund-1",), ("practice/retries",))
    made.write("campaign.toml", text.replace('"digit"', '"digit:field=amount"'))
    return made


def test_a_campaign_of_few_recordings_decides_nothing_and_says_so(bench: Bench) -> None:
    job = run_action(bench, NOTHING, campaign="campaign.toml", **NO_LIMIT)
    assert job.code == 0, job.log
    assert job.outputs == {"verdict": "inconclusive"}
    assert "::warning title=stumble::" in job.log
    assert "not enough evidence" in job.summary
    assert "#### Worst injections" in job.summary
    assert "silent\\_wrong" in job.summary
    assert (bench.folder / "stumble-report.html").stat().st_size > 10_000
    assert "<testsuites>" in (bench.folder / "stumble-gate.xml").read_text()


def test_evidence_that_decides_nothing_fails_the_job_if_that_is_asked(bench: Bench) -> None:
    job = run_action(bench, NOTHING, campaign="campaign.toml", inconclusive="fail", **NO_LIMIT)
    assert (job.code, job.outputs) == (5, {"verdict": "inconclusive"})


def test_a_pull_request_without_secrets_injects_nothing_and_is_not_green(bench: Bench) -> None:
    job = run_action(bench, campaign="campaign.toml", needs="SOME_API_KEY")
    assert (job.code, job.outputs) == (0, {"verdict": "inconclusive"})
    assert "SOME_API_KEY is not set, so no fault was injected" in job.summary
    here = run_action(bench, {"SOME_API_KEY": "k"}, campaign="gone.toml", needs="SOME_API_KEY")
    assert (here.code, here.outputs) == (2, {"verdict": "error"})


def test_recordings_that_cannot_be_played_are_an_error_and_no_finding(bench: Bench) -> None:
    bench.write("broken.tape", "no tape")
    job = run_action(bench, tapes="*.tape")
    assert (job.code, job.outputs) == (2, {"verdict": "error"})
    assert "broken.tape" in job.summary
    none = run_action(bench, tapes="gone/*.tape")
    assert (none.code, none.outputs) == (2, {"verdict": "error"})


def test_a_recording_is_replayed_and_a_changed_agent_is_reported(bench: Bench) -> None:
    agent = bench.folder / "agent.py"
    agent.write_text("print('the agent')\n")
    (bench.folder / "kept").mkdir()
    said = bench.stumble("record", "-o", "kept/own.tape", "--", sys.executable, "agent.py")
    assert said.code == 0, said.err
    job = run_action(bench, tapes="kept/*.tape")
    assert (job.code, job.outputs) == (0, {"verdict": "pass"})
    assert "| kept/own.tape | as recorded |" in job.summary
    agent.write_text(
        "import urllib.request\n"
        "try:\n"
        "    urllib.request.urlopen('http://127.0.0.1:9/other', timeout=5)\n"
        "except OSError as error:\n"
        "    print(error)\n"
    )
    changed = run_action(bench, tapes="kept/*.tape")
    assert changed.code == 0, changed.log
    assert "the agent asks for something else now" in changed.summary


def test_inputs_reach_the_script_as_variables_and_never_as_code(bench: Bench) -> None:
    for step in ACTION["runs"]["steps"]:
        assert "${{" not in step.get("run", "")
    victim = bench.folder / "victim"
    job = run_action(bench, tapes=f"$(touch {victim}) ; touch {victim}")
    assert job.code == 2
    assert not victim.exists()


def test_the_script_has_no_finding_of_its_shell() -> None:
    script = ROOT / ".github/stumble-action.sh"
    subprocess.run(("bash", "-n", str(script)), check=True)
