"""The GitHub action, its steps run as a runner runs them: inputs, files of outputs and summary."""

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from itertools import count
from pathlib import Path
from string import Template

import pytest
import yaml

from tests.support.action_runner import ROOT, WITH_STUMBLE, ActionRunner, Job
from tests.support.agents.refund_desk import TRUE, Answer, Desk, Messages, desk, naive
from tests.support.campaign_folder import FAULTS, Bench, practising
from tests.support.servers.github_comments import serve_comments

NOTHING: Mapping[str, str] = {}
NO_LIMIT = {"max-cost": ""}
"""The practice model has no price."""
PULL_REQUEST = {"event_name": "pull_request", "event.pull_request.number": "7", "token": "writes"}


def run_action(bench: Bench, env: Mapping[str, str] = NOTHING, /, **inputs: str) -> Job:
    """Run the steps of the action for a push, which has no comments."""
    return ActionRunner(bench.folder, bench.environment()).run(env, inputs)


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Bench:
    """The folder of an agent with a campaign."""
    made = Bench(tmp_path_factory.mktemp("repository"))
    world = practising(("refund-1",), ("practice/retries",)).removesuffix(FAULTS)
    made.write("campaign.toml", f'{world}[[faults]]\nfault = "digit:field=amount"\n')
    return made


@pytest.mark.thorough
def test_a_campaign_of_few_recordings_decides_nothing_and_says_so(bench: Bench) -> None:
    with serve_comments() as comments:
        runner = ActionRunner(bench.folder, bench.environment(), PULL_REQUEST)
        api = {"GITHUB_API_URL": comments.url}
        job = runner.run(api, {"campaign": "campaign.toml", **NO_LIMIT})
    assert job.code == 0, job.log
    [text] = comments.texts.values()
    assert text.partition("\n")[2].strip() == job.summary.strip()
    assert job.outputs == {"verdict": "inconclusive"}
    assert "::warning title=stumble::" in job.log
    assert "not enough evidence" in job.summary
    assert "#### Worst injections" in job.summary
    assert "silent\\_wrong" in job.summary
    assert (bench.folder / "stumble-report.html").stat().st_size > 10_000
    assert "<testsuites>" in (bench.folder / "stumble-gate.xml").read_text()
    [run] = json.loads((bench.folder / "stumble-gate.sarif").read_text())["runs"]
    assert {each["kind"] for each in run["results"]} == {"open"}
    assert [name.partition("@")[0] for name in job.used] == ["actions/upload-artifact"]


def test_a_pull_request_without_secrets_injects_nothing_and_is_not_green(bench: Bench) -> None:
    job = run_action(bench, campaign="campaign.toml", needs="SOME_API_KEY")
    assert (job.code, job.outputs) == (0, {"verdict": "inconclusive"})
    assert "SOME_API_KEY is not set, so no fault was injected" in job.summary
    strict = run_action(bench, campaign="campaign.toml", needs="SOME_API_KEY", inconclusive="fail")
    assert (strict.code, strict.outputs) == (5, {"verdict": "inconclusive"})
    here = run_action(bench, {"SOME_API_KEY": "k"}, campaign="gone.toml", needs="SOME_API_KEY")
    assert (here.code, here.outputs) == (2, {"verdict": "error"})
    assert "exit code 2. stumble: gone.toml: " in here.summary


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
    result = bench.stumble("record", "-o", "kept/own.tape", "--", sys.executable, "agent.py")
    assert result.code == 0, result.err
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
    victim = bench.folder / "victim"
    job = run_action(bench, tapes=f"$(touch {victim}) ; touch {victim}")
    assert job.code == 2
    assert not victim.exists()


def test_what_the_action_installs_is_cached_by_what_it_is(tmp_path: Path) -> None:
    def read_outputs(requirements: str, path: str = "/usr/bin:/bin") -> dict[str, str]:
        (tmp_path / "pyproject.toml").write_text("[project]\n")
        (tmp_path / "requirements.lock").write_text(requirements)
        output = tmp_path / "output"
        output.write_text("")
        files = {"STUMBLE_SOURCE": str(tmp_path), "GITHUB_OUTPUT": str(output)}
        runner = {"RUNNER_TEMP": "/tmp/r", "RUNNER_OS": "Linux", "RUNNER_ARCH": "X64"}
        script = str(ROOT / ".github/stumble-cache-key.sh")
        subprocess.run(("bash", script), env={"PATH": path, **files, **runner}, check=True)
        return dict(line.split("=", 1) for line in output.read_text().splitlines())

    one, same, other = map(read_outputs, ("a==1\n", "a==1\n", "a==2\n"))
    assert one == same
    assert one["folder"] == "/tmp/r/stumble-pip"
    assert one["prefix"].startswith("stumble-Linux-X64-python3.")
    assert one["key"].startswith(one["prefix"])
    assert one["key"] != other["key"]
    assert read_outputs("a==1\n", WITH_STUMBLE) == {}


def write_desk_campaign(lab: Desk, where: str) -> str:
    reset, verify = (lab.world(verb)[1] for verb in ("reset", "verify"))
    return lab.bench.write(
        "campaign.toml",
        f'traces = ["a.tape"]\nshams = 0\n'
        f"[world]\nreset = {json.dumps(reset)}\nverify = {json.dumps(verify)}\n"
        f'[hosts]\n"model.lab" = "{lab.place}"\n"shop.lab" = "{lab.place}"\n'
        f'[[faults]]\nfault = "http_status:code=503"\nwhere = {{ tool = "{where}" }}\n',
    )


@pytest.mark.thorough
def test_faults_that_find_no_call_decide_nothing_and_name_the_calls(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    fault = '[[faults]]\nfault = "http_status:code=503"\nwhere = { tool = "gone" }\n'
    bench.write("campaign.toml", f'traces = ["{ROOT}/tests/data/golden/http.tape"]\n{fault}')
    job = run_action(bench, campaign="campaign.toml", inconclusive="fail", **NO_LIMIT)
    assert (job.code, job.outputs) == (5, {"verdict": "inconclusive"}), job.log
    assert "the recording has no call of tool 'gone'; there is " in job.summary


@pytest.mark.thorough
def test_a_flaky_agent_decides_nothing(tmp_path: Path) -> None:
    turns = count()

    def flaky(messages: Messages) -> Answer:
        """Pay right and wrong in turn."""
        answer = naive(messages)
        if isinstance(answer, tuple) and answer[0] == "issue_refund" and next(turns) % 2:
            return answer[0], {**answer[1], "amount": TRUE + 10}
        return answer

    with desk(tmp_path, flaky) as lab:
        assert lab.record().code == 0
        job = run_action(
            lab.bench,
            NOTHING,
            campaign=write_desk_campaign(lab, "get_order"),
            inconclusive="fail",
            **NO_LIMIT,
        )
    assert (job.code, job.outputs) == (5, {"verdict": "inconclusive"}), job.log
    assert "not enough evidence" in job.summary


@pytest.mark.thorough
def test_the_gitlab_job_without_its_secret_is_neither_green_nor_red(tmp_path: Path) -> None:
    """Its script is run with its variables, as GitLab's runner does."""
    job = yaml.safe_load((ROOT / "examples/ci/gitlab.yml").read_text())["stumble"]
    bench = Bench(tmp_path)
    bench.write("agent.py", "print('the agent')\n")
    bench.write("requirements.txt", "")
    result = bench.stumble("record", "-o", "refund.tape", "--", sys.executable, "agent.py")
    assert result.code == 0, result.err
    programs = tmp_path / "bin"
    programs.mkdir()
    (programs / "python").symlink_to(Path(sys.base_prefix) / "bin/python3")  # it has pip
    (programs / "stumble").symlink_to(Path(sys.executable).parent / "stumble")
    given = {"CI_PIPELINE_ID": "19", "CI_PROJECT_DIR": str(tmp_path)}
    values = {k: Template(str(v)).substitute(given) for k, v in job["variables"].items()}
    done = subprocess.run(
        ("bash", "-eo", "pipefail", "-c", "\n".join(job["script"])),
        cwd=tmp_path,
        env={
            **bench.environment(),
            **values,
            "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}",
            "STUMBLE_REPOSITORY": ROOT.as_uri(),
            "PIP_BREAK_SYSTEM_PACKAGES": "1",
        },
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == job["allow_failure"]["exit_codes"], done.stdout + done.stderr
    summary = (tmp_path / "stumble-summary.md").read_text()
    assert "### stumble: inconclusive" in summary
    assert "| refund.tape | as recorded |" in summary
    assert "OPENAI_API_KEY is not set" in summary
