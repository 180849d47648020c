"""`stumble doctor`: what would be recorded of a command, found out by trying it."""

import json
import os
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import click

from stumble import options
from stumble.exits import Exits

if TYPE_CHECKING:
    from stumble.doctor import Examined

MARKS = {True: "seen", False: "MISSED", None: "unknown"}


@click.command(
    short_help="Say what would be recorded of an agent, and what missed.",
    context_settings={"allow_interspersed_args": False},
    epilog="The exit code is 0 if its model calls would be recorded and nothing is known to be "
    "missed, else 1.",
)
@options.budget_option(30.0)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@options.agent_command
def doctor(budget: float, as_json: bool, command: tuple[str, ...]) -> None:
    """Start an agent once without any network, and say what a recording of it would hold.

    A stand-in answers instead of the model, that there is nothing to do; all else is refused.
    So nothing is paid, and no real provider hears of it. The agent works in the current folder.

    \b
    stumble doctor -- claude -p "say hello"
    stumble doctor --json -- python my_agent.py
    """
    command = options.checked(command)

    from recorder import loop
    from stumble.doctor import examine
    from stumble.home import authority

    with TemporaryDirectory(prefix="stumble-") as scratch, options.started(command):
        found = loop.run(
            examine(command, os.environ, ca=authority(), scratch=Path(scratch), budget=budget)
        )
    click.echo(json.dumps(_data(found)) if as_json else "\n".join(_words(found)))
    raise SystemExit(Exits.OK if found.sound else Exits.FINDING)


def _data(found: "Examined") -> dict[str, object]:
    listed = [{"what": f.what, "seen": f.seen, "text": f.text} for f in found.findings]
    return {"sound": found.sound, "exit": found.exit, "findings": listed}


def _words(found: "Examined") -> list[str]:
    lines = [f"{MARKS[f.seen]:8}{f.what:12}{f.text}" for f in found.findings]
    if not any(f.what == "model" and f.seen for f in found.findings):
        lines += [f"the agent ended with {found.exit}, and last said:"]
        lines += [f"  {line}" for line in found.printed]
    verdict = "would be recorded" if found.sound else "would not be recorded whole"
    return [*lines, f"this command {verdict}"]
