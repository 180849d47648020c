"""`stumble report`: the results in a store, as an HTML page, a chart or a terminal summary."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from stumble.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Callable

    import duckdb

    from stumble.report.html import ReportPage
    from stumble.report.model import ReportSection
    from stumble.store.filter import ReportRow, StoreFilter
    from traces.store.trace_store import TraceStore

CHART_NAMES = ("rates", "outcomes", "survival", "pairs", "notice", "recovery_time")
REPORT_FORMS = ("html", "png", "svg")


@click.command(
    epilog="The page is a single file that loads nothing from the network.",
)
@click.option(
    "-o",
    "--output",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Write an HTML page (.html) or, with --chart, an image (.svg, .png).",
)
@click.option(
    "--format",
    "form",
    type=click.Choice(REPORT_FORMS),
    help="File format; default: by the extension of --output.",
)
@click.option("--chart", type=click.Choice(CHART_NAMES), help="Write only this chart, as an image.")
@click.option("--campaign", metavar="NAME", help="Only the runs of this campaign.")
@click.option("--model", metavar="NAME", help="Only the runs of this model.")
@click.option("--op", metavar="NAME", help="Only faults of this operator, with their controls.")
@click.option(
    "--store",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="Store to read; default: the store of this project.",
)
@click.option(
    "--title", default="Fault recovery report", show_default=True, help="Title of the page."
)
@click.option(
    "--details",
    type=click.IntRange(min=0),
    default=200,
    show_default=True,
    help="Maximum number of injections shown next to their clean run.",
)
@click.option(
    "--labels",
    "labelled",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    metavar="CSV",
    help="Runs drawn at random, labelled by people: columns injection_id, noticed and "
    "claims_success. Adds the rates behind the judge's own error.",
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
    labelled: Path | None,
    as_json: bool,
) -> None:
    """Report the results of faults: rates with intervals, survival over steps, time, cost,
    exclusions, and each injection next to its clean run.

    \b
    stumble report
    stumble report -o report.html
    stumble report --model practice/retries --op digit -o digit.html
    stumble report --chart survival -o km.svg
    stumble report --json
    """
    form = _choose_report_form(output, form, chart)
    from stumble.experiments.unfinished_plans import find_unfinished_plans
    from stumble.report.collect import (
        collect_sections,
        count_report_injections,
        make_agent_naming,
    )
    from stumble.store.filter import StoreFilter, open_filtered_store
    from stumble.store.open_store import open_indexed_store
    from stumble.verdicts.run_labels import encode_run_labels

    labels = encode_run_labels(labelled) if labelled else None
    opened = open_indexed_store(store)
    selection = StoreFilter(campaign=campaign, model=model, op=op)
    unfinished = find_unfinished_plans(opened, campaign)
    with open_filtered_store(opened, selection) as connection:
        if selection.description:
            _check_report_selection(connection, selection)
        name = make_agent_naming(connection)
        sections = collect_sections(connection, name, unfinished, labels)
        if output is None:
            _print_report(sections, count_report_injections(connection), as_json)
        elif chart:
            _write_chart_file(sections, chart, form, output)
        else:
            page = _make_report_page(connection, opened, selection, sections, name, title, details)
            _write_report_page(page, output)


def _choose_report_form(output: Path | None, form: str | None, chart: str | None) -> str:
    """Return the file format, "" for the terminal. Raises UsageError if options conflict."""
    if output is None:
        if chart or form:
            raise UsageError("--format and --chart need -o FILE")
        return ""
    chosen = form or output.suffix.removeprefix(".").lower()
    if chart and chosen not in ("png", "svg"):
        raise UsageError(f"a chart is written as png or svg, not {chosen or 'without extension'!r}")
    if not chart and chosen != "html":
        chart_hint = "an image of one chart needs --chart " + "|".join(CHART_NAMES)
        raise UsageError(f"a page is written as html; {chart_hint}")
    return chosen


def _check_report_selection(
    connection: "duckdb.DuckDBPyConnection", selection: "StoreFilter"
) -> None:
    """Raise UsageError, with suggestions, if the store lacks a selected name."""
    from stumble.store.filter import list_column_values
    from traces.did_you_mean import suggest_nearest_name

    for column, value in (
        ("campaign", selection.campaign),
        ("model", selection.model),
        ("op", selection.op),
    ):
        names = list_column_values(connection, column) if value is not None else ()
        if value is not None and value not in names:
            near = suggest_nearest_name(value, names) if names else " and no other"
            raise UsageError(f"the store has no {column} {value!r}{near}")


def _print_report(sections: "tuple[ReportSection, ...]", injections: int, as_json: bool) -> None:
    from rich.console import Console

    from stumble.report import terminal

    if as_json:
        click.echo(terminal.report_to_json(sections, injections))
        return
    terminal.print_report_sections(sections, Console(width=None if sys.stdout.isatty() else 120))
    click.echo("Full report with charts and every injection: stumble report -o report.html")


def _write_chart_file(
    sections: "tuple[ReportSection, ...]", chart: str, form: str, output: Path
) -> None:
    from stumble.report.charting.render import render_picture

    charts = [each for section in sections for each in section.charts if each.drawing == chart]
    if not charts:
        raise UsageError(f"no data to draw for {chart}: {_explain_empty_chart(sections, chart)}")
    output.write_bytes(render_picture(charts, form))
    click.echo(f"wrote {output}")


def _explain_empty_chart(sections: "tuple[ReportSection, ...]", chart: str) -> str:
    name = {"rates": "headline"}.get(chart, chart)
    reasons = (section.nothing for section in sections if section.name == name)
    return next((why for why in reasons if why), "no figure is known")


def _make_report_page(
    connection: "duckdb.DuckDBPyConnection",
    store: "TraceStore",
    selection: "StoreFilter",
    sections: "tuple[ReportSection, ...]",
    name: "Callable[[ReportRow], str]",
    title: str,
    details: int,
) -> "ReportPage":
    from stumble.report.collect import count_report_injections, describe_report_scope
    from stumble.report.examples import build_injection_examples
    from stumble.report.html import ReportPage
    from stumble.report.side_by_side import StoreTapeCache

    return ReportPage(
        title=title,
        about=describe_report_scope(connection, selection),
        sections=sections,
        examples=build_injection_examples(connection, name, StoreTapeCache(store.tapes), details),
        injections=count_report_injections(connection),
    )


def _write_report_page(page: "ReportPage", output: Path) -> None:
    from stumble.report.html import render_report_html

    written = render_report_html(page).encode("utf-8", "replace")
    output.write_bytes(written)
    shown = len(page.examples)
    of = f", {shown:,} of {page.injections:,} injections side by side" if page.injections else ""
    click.echo(f"wrote {output} ({len(written) / 1e6:.1f} MB{of})")
