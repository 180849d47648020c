"""`stumble report`: what a store says, as a page, a picture or a summary."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from stumble.exits import Wrong

if TYPE_CHECKING:
    import duckdb

    from stumble.report.values import Section
    from stumble.selection import Selection
    from traces.store import Store

CHARTS = ("rates", "outcomes", "survival", "pairs", "notice", "recovery_time")
FORMS = ("html", "png", "svg")


@click.command(
    short_help="Show what became of all faults, as a page or in the terminal.",
    epilog="The page is one file without network or tracking; it can be mailed or archived.",
)
@click.option(
    "-o",
    "--output",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Write a page (.html) or, with --chart, a picture (.svg, .png).",
)
@click.option("--format", "form", type=click.Choice(FORMS), help="Instead of the file's ending.")
@click.option("--chart", type=click.Choice(CHARTS), help="Only this chart, as a picture.")
@click.option("--campaign", metavar="NAME", help="Only the runs of this campaign.")
@click.option("--model", metavar="NAME", help="Only the runs of this model.")
@click.option("--op", metavar="NAME", help="Only the faults of this operator, with their controls.")
@click.option(
    "--store",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="Another store than that of this project.",
)
@click.option("--title", default="How the agent stood up", show_default=True)
@click.option(
    "--details",
    type=click.IntRange(min=0),
    default=200,
    show_default=True,
    help="How many injections the page shows side by side with their clean run.",
)
@click.option("--json", "as_json", is_flag=True, help="Print all figures as JSON.")
def report(
    output: Path | None,
    form: str | None,
    chart: str | None,
    campaign: str | None,
    model: str | None,
    op: str | None,
    store: Path | None,
    title: str,
    details: int,
    as_json: bool,
) -> None:
    """Show what became of faults: rates with intervals, survival over steps, time, cost, what
    was excluded, and each injection beside its clean run.

    \b
    stumble report
    stumble report -o report.html
    stumble report --model practice/retries --op digit -o digit.html
    stumble report --chart survival -o km.svg
    stumble report --json
    """
    form = _form(output, form, chart)
    from stumble import indexing
    from stumble.home import store_root
    from stumble.selection import Selection, selected
    from traces.store import Store

    opened = Store(store or store_root())
    for refused in indexing.refresh(opened):
        click.echo(f"warning: not indexed: {refused}", err=True)
    selection = Selection(campaign=campaign, model=model, op=op)
    with selected(opened, selection) as connection:
        if selection.words:
            _check(connection, selection)
        if chart:
            assert output is not None
            _picture(connection, chart, form, output)
        elif output is not None:
            _page(connection, opened, selection, title, details, output)
        else:
            _tell(connection, as_json)


def _form(output: Path | None, form: str | None, chart: str | None) -> str:
    """What to write; Wrong where options do not go together."""
    if output is None:
        if chart or form:
            raise Wrong("where to? A page or a picture needs -o FILE")
        return ""
    found = form or output.suffix.removeprefix(".").lower()
    if chart and found not in ("png", "svg"):
        raise Wrong(f"a chart is written as png or svg, not {found or 'without an ending'!r}")
    if not chart and found != "html":
        asked = "a picture of one chart needs --chart " + "|".join(CHARTS)
        raise Wrong(f"a page is written as html; {asked}")
    return found


def _check(connection: "duckdb.DuckDBPyConnection", selection: "Selection") -> None:
    """Wrong where nothing is of that name, with the names that there are."""
    from stumble.selection import known
    from traces.nearest import nearest

    for column, value in (
        ("campaign", selection.campaign),
        ("model", selection.model),
        ("op", selection.op),
    ):
        names = known(connection, column) if value is not None else ()
        if value is not None and value not in names:
            near = nearest(value, names) if names else ", nor any other"
            raise Wrong(f"the store has no {column} {value!r}{near}")


def _tell(connection: "duckdb.DuckDBPyConnection", as_json: bool) -> None:
    from rich.console import Console

    from stumble.report import terminal
    from stumble.report.gathering import gathered, struck

    sections = gathered(connection)
    if as_json:
        click.echo(terminal.as_json(sections, struck(connection)))
        return
    terminal.tell(sections, Console(width=None if sys.stdout.isatty() else 120))
    click.echo("All of it, with charts and every injection: stumble report -o report.html")


def _picture(connection: "duckdb.DuckDBPyConnection", chart: str, form: str, output: Path) -> None:
    from stumble.report.drawing import picture
    from stumble.report.gathering import gathered

    sections = gathered(connection)
    charts = [each for section in sections for each in section.charts if each.drawing == chart]
    if not charts:
        raise Wrong(f"there is nothing to draw for {chart}: {_why(sections, chart)}")
    output.write_bytes(picture(charts, form))
    click.echo(f"wrote {output}")


def _why(sections: "tuple[Section, ...]", chart: str) -> str:
    name = {"rates": "headline"}.get(chart, chart)
    said = (section.nothing for section in sections if section.name == name)
    return next((why for why in said if why), "no figure of it is known")


def _page(
    connection: "duckdb.DuckDBPyConnection",
    store: "Store",
    selection: "Selection",
    title: str,
    details: int,
    output: Path,
) -> None:
    from stumble.report.examples import examples
    from stumble.report.gathering import about, gathered, names, struck
    from stumble.report.page import Page, html
    from stumble.report.sides import Shelf

    page = Page(
        title=title,
        about=about(connection, selection),
        sections=gathered(connection),
        examples=examples(connection, names(connection), Shelf(store.tapes), details),
        injections=struck(connection),
    )
    written = html(page).encode("utf-8", "replace")
    output.write_bytes(written)
    shown = len(page.examples)
    of = f", {shown:,} of {page.injections:,} injections side by side" if page.injections else ""
    click.echo(f"wrote {output} ({len(written) / 1e6:.1f} MB{of})")
