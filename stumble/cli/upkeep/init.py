"""`stumble init`: look at a project and write its stumble.toml and first scenario."""

import json
import shlex
from pathlib import Path

import click

from stumble.errors import UsageError


@click.command(context_settings={"ignore_unknown_options": True})
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@click.argument("command", nargs=-1, type=click.UNPROCESSED)
def init(as_json: bool, command: tuple[str, ...]) -> None:
    """Look at the project in this folder (language, program, provider, tests) and write
    stumble.toml and stumble-scenario.toml, which `stumble run` runs. Nothing is executed, and a
    file that exists is left as it is.

    COMMAND starts the agent; without it the most likely program of the project is taken.

    \b
    stumble init
    stumble init -- python my_agent.py --task refund
    """
    from stumble.project_setup.project_files import (
        SCENARIO_NAME,
        render_project_file,
        render_scenario,
        write_new_files,
    )
    from stumble.project_setup.project_scan import choose_entry_point, scan_project

    scan = scan_project(Path.cwd())
    entry = choose_entry_point(scan)
    if not command and entry is None:
        started = "; ".join(shlex.join(each.command) for each in scan.entry_points[:3])
        found = f" (programs without a provider: {started})" if started else ""
        raise UsageError(
            f"no program of this folder names a model provider{found}; give the command: "
            "stumble init -- python my_agent.py"
        )
    command = command or (entry.command if entry else ())
    files = {
        "stumble.toml": render_project_file(scan, command),
        SCENARIO_NAME: render_scenario(scan, command),
    }
    try:
        written, kept = write_new_files(scan.folder, files)
    except OSError as error:
        raise UsageError(f"{error.filename}: {error.strerror}") from None
    if as_json:
        report = {
            "language": scan.language,
            "command": list(command),
            "candidates": [list(each.command) for each in scan.entry_points],
            "variables": list(scan.variables),
            "tests": scan.test_command,
            "written": [str(path) for path in written],
            "kept": [str(path) for path in kept],
        }
        click.echo(json.dumps(report))
        return
    click.echo(f"language  {scan.language}\ncommand   {shlex.join(command)}")
    for other in [e for e in scan.entry_points if e.is_agent and e.command != command][:3]:
        click.echo(f"          or: stumble init -- {shlex.join(other.command)}")
    click.echo(f"provider  {', '.join(scan.variables) or 'no variable of a provider found'}")
    click.echo(f"tests     {scan.test_command or 'none found'}")
    for path in written:
        click.echo(f"written   {path.name}")
    for path in kept:
        click.echo(f"kept      {path.name}, which exists")
    click.echo(f"\nNext: stumble doctor -- {shlex.join(command)}")
    click.echo(f"      stumble run ./{SCENARIO_NAME}")
