"""`stumble import`: bring in what others recorded."""

import json
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from stumble.exits import Exits, Wrong

if TYPE_CHECKING:
    from stumble.imports.bringing import Brought

SHOWN = 5
"""How many remarks on one file are printed."""
COHORT = Path(__file__).parents[2] / "scenarios" / "compiler" / "cohort.csv"
"""The published runs that come along."""


@click.command("import", short_help="Bring in what others recorded.")
@click.argument("paths", nargs=-1, type=click.Path(exists=True, path_type=Path))
@click.option(
    "--cohort",
    type=click.Choice(("paper",)),
    help="Published pipeline runs that come with stumble: the 15 of the RAMP paper.",
)
@click.option("--json", "as_json", is_flag=True, help="Print what became of each file as JSON.")
def import_(paths: tuple[Path, ...], cohort: str | None, as_json: bool) -> None:
    """Bring traffic, trajectories or pipeline scores of other tools into the store.

    Files are known by what they hold; a folder stands for all files in it. Traffic (vcrpy
    cassettes, HAR, flow files of mitmproxy) becomes tapes, without the secrets in it: show, replay
    and fork take them.
    Trajectories (tau-bench, mini-swe-agent, SWE-agent, OpenHands, Inspect logs, OpenTelemetry
    spans, also as OTLP), RAMP cohorts and tables of pipeline scores (CSV) become rows, and their
    source is kept in the store: what stands in them, secrets too, stays as it is. Importing twice
    adds nothing. A file that cannot be read is refused with its reason, and the others come in; the
    exit code is then 1.

    \b
    stumble import gpt-4o-airline.json.gz
    stumble import runs/*/*.traj.json tests/cassettes/
    stumble import --cohort paper
    """
    from stumble.home import store_root
    from stumble.imports.bringing import bring, files
    from stumble.progress import progress
    from traces.store import Store

    if cohort:
        paths = (*paths, COHORT)
    if not paths:
        raise Wrong("what to import? Give files, or --cohort paper")
    meant = files(paths)
    with progress("importing") as tell:
        brought = tuple(bring(Store(store_root()), meant, tell))
    if as_json:
        click.echo(json.dumps([_row(each) for each in brought], indent=2))
    else:
        for line in _table(brought):
            click.echo(line)
        for line in _troubles(brought):
            click.echo(line, err=True)
    if any(each.state == "refused" for each in brought):
        raise SystemExit(Exits.FINDING)


def _row(each: "Brought") -> dict[str, object]:
    return {
        "path": str(each.path),
        "state": each.state,
        "format": each.format,
        **each.counts,
        "remarks": [
            {"where": remark.where, "why": remark.why, "lost": remark.lost}
            for remark in each.remarks
        ],
        "why": each.why,
    }


def _table(brought: Iterable["Brought"]) -> Iterator[str]:
    """A line for each format: how many of its files, and what they hold."""
    files: dict[str, Counter[str]] = {}
    counts: dict[str, Counter[str]] = {}
    for each in brought:
        if each.format is not None:
            files.setdefault(each.format, Counter())[each.state] += 1
            counts.setdefault(each.format, Counter()).update(each.counts)
    for format, states in files.items():
        known = f" ({states['known']:,} known already)" if states["known"] else ""
        name = format.partition(" (")[0]
        total = states.total()
        yield f"{name}: {total:,} file{'' if total == 1 else 's'}{known}; {_said(counts[format])}"


def _said(counts: Counter[str]) -> str:
    said = [f"{n:,} {name.replace('_', ' ')}" for name, n in counts.items() if n]
    return ", ".join(said) or "nothing new"


def _troubles(brought: Iterable["Brought"]) -> Iterator[str]:
    for each in brought:
        if each.state == "refused":
            yield f"refused {each.path}: {each.why}"
        for remark in each.remarks[:SHOWN]:
            yield f"{'partly' if remark.lost else 'note'} {each.path}: {remark.where}: {remark.why}"
        if len(each.remarks) > SHOWN:
            yield f"  and {len(each.remarks) - SHOWN:,} more like these"
