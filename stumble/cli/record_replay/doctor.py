"""`stumble doctor`: start an agent offline and report which of its traffic can be recorded."""

import json
import os
from typing import TYPE_CHECKING

import click

from stumble.cli import options
from stumble.cli.exit_codes import ExitCode

if TYPE_CHECKING:
    from stumble.doctor.probe_run import DoctorResult

SEEN_LABELS = {True: "seen", False: "MISSED", None: "unknown"}


@click.command(
    context_settings={"allow_interspersed_args": False},
    epilog="Exit codes: 0 the model calls would be recorded and no missed traffic is known, "
    "1 otherwise.",
)
@options.budget_option(30.0)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@options.agent_command
def doctor(budget: float, as_json: bool, command: tuple[str, ...]) -> None:
    """Start an agent once without network and report what a recording of it would contain.

    A local stand-in for the model answers that there is nothing to do; all other requests are
    refused. No provider is contacted and nothing is billed. The agent works in the current folder.

    \b
    stumble doctor -- claude -p "say hello"
    stumble doctor --json -- python my_agent.py
    """
    command = options.check_agent_command(command)

    from recorder import event_loop
    from recorder.scratch_folder import make_scratch_folder
    from stumble.doctor.probe_run import examine_agent
    from stumble.user_data.paths import prepare_ca_folder

    with make_scratch_folder() as scratch, options.report_launch_failure(command):
        result = event_loop.run_event_loop(
            examine_agent(
                command, os.environ, ca=prepare_ca_folder(), scratch=scratch, budget=budget
            )
        )
    click.echo(
        json.dumps(_examination_to_dict(result))
        if as_json
        else "\n".join(_examination_to_lines(result))
    )
    raise SystemExit(ExitCode.OK if result.is_recordable else ExitCode.FINDING)


def _examination_to_dict(found: "DoctorResult") -> dict[str, object]:
    listed = [{"what": f.what, "seen": f.seen, "text": f.text} for f in found.findings]
    return {"sound": found.is_recordable, "exit": found.exit, "findings": listed}


def _examination_to_lines(found: "DoctorResult") -> list[str]:
    lines = [f"{SEEN_LABELS[f.seen]:8}{f.what:12}{f.text}" for f in found.findings]
    if not any(f.what == "model" and f.seen for f in found.findings):
        lines += [f"the agent ended with {found.exit}, and last said:"]
        lines += [f"  {line}" for line in found.printed]
    verdict = "would be recorded" if found.is_recordable else "would not be recorded whole"
    return [*lines, f"this command {verdict}"]
