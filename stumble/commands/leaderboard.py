"""`stumble leaderboard`: pipeline scores, cost, recovery and survival in one table."""

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import click

from stumble.exits import Wrong

if TYPE_CHECKING:
    from stumble.report.board import Board


@click.command(
    short_help="Compare agents and models by pipeline score, cost and recovery.",
    epilog="The same as SQL: the views leaderboard, pipeline_runs, completion, attribution.",
)
@click.option("--cohort", metavar="NAME", help="The cohort that AEI is against, for every row.")
@click.option(
    "--html",
    "page",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Write a page, one file that needs no network.",
)
@click.option(
    "--store",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="Another store than that of this project.",
)
@click.option("--title", default="Leaderboard", show_default=True)
@click.option("--json", "as_json", is_flag=True, help="Print all figures as JSON.")
def leaderboard(
    cohort: str | None, page: Path | None, store: Path | None, title: str, as_json: bool
) -> None:
    """Show each agent and model with its pipeline scores (MR, tier, AEI), cost, recovery rate,
    silent-wrong rate and implied survival, each with its interval or why there is none.

    \b
    stumble import --cohort paper
    stumble leaderboard
    stumble leaderboard --html board.html
    stumble leaderboard --cohort paper --json
    """
    from rich.console import Console

    from stumble import indexing
    from stumble.home import store_root
    from stumble.report import board, terminal
    from traces.nearest import nearest
    from traces.store import Store

    opened = Store(store or store_root())
    for refused in indexing.refresh(opened):
        click.echo(f"warning: not indexed: {refused}", err=True)
    with opened.reading() as connection:
        found = board.board(connection, cohort)
    names = tuple(str(each["cohort"]) for each in found.cohorts)
    if cohort is not None and cohort not in names:
        near = nearest(cohort, names) if names else "; stumble import --cohort paper brings one"
        raise Wrong(f"the store has no cohort {cohort!r}{near}")
    if page is not None:
        _write(found, title, page)
    elif as_json:
        click.echo(json.dumps(_plain(found), indent=2, ensure_ascii=False, default=str))
    elif not found.rows:
        click.echo(board.NOTHING)
    else:
        console = Console(width=None if sys.stdout.isatty() else 200)
        terminal.print_table(board.standings(found), console)
        for note in board.sections(found)[0].notes:
            console.print(note, style="dim", markup=False, highlight=False)
        click.echo("With charts: stumble leaderboard --html board.html")


def _plain(found: "Board") -> Mapping[str, object]:
    return {
        "rows": found.rows,
        "completion": found.completion,
        "attribution": found.attribution,
        "cohorts": found.cohorts,
    }


def _write(found: "Board", title: str, path: Path) -> None:
    from importlib.metadata import version

    from stumble.report.board import TERMS, sections
    from stumble.report.page import Page, html

    page = Page(
        title=title,
        about=(f"By stumble {version('stumble')}.",),
        sections=sections(found),
        terms=TERMS,
    )
    written = html(page).encode("utf-8", "replace")
    path.write_bytes(written)
    click.echo(f"wrote {path} ({len(written) / 1e6:.1f} MB)")
