"""`stumble leaderboard`: pipeline scores, cost, recovery and survival in one table."""

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import click

from stumble.errors import UsageError

if TYPE_CHECKING:
    from stumble.pipeline.leaderboard import LeaderboardRows


@click.command(
    epilog="Same data in SQL: views leaderboard, pipeline_runs, completion, attribution.",
)
@click.option("--cohort", metavar="NAME", help="Reference cohort of AEI, for every row.")
@click.option(
    "--html",
    "page",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Write an HTML page, a single file that loads nothing from the network.",
)
@click.option(
    "--store",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="Store to read; default: the store of this project.",
)
@click.option("--title", default="Leaderboard", show_default=True, help="Title of the page.")
@click.option("--json", "as_json", is_flag=True, help="Print all figures as JSON.")
def leaderboard(
    cohort: str | None, page: Path | None, store: Path | None, title: str, as_json: bool
) -> None:
    """Rank agents and models by pipeline scores (MR, tier, AEI), with cost, recovery rate,
    silent-wrong rate and implied survival; each with its interval or the reason it is missing.

    \b
    stumble import --cohort paper
    stumble leaderboard
    stumble leaderboard --html board.html
    stumble leaderboard --cohort paper --json
    """
    from rich.console import Console

    from stumble.pipeline import leaderboard
    from stumble.report import terminal
    from stumble.store.open_store import open_indexed_store
    from traces.did_you_mean import suggest_nearest_name

    opened = open_indexed_store(store)
    with opened.open_locked() as connection:
        data = leaderboard.read_leaderboard(connection, cohort)
    names = tuple(str(each["cohort"]) for each in data.cohorts)
    if cohort is not None and cohort not in names:
        near = (
            suggest_nearest_name(cohort, names)
            if names
            else "; stumble import --cohort paper imports one"
        )
        raise UsageError(f"the store has no cohort {cohort!r}{near}")
    if page is not None:
        _write_leaderboard_page(data, title, page)
    elif as_json:
        click.echo(
            json.dumps(_leaderboard_to_dict(data), indent=2, ensure_ascii=False, default=str)
        )
    elif not data.rows:
        click.echo(leaderboard.NO_PIPELINE_RUNS)
    else:
        console = Console(width=None if sys.stdout.isatty() else 200)
        for table in leaderboard.build_standings_tables(data):
            terminal.print_report_table(table, console)
        for note in leaderboard.build_leaderboard_sections(data)[0].notes:
            console.print(note, style="dim", markup=False, highlight=False)
        click.echo("With charts: stumble leaderboard --html board.html")


def _leaderboard_to_dict(found: "LeaderboardRows") -> Mapping[str, object]:
    return {
        "rows": found.rows,
        "completion": found.completion,
        "attribution": found.attribution,
        "cohorts": found.cohorts,
    }


def _write_leaderboard_page(found: "LeaderboardRows", title: str, path: Path) -> None:
    from importlib.metadata import version

    from stumble.pipeline.leaderboard import LEADERBOARD_TERMS, build_leaderboard_sections
    from stumble.pipeline.leaderboard_charts import LEADERBOARD_CHARTS
    from stumble.report.html import ReportPage, render_report_html

    page = ReportPage(
        title=title,
        about=(f"By stumble {version('stumble')}.",),
        sections=build_leaderboard_sections(found),
        terms=LEADERBOARD_TERMS,
        drawers=LEADERBOARD_CHARTS,
    )
    written = render_report_html(page).encode("utf-8", "replace")
    path.write_bytes(written)
    click.echo(f"wrote {path} ({len(written) / 1e6:.1f} MB)")
