"""A runner of the composite action in action.yml: its steps, conditions, inputs and files.

Steps that use other actions are not run; all others are, in order, with the expressions that GitHub
evaluates. https://docs.github.com/en/actions/reference/workflows-and-actions/expressions
"""

import os
import re
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).resolve().parents[2]
ACTION: dict[str, Any] = yaml.safe_load((ROOT / "action.yml").read_text())
NAME = re.compile(r"\b(?:inputs|github|steps)(?:\.[\w-]+)+")
WITH_STUMBLE = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"


@dataclass(frozen=True, slots=True)
class Job:
    """A finished job: exit code, log, outputs by step, and summary."""

    code: int
    log: str
    steps: Mapping[str, Mapping[str, str]]
    summary: str
    used: Mapping[str, Mapping[str, str]]
    """The other actions that would have been run, with their inputs."""

    @property
    def outputs(self) -> Mapping[str, str]:
        """The outputs of the step with the verdict."""
        return self.steps["stumble"]


@dataclass(slots=True)
class ActionRunner:
    """A runner in a folder; `event` is the context `github` of the workflow."""

    folder: Path
    environment: Mapping[str, str]
    event: Mapping[str, str] = field(default_factory=dict)
    path: str = WITH_STUMBLE

    def run(self, env: Mapping[str, str], inputs: Mapping[str, str]) -> Job:
        """Run the steps of the action."""
        given = {name: each.get("default", "") for name, each in ACTION["inputs"].items()}
        given.update(inputs)
        assert set(given) == set(ACTION["inputs"])
        known = {f"inputs.{name}": value for name, value in given.items()}
        known |= {"github.action_path": str(ROOT)} | {
            f"github.{k}": v for k, v in self.event.items()
        }
        summary = self.folder / "runner-summary"
        summary.write_text("")
        log, code, steps, used = "", 0, {}, {}
        for number, step in enumerate(ACTION["runs"]["steps"]):
            if not _is_wanted(step.get("if", "success()"), known, code):
                continue
            if "uses" in step:
                used[step["uses"]] = {k: _fill(str(v), known) for k, v in step["with"].items()}
                continue
            output = self.folder / f"runner-output-{number}"
            output.write_text("")
            files = {"GITHUB_OUTPUT": str(output), "GITHUB_STEP_SUMMARY": str(summary)}
            done = self._run_step(step, known, {**files, **env})
            log, code = log + done.stdout + done.stderr, code or done.returncode
            if "id" in step:
                lines = output.read_text().splitlines()
                steps[step["id"]] = dict(line.split("=", 1) for line in lines)
                for name, value in steps[step["id"]].items():
                    known[f"steps.{step['id']}.outputs.{name}"] = value
        return Job(code, log, steps, summary.read_text(), used)

    def _run_step(
        self, step: Mapping[str, Any], known: Mapping[str, str], env: Mapping[str, str]
    ) -> subprocess.CompletedProcess[str]:
        assert "${{" not in step["run"], "an input in a script is code"
        own = {name: _fill(str(value), known) for name, value in step.get("env", {}).items()}
        return subprocess.run(
            ("bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"]),
            cwd=self.folder / _fill(step.get("working-directory", "."), known),
            env={
                **self.environment,
                "PATH": self.path,
                "GITHUB_RUN_ID": "17",
                "GITHUB_RUN_ATTEMPT": "1",
                "GITHUB_WORKFLOW": "faults",
                "GITHUB_JOB": "stumble",
                "GITHUB_REPOSITORY": "somebody/agent",
                **own,
                **env,
            },
            capture_output=True,
            text=True,
            timeout=300,
        )


def _fill(text: str, known: Mapping[str, str]) -> str:
    """Fill in the expressions of a text; what is not known is empty, as with GitHub."""
    return re.sub(r"\$\{\{ ([\w.-]+) \}\}", lambda match: known.get(match[1], ""), text)


def _is_wanted(condition: str, known: Mapping[str, str], code: int) -> bool:
    """Evaluate a condition of names, texts, `==`, `!=`, `&&` and status functions."""
    if "always()" not in condition and code:
        return False
    text = condition.replace("always()", "True").replace("success()", "True")
    text = NAME.sub(lambda match: repr(known.get(match[0], "")), text.replace("&&", "and"))
    return bool(eval(text, {"__builtins__": {}}))  # noqa: S307 - the action's own conditions
