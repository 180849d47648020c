"""`stumble import`: import recordings made by other tools."""

import json
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from stumble.errors import ExitCode, UsageError

if TYPE_CHECKING:
    from stumble.imports.import_files import ImportedFile

SHOWN_REMARKS = 5
"""Maximum number of remarks printed per file."""
SHOWN_OTHERS = 3
"""Maximum number of names printed of files that were found in a folder, and are no traces."""


@click.command("import")
@click.argument("paths", nargs=-1, type=click.Path(exists=True, allow_dash=True, path_type=Path))
@click.option(
    "--cohort",
    type=click.Choice(("paper",)),
    help="Import the published pipeline runs shipped with stumble: the 15 of the RAMP paper.",
)
@click.option(
    "--mine",
    is_flag=True,
    help="Import the sessions that coding agents keep in this home folder, after a list of them.",
)
@click.option(
    "--replace",
    is_flag=True,
    help="Let these files replace what the store knows of their runs, also with an older state.",
)
@click.option("--json", "as_json", is_flag=True, help="Print the result for each file as JSON.")
def import_command(
    paths: tuple[Path, ...], cohort: str | None, mine: bool, replace: bool, as_json: bool
) -> None:
    """Import traffic, trajectories or pipeline scores of other tools into the store.

    Formats are detected by content; a folder or zip means all files in it, a Parquet file its
    rows, - standard input. Traffic (vcrpy cassettes, HAR, mitmproxy flow files, mock servers)
    becomes tapes, which show, replay and fork accept. Trajectories
    (tau-bench, mini-swe-agent, SWE-agent, OpenHands, Inspect logs, traces of Langfuse, LangSmith
    and MLflow, OpenTelemetry spans, also as OTLP, sessions of coding agents, and more:
    docs/formats.md), RAMP cohorts and tables of pipeline scores (CSV) become rows, with a copy of
    their source in the store. Secrets are redacted everywhere. A run is known by its content: a
    copy, an excerpt or another layout of a file adds nothing, and a file that grew replaces what
    grew. A file or run that cannot be read is refused with a reason, the others are imported, and
    the exit code is 1 if a file was refused. `stumble forget` removes imported runs.

    \b
    stumble import gpt-4o-airline.json.gz
    stumble import runs/*/*.traj.json tests/cassettes/
    stumble import ~/.claude/projects ~/.codex/sessions
    stumble import --cohort paper
    """
    from stumble.imports.import_files import import_recordings, list_import_files
    from stumble.terminal_progress import show_terminal_progress
    from stumble.user_data.paths import store_root
    from traces.store.trace_store import TraceStore

    if cohort:
        from stumble.pipeline.forecast import COHORT_FILE

        paths = (*paths, COHORT_FILE)
    if mine:
        paths = (*paths, *_confirm_session_folders())
    if not paths:
        raise UsageError("nothing to import: give files, --mine or --cohort paper")
    files = list_import_files(paths)
    if not files:
        raise UsageError(f"no file in {', '.join(map(str, paths))}")
    with show_terminal_progress("importing") as tell:
        store = TraceStore(store_root())
        imported = tuple(import_recordings(store, files, tell, replace=replace))
    others = [each for each in imported if each.is_unknown and each.path not in paths]
    imported = tuple(each for each in imported if each not in others)
    if as_json:
        click.echo(json.dumps([_imported_file_to_dict(each) for each in imported], indent=2))
    else:
        for line in _format_import_table(imported):
            click.echo(line)
        for line in _list_import_troubles(imported):
            click.echo(line, err=True)
    if others:
        names = ", ".join(each.path.name for each in others[:SHOWN_OTHERS])
        plural = "" if len(others) == 1 else "s"
        click.echo(f"{len(others):,} other file{plural} ({names}): {others[0].why}", err=True)
    if not imported or any(each.state == "refused" for each in imported):
        raise SystemExit(ExitCode.FINDING)


def _confirm_session_folders() -> Iterator[Path]:
    """Yield the folders in which coding agents keep sessions here, after asking at a terminal."""
    from stumble.imports.import_files import list_import_files
    from stumble.imports.session_folders import find_session_folders

    folders = find_session_folders()
    if not folders:
        raise UsageError("no coding agent that is known here keeps sessions in this home folder")
    for folder in folders:
        click.echo(f"{folder}: {len(list_import_files([folder])):,} files", err=True)
    if sys.stdin.isatty():
        click.confirm("Import them, without their secrets?", default=True, abort=True, err=True)
    yield from folders


def _imported_file_to_dict(each: "ImportedFile") -> dict[str, object]:
    return {
        "path": str(each.path),
        "state": each.state,
        "format": each.format,
        **each.counts,
        "runs": dict(each.runs),
        "remarks": [
            {"where": remark.where, "why": remark.why, "lost": remark.lost}
            for remark in each.remarks
        ],
        "why": each.why,
    }


def _format_import_table(brought: Iterable["ImportedFile"]) -> Iterator[str]:
    """Yield a line for each format: number of files and imported items."""
    files: dict[str, Counter[str]] = {}
    counts: dict[str, Counter[str]] = {}
    runs: dict[str, Counter[str]] = {}
    for each in brought:
        if each.format is not None:
            files.setdefault(each.format, Counter())[each.state] += 1
            counts.setdefault(each.format, Counter()).update(each.counts)
            runs.setdefault(each.format, Counter()).update(each.runs)
    for format, states in files.items():
        known = f" ({states['known']:,} known already)" if states["known"] else ""
        name = format.partition(" (")[0]
        total = states.total()
        yield (
            f"{name}: {total:,} file{'' if total == 1 else 's'}{known}; "
            f"{_format_import_counts(counts[format])}{_format_run_states(runs[format])}"
        )


def _format_run_states(runs: Counter[str]) -> str:
    """Return how many runs were known already, if some were and others were not."""
    states = {
        "replaced an older state": runs["grown"],
        "got more facts": runs["updated"],
        "were known": runs["known"],
    }
    parts = [f"{n:,} {what}" for what, n in states.items() if n]
    return f" (of the runs {', '.join(parts)})" if parts else ""


def _format_import_counts(counts: Counter[str]) -> str:
    parts = [f"{n:,} {name.replace('_', ' ')}" for name, n in counts.items() if n]
    return ", ".join(parts) or "nothing new"


def _list_import_troubles(brought: Iterable["ImportedFile"]) -> Iterator[str]:
    for each in brought:
        if each.state == "refused":
            yield f"refused {each.path}: {each.why}"
        for remark in each.remarks[:SHOWN_REMARKS]:
            yield f"{'partly' if remark.lost else 'note'} {each.path}: {remark.where}: {remark.why}"
        if len(each.remarks) > SHOWN_REMARKS:
            yield f"  and {len(each.remarks) - SHOWN_REMARKS:,} more like these"
