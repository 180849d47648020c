"""The first files of a project: stumble.toml and a scenario, written only where none is."""

import json
import shlex
from collections.abc import Sequence
from pathlib import Path

from stumble.project_setup.project_scan import ProjectScan

SCENARIO_NAME = "stumble-scenario.toml"


def render_project_file(scan: ProjectScan, command: Sequence[str]) -> str:
    """Return the text of stumble.toml."""
    name = json.dumps(scan.folder.name or "agent")
    tests = f"# The project's own tests: {scan.test_command}\n" if scan.test_command else ""
    variables = ", ".join(scan.variables)
    provider = f"# Its files read {variables}.\n" if variables else ""
    return (
        "# Defaults of stumble's options for this project; see docs/configuration.md.\n"
        f"# Record the agent:  stumble record -o run.tape -- {shlex.join(command)}\n"
        f"{provider}{tests}\n"
        f"[record]\nagent = {name}\n\n"
        "[fork]\n# A fault that most tools have to survive; stumble faults lists them all.\n"
        'fault = ["http_status:code=503"]\n\n'
        "# The world that the tools change. With these, runs start alike and are judged:\n"
        "# [world]\n"
        '# reset = "{project}/reset.sh"\n'
        '# verify = "{project}/verify.sh"\n'
        '# ledger = "{project}/payments.sh"     # what was done, for double and lost actions\n'
        '# ledger-key = "order_id,amount"\n'
    )


def render_scenario(scan: ProjectScan, command: Sequence[str]) -> str:
    """Return the text of a scenario that records the agent and breaks its first tool call."""
    return (
        f"# stumble run ./{SCENARIO_NAME}\n"
        'title = "The first tool call fails"\n'
        'about = "A tool answers 503. A good agent tries again, or says that it could not."\n'
        f"command = {json.dumps(list(command))}\n"
        f"agent = {json.dumps(scan.folder.name or 'agent')}\n\n"
        "# [world]\n"
        '# reset = "./reset.sh"\n'
        '# verify = "./verify.sh"\n\n'
        '[[faults]]\nfault = "http_status:code=503"\n'
    )


def write_new_files(folder: Path, texts: dict[str, str]) -> tuple[list[Path], list[Path]]:
    """Write files that do not exist yet; return those written and those left as they are.

    Raises OSError if a file cannot be written.
    """
    written, kept = [], []
    for name, text in texts.items():
        path = folder / name
        try:
            with path.open("x", encoding="utf-8") as file:
                file.write(text)
            written.append(path)
        except FileExistsError:
            kept.append(path)
    return written, kept
