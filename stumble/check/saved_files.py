"""The files with which `stumble check` alone goes on: options of the project, a scenario with the
worst finding, and a job for CI.
"""

import json
import shlex
from collections.abc import Mapping, Sequence

from stumble.check.findings import CheckFinding
from stumble.project_setup.project_files import SCENARIO_NAME
from stumble.runs.environment.worlds import FRESH_COPY_RESET

PROJECT_FILE = "stumble.toml"
WORKFLOW = ".github/workflows/stumble-check.yml"
_WORKFLOW_TEXT = """\
# Fails a pull request if `stumble check` finds a weakness (1) or has not enough evidence (5).
name: stumble check
on:
  pull_request:
permissions:
  contents: read
jobs:
  check:
    runs-on: ubuntu-latest
    steps:
      - uses: actions/checkout@v4
      # Install stumble and the agent here; the model's key is a secret of the repository.
      - run: stumble check --junit stumble-check.xml
"""


def render_saved_files(
    command: Sequence[str],
    given: Mapping[str, object],
    world: Mapping[str, str | None],
    worst: CheckFinding | None,
) -> dict[str, str]:
    """Return the texts of stumble.toml, a workflow, and a scenario if there is a finding, by path.

    `given` are the values of options, those without one None or False.
    """
    known = {name: text for name, text in world.items() if text}
    world_lines = ["", "[world]", *_format_values(known)] if known else []
    words = f"command = {json.dumps(shlex.join(command))}"
    lines = [
        "# Defaults of `stumble check`; see docs/check.md.",
        "[check]",
        words,
        *_format_values(given),
    ]
    texts = {PROJECT_FILE: [*lines, *world_lines], WORKFLOW: [_WORKFLOW_TEXT.rstrip("\n")]}
    if worst is not None:
        tool, nth = worst.worst.call
        texts[SCENARIO_NAME] = [
            f"# stumble run ./{SCENARIO_NAME}",
            f"title = {json.dumps(worst.sentence.rpartition(':')[0])}",
            words,
            "",
            "[world]",
            *_format_values({"reset": FRESH_COPY_RESET} | known),
            "",
            "[[faults]]",
            f"fault = {json.dumps(worst.fault)}",
            f"where = {{ tool = {json.dumps(tool)} }}",
            f"nth = {nth}",
        ]
    return {path: "\n".join(text) + "\n" for path, text in texts.items()}


def _format_values(values: Mapping[str, object]) -> list[str]:
    return [f"{name} = {json.dumps(value)}" for name, value in values.items() if value]
