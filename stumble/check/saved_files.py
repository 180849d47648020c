"""The files with which `stumble check` alone goes on: options of the project, and a job for CI."""

import json
import shlex
from collections.abc import Mapping, Sequence

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
    command: Sequence[str], budget: float, flags: Sequence[str], world: Mapping[str, str | None]
) -> dict[str, str]:
    """Return the texts of stumble.toml and a workflow, by path.

    `budget` is in seconds, `flags` are the options that were given without a value.
    """
    lines = ["# Defaults of `stumble check`; see docs/check.md.", "[check]"]
    lines += [f"command = {json.dumps(shlex.join(command))}", f'budget = "{budget:g}s"']
    lines += [f"{flag} = true" for flag in flags]
    known = {name: text for name, text in world.items() if text}
    if known:
        lines += ["", "[world]"]
        lines += [f"{name} = {json.dumps(text)}" for name, text in known.items()]
    return {PROJECT_FILE: "\n".join(lines) + "\n", WORKFLOW: _WORKFLOW_TEXT}
