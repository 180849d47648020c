"""`stumble check`: from an agent's command to a page of how it fails."""

import hashlib
import json
import re
import shlex
import sys
from collections.abc import Mapping
from contextlib import AbstractContextManager, ExitStack, redirect_stdout, suppress
from functools import partial
from pathlib import Path
from threading import Event
from typing import TYPE_CHECKING
from urllib.parse import urlencode

import click

from stumble.cli import options
from stumble.errors import UsageError, signal_to_exit_code

if TYPE_CHECKING:
    from stumble.check.result import CheckResult
    from stumble.runs.environment.worlds import WorldCommands
    from traces.store.trace_store import TraceStore

TASK_SLOT = "{task}"
_UNITS = {"": 1, "s": 1, "m": 60, "h": 3600}
_DURATION = re.compile(r"(\d+(?:\.\d+)?)(s|m|h)?")
OUTPUT_FILE = click.Path(dir_okay=False, writable=True, path_type=Path)


class Duration(click.ParamType[float]):
    """A time above 0, as `90`, `90s`, `5m` or `1h`; converts to seconds."""

    name = "duration"

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        """Return the seconds. Raises click.BadParameter for anything else."""
        if isinstance(value, float):
            return value
        found = _DURATION.fullmatch(str(value))
        seconds = float(found[1]) * _UNITS[found[2] or ""] if found else 0.0
        if seconds <= 0:
            self.fail(f"{value!r} is not a time as 90s, 5m or 1h", param, ctx)
        return seconds


@click.command(
    context_settings={"allow_interspersed_args": False},
    epilog="Exit codes: 0 nothing found, 1 a finding, 2 refused, 5 not enough evidence.",
)
@click.option(
    "--budget",
    type=Duration(),
    default="5m",
    show_default=True,
    metavar="TIME",
    help="Time for all: 90s, 5m, 1h.",
)
@click.option(
    "--dollars",
    type=click.FloatRange(0, min_open=True),
    metavar="USD",
    help="Cost limit in US dollars; refused if the price of a model is not known.",
)
@click.option(
    "--each",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Tasks, one a line, each in place of {task} in the command.",
)
@options.world_options
@click.option(
    "--yes",
    is_flag=True,
    help="Let the agent write outside of its copy in one recording; afterwards its tools are "
    "answered from that.",
)
@click.option("--live", is_flag=True, help="Let the agent write outside of its copy in every run.")
@click.option(
    "--command",
    "saved_command",
    metavar="COMMAND",
    help="Command of the agent, if none is given after --; for stumble.toml.",
)
@click.option(
    "--save",
    is_flag=True,
    help="Write stumble.toml, packs of the recordings, a scenario with the worst finding and a "
    "GitHub workflow, so that `stumble check` alone goes on; files that exist are left.",
)
@click.option("--name", help="Name of the campaign with the runs; default: one for this command.")
@click.option(
    "--open",
    "opens",
    is_flag=True,
    help="Open the page in the browser; it follows the runs, and stays until Ctrl-C.",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@click.option("--html", type=OUTPUT_FILE, metavar="FILE", help="Also write a report page.")
@click.option("--junit", type=OUTPUT_FILE, metavar="FILE", help="Also write JUnit XML.")
@click.option("--sarif", type=OUTPUT_FILE, metavar="FILE", help="Also write SARIF 2.1.0.")
@options.agent_command
def check(
    budget: float,
    dollars: float | None,
    each: Path | None,
    world_commands: "WorldCommands",
    yes: bool,
    live: bool,
    saved_command: str | None,
    save: bool,
    name: str | None,
    opens: bool,
    as_json: bool,
    html: Path | None,
    junit: Path | None,
    sarif: Path | None,
    command: tuple[str, ...],
) -> None:
    """Find how an agent fails: record it, inject the worst and most frequent faults into its tool
    calls, compare each run with clean runs, and print a sentence for each finding.

    Runs work in copies of the current folder. An agent that writes anywhere else (a request other
    than GET) is stopped before that, unless --yes or --live is given. No script is needed: a run
    is compared with clean runs by the files it leaves, the writes it sends and its final answer.

    The same command goes on where it stopped; its runs are a campaign for sql, report and ui.

    \b
    stumble check -- python my_agent.py
    stumble check --yes --budget 10m -- python my_agent.py
    stumble check --live --reset ./reset.sh --verify ./verify.sh -- python my_agent.py
    stumble check --each tasks.txt -- python my_agent.py {task}
    """
    command = options.check_agent_command(command or tuple(shlex.split(saved_command or "")))
    from stumble.check.recordings import digest_workspace, take_workspace
    from stumble.check.session import CheckSession
    from stumble.check.setup import CheckSetup
    from stumble.cli.inject_judge.campaign import show_campaign_progress
    from stumble.notices import print_notice
    from stumble.user_data.paths import prepare_ca_folder, store_root
    from traces.store.trace_store import TraceStore

    tasks = _list_tasks(each, command)
    store = TraceStore(store_root())
    workspace = take_workspace(store)
    identity = [list(tasks.values()), list(world_commands), yes, live, digest_workspace(workspace)]
    setup = CheckSetup(
        name=name or _name_check(identity),
        workspace=workspace,
        tasks=tasks,
        store=store,
        ca=prepare_ca_folder(),
        budget=budget,
        dollars=dollars,
        world=world_commands,
        live=live,
        yes=yes,
        confirm=partial(click.confirm, err=True)
        if sys.stdin.isatty() and sys.stderr.isatty()
        else None,
        report=print_notice,
        show=show_campaign_progress,
    )
    with ExitStack() as stack:
        if opens:
            stack.enter_context(_open_page(store, setup.name))
        with options.report_launch_failure(command):
            result = CheckSession(setup).run()
        _write_files(result, html, junit, sarif)
        _print_result(result, as_json)
        if save:
            given = {"budget": f"{budget:g}s", "dollars": dollars, "each": each and str(each)}
            _save(result, command, given | {"yes": yes, "live": live, "name": name}, world_commands)
        interrupted = result.stopped_by == "Ctrl-C"
        if opens and not interrupted:
            _wait_for_interrupt()
    raise SystemExit(signal_to_exit_code(2) if interrupted else result.code)


def _open_page(store: "TraceStore", name: str) -> AbstractContextManager[None]:
    """Return a context in which the first page of the UI shows this campaign."""
    from stumble.notices import print_notice
    from stumble.store.index import refresh_index
    from stumble.ui.serving.server import open_ui_during

    refresh_index(store)
    return open_ui_during(store, f"/?{urlencode({'campaign': name})}", print_notice)


def _wait_for_interrupt() -> None:
    click.echo("the page stays until Ctrl-C", err=True)
    with suppress(KeyboardInterrupt):
        Event().wait()


def _list_tasks(each: Path | None, command: tuple[str, ...]) -> Mapping[str, tuple[str, ...]]:
    """Return the command of each task. Raises UsageError if --each and {task} do not agree."""
    has_slot = any(TASK_SLOT in word for word in command)
    if each is None and has_slot:
        raise UsageError("{task} in the command: give the tasks with --each FILE, one a line")
    if each is None:
        return {Path(command[0]).name: command}
    if not has_slot:
        raise UsageError("--each needs {task} in the command")
    tasks = [line.strip() for line in each.read_text(encoding="utf-8").splitlines()]
    tasks = [task for task in dict.fromkeys(tasks) if task and not task.startswith("#")]
    if not tasks:
        raise UsageError(f"{each}: no task in it")
    return {task: tuple(word.replace(TASK_SLOT, task) for word in command) for task in tasks}


def _name_check(identity: list[object]) -> str:
    """Return the name of the campaign that the same command goes on with in the same folder.

    An edited agent is another one.
    """
    text = json.dumps([str(Path.cwd()), *identity])
    return f"check-{hashlib.sha256(text.encode()).hexdigest()[:8]}"


def _write_files(
    result: "CheckResult", html: Path | None, junit: Path | None, sarif: Path | None
) -> None:
    from stumble.check.page import NOTHING_FOUND, list_check_cases
    from stumble.gate.output_files import GateFiles

    files = GateFiles(junit=junit, sarif=sarif, summary=None, source="stumble.toml")
    nothing = "; ".join(result.notes) or NOTHING_FOUND
    files.write(list_check_cases(result), nothing, "")
    if html is not None:
        from stumble.cli.numbers.report import report

        with click.Context(report) as context:
            context.invoke(report, output=html, campaign=result.name, title=f"check {result.name}")


def _save(
    result: "CheckResult",
    command: tuple[str, ...],
    given: Mapping[str, object],
    world: "WorldCommands",
) -> None:
    """Write the files of the project, and a pack of the first recording of each task."""
    from stumble.check.saved_files import render_saved_files
    from stumble.cli.record_replay.pack import pack
    from stumble.notices import print_notice
    from stumble.project_setup.project_files import write_new_files

    commands = {"reset": world.reset, "verify": world.verify, "state": world.state}
    worst = next(iter(result.findings), None) if len(result.tapes) == 1 else None
    texts = render_saved_files(command, given, commands, worst)
    for path in texts:
        Path(path).parent.mkdir(parents=True, exist_ok=True)
    written, kept = write_new_files(Path.cwd(), texts)
    for number, tape in enumerate(result.tapes, 1):
        packed = Path.cwd() / f"{result.name}{f'-{number}' if number > 1 else ''}.stumble"
        if packed.exists():
            kept.append(packed)
            continue
        with click.Context(pack) as context, redirect_stdout(sys.stderr):
            context.invoke(pack, what=tape, output=packed)
    for words, paths in (("written", written), ("left as it is", kept)):
        for each in paths:
            print_notice(f"{words}: {each.relative_to(Path.cwd())}")


def _print_result(result: "CheckResult", as_json: bool) -> None:
    from stumble.check.page import check_to_dict, format_check_lines

    if as_json:
        click.echo(json.dumps(check_to_dict(result)))
        return
    click.echo("\n".join(format_check_lines(result)))
