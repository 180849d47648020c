"""`stumble doctor`: start an agent offline and report which of its traffic can be recorded."""

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

import click

from stumble.cli import options
from stumble.errors import ExitCode

if TYPE_CHECKING:
    from stumble.doctor.probe_run import DoctorResult

HERE_LABELS = {True: "here", False: "MISSING", None: "unknown"}
SEEN_LABELS = {True: "seen", False: "MISSED", None: "unknown"}


@click.command(
    context_settings={"allow_interspersed_args": False},
    epilog="Exit codes: 0 the model calls would be recorded and no missed traffic is known, "
    "1 otherwise. With a pack: 0 all that it needs is here, 1 otherwise.",
)
@options.budget_option(30.0)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@options.agent_command
def doctor(budget: float, as_json: bool, command: tuple[str, ...]) -> None:
    """Start an agent once without network and report what a recording of it would contain.

    A local stand-in for the model answers that there is nothing to do; all other requests are
    refused. No provider is contacted and nothing is billed. The agent works in the current folder.

    With a pack in place of a command, nothing is started: lists what the packed agent needs of a
    machine beside the pack (program, packages, variables by name), and what of it is here. Then
    which folders of the recording machine the pack names, for who is about to hand it on.

    \b
    stumble doctor -- claude -p "say hello"
    stumble doctor refund.stumble
    stumble doctor --json -- python my_agent.py
    """
    if (pack := _find_pack(command)) is not None:
        _examine_pack(pack, as_json or "--json" in command)
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


def _find_pack(command: tuple[str, ...]) -> Path | None:
    from stumble.packs.read_pack import is_pack

    alone = command and command[1:] in ((), ("--json",))
    return Path(command[0]) if alone and is_pack(Path(command[0])) else None


def _examine_pack(path: Path, as_json: bool) -> NoReturn:
    from stumble.packs.machine_paths import find_machine_paths
    from stumble.packs.pack_cache import open_packed_files
    from stumble.packs.pack_needs import check_needs
    from traces.tape.reader import read_tape, read_tape_lazily

    opened = open_packed_files(path)
    tape = next((read_tape_lazily(each).trajectory for each in opened.tapes), None)
    findings = tuple(check_needs(opened.manifest.needs, tape.workspace if tape else None))
    revealed = find_machine_paths(map(read_tape, opened.tapes), opened.texts)
    if as_json:
        needs = [
            {"what": each.what, "name": each.name, "here": each.here, "detail": each.detail}
            for each in findings
        ]
        root = opened.manifest.root_hash
        click.echo(
            json.dumps(
                {
                    "root_hash": root,
                    "made_by": opened.manifest.made_by,
                    "needs": needs,
                    "names": [
                        {"path": each.path, "kind": each.kind, "places": each.places}
                        for each in revealed
                    ],
                }
            )
        )
    else:
        for each in findings:
            detail = f" ({each.detail})" if each.detail else ""
            click.echo(f"{HERE_LABELS[each.here]:8}{each.what:12}{each.name}{detail}")
        for path_named in revealed:
            places = path_named.describe_places()
            click.echo(f"{'names':8}{path_named.kind:12}{path_named.path} ({places})")
        click.echo(f"{path}: sound, made by {opened.manifest.made_by}")
    missing = any(each.here is False for each in findings)
    raise SystemExit(ExitCode.FINDING if missing else ExitCode.OK)


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
