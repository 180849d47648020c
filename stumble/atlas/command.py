"""`stumble atlas`: numbers of published agent runs, recomputed from their files."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from stumble.errors import ExitCode, UsageError

if TYPE_CHECKING:
    import duckdb

    from stumble.atlas.sources import Source


ATLAS_OPTION = click.option(
    "--atlas",
    "folder",
    type=click.Path(file_okay=False, path_type=Path),
    help="Folder of the atlas; default: .stumble/atlas.",
)


@click.group()
def atlas() -> None:
    """Numbers of published agent runs: pass rates, half-lives, errors and recovery.

    Sources are public repositories, each read at one commit by a recipe. The atlas has rows of
    runs and of tool calls, without any text of them.

    \b
    stumble atlas sources
    stumble atlas build --from ~/clones
    stumble atlas sql pass_rates
    stumble atlas page -o atlas.html
    """


@atlas.command()
@click.option("--json", "as_json", is_flag=True, help="Print the recipes as JSON.")
def sources(as_json: bool) -> None:
    """List the sources: repository, commit, licence, content, and how to clone each."""
    from stumble.atlas.sources import SOURCES

    recipes = [source.RECIPE for source in SOURCES]
    if as_json:
        click.echo(json.dumps([recipe.to_dict() for recipe in recipes], indent=2))
        return
    for recipe in recipes:
        licence = recipe.licence or "no licence stated: derived rows only"
        click.echo(f"{recipe.name}: {recipe.describes}")
        click.echo(f"  {recipe.repository} @{recipe.commit[:8]}, {licence}")
        click.echo(f"  {recipe.derived}")
        click.echo(f"  left out: {recipe.left_out}")
        click.echo(f"  {recipe.clone_command}")


@atlas.command()
@click.argument("names", nargs=-1, metavar="[SOURCE]...")
@click.option(
    "--from",
    "clones",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    default=".",
    show_default="this folder",
    help="Folder that has the clones of the sources.",
)
@ATLAS_OPTION
@click.option("--json", "as_json", is_flag=True, help="Print what was read as JSON.")
def build(names: tuple[str, ...], clones: Path, folder: Path | None, as_json: bool) -> None:
    """Read sources from their clones, or from folders with their files, and write the rows.

    Without SOURCE all are read. A source that is missing, changed, or has another licence than
    its recipe is refused by name; the others are read, and the exit code is 1.

    \b
    stumble atlas build --from ~/clones
    stumble atlas build tau-airline who-and-when --from ~/clones
    """
    from stumble.atlas.build import build_sources
    from stumble.atlas.recipe import SourceRefused

    chosen = _choose_sources(names)
    refused = 0
    written = []
    for built in build_sources(chosen, clones, _find_atlas(folder)):
        if isinstance(built, SourceRefused):
            refused += 1
            click.echo(f"refused: {built}", err=True)
        elif as_json:
            written.append({"source": built.name, "runs": built.runs, "calls": built.calls})
        else:
            click.echo(f"{built.name}: {built.runs:,} runs, {built.calls:,} tool calls")
    if as_json:
        click.echo(json.dumps(written, indent=2))
    if refused:
        raise click.exceptions.Exit(ExitCode.FINDING)


@atlas.command("sql")
@click.argument("query", required=False)
@click.argument("parameters", nargs=-1, metavar="[KEY=VALUE]...")
@click.option("--list", "listing", is_flag=True, help="List the questions.")
@ATLAS_OPTION
@click.option("--json", "as_json", is_flag=True, help="Print rows as JSON.")
def ask(
    query: str | None,
    parameters: tuple[str, ...],
    listing: bool,
    folder: Path | None,
    as_json: bool,
) -> None:
    """Ask a question of an atlas, or run SQL over its relations `run` and `call`.

    The questions and views of a store answer here as well: half_life, hazard, error_episodes,
    kaplan_meier.

    \b
    stumble atlas sql --list
    stumble atlas sql implied_steps n=100
    stumble atlas sql "select model, avg(steps) from run group by all"
    """
    from stumble.atlas.query import list_atlas_questions, own_question_names, run_atlas_sql
    from stumble.cli.numbers.sql import print_sql_rows
    from stumble.cli.options import parse_option_pairs
    from traces.did_you_mean import suggest_nearest_name

    questions = list_atlas_questions()
    if listing:
        width = max(map(len, questions)) + 2
        for name in own_question_names():
            click.echo(f"  {name:{width}}{questions[name].help}")
        click.echo("and the questions of stumble sql --list that need no faults")
        return
    if not query:
        raise UsageError("no query: give SQL or a name; stumble atlas sql --list lists the names")
    if " " not in query.strip() and query not in {*questions, "run", "call"}:
        raise UsageError(f"no question {query!r}{suggest_nearest_name(query, questions)}")
    with _open_atlas(folder) as connection:
        try:
            names, rows = run_atlas_sql(connection, query, parse_option_pairs(parameters))
        except ValueError as error:
            raise UsageError(str(error)) from None
    print_sql_rows(names, rows, "json" if as_json else "table")


@atlas.command()
@click.option(
    "-o",
    "--output",
    type=click.Path(dir_okay=False, path_type=Path),
    required=True,
    help="HTML file to write.",
)
@ATLAS_OPTION
def page(output: Path, folder: Path | None) -> None:
    """Write the atlas as one HTML page that loads nothing from the network.

    \b
    stumble atlas page -o atlas.html
    """
    from stumble.atlas.build import list_built
    from stumble.atlas.page import build_atlas_page
    from stumble.report.html import render_report_html

    with _open_atlas(folder) as connection:
        built = build_atlas_page(connection, list_built(_find_atlas(folder)))
    output.write_text(render_report_html(built), encoding="utf-8")
    click.echo(f"wrote {output}")


def _choose_sources(names: tuple[str, ...]) -> "Sequence[Source]":
    from stumble.atlas.build import find_sources

    try:
        return find_sources(names)
    except ValueError as error:
        raise UsageError(str(error)) from None


def _find_atlas(folder: Path | None) -> Path:
    from stumble.user_data.paths import store_root

    return folder or store_root() / "atlas"


def _open_atlas(folder: Path | None) -> "duckdb.DuckDBPyConnection":
    from stumble.atlas.query import connect_atlas

    try:
        return connect_atlas(_find_atlas(folder))
    except ValueError as error:
        raise UsageError(str(error)) from None
