"""`stumble drift`: what changed in the last days, with intervals, and named only if significant."""

import json
import re

import click

from stumble.errors import ExitCode, UsageError


@click.command(
    epilog="Exit codes: 0 nothing changed significantly, 1 something did (with --alert, a change "
    "for the worse), 5 no window has enough runs, 2 usage.",
)
@click.option(
    "--since", default="7d", show_default=True, metavar="AGE", help="Recent window: 7d, 12h, 2w."
)
@click.option(
    "--against", default="28d", show_default=True, metavar="AGE", help="The window before it."
)
@click.option(
    "--at", metavar="TIME", help="End of the recent window, in UTC; default: the newest run."
)
@click.option("--agent", help="Only runs of this agent.")
@click.option("--model", help="Only runs with this model.")
@click.option(
    "--alpha",
    type=click.FloatRange(0, 1, min_open=True, max_open=True),
    default=0.05,
    show_default=True,
    help="A change is significant if its p-value, adjusted for all that is tested, is below this.",
)
@click.option("--alert", is_flag=True, help="Exit with 1 only for a change for the worse.")
@click.option(
    "--weeks", type=click.IntRange(0), default=0, help="Also print so many weeks, each by itself."
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def drift(
    since: str,
    against: str,
    at: str | None,
    agent: str | None,
    model: str | None,
    alpha: float,
    alert: bool,
    weeks: int,
    as_json: bool,
) -> None:
    """Compare the last days with those before: error rates and shares of tools, failed and
    unfinished runs, half-life, recovery and silent failures, cost, tokens, seconds and steps.

    Every number has its interval. A change is named only if it is significant after Holm's
    adjustment for all that is tested at once.

    \b
    stumble drift --since 7d --against 28d
    stumble drift --since 1d --against 14d --agent support --alert || page-somebody
    stumble drift --weeks 8 --json
    """
    from stumble.report.window_changes import (
        find_changes,
        format_changes,
        format_weeks,
        is_comparable,
    )
    from stumble.store.filter import fetch_question_rows
    from stumble.store.open_store import open_indexed_store

    days = {"since": _parse_days("--since", since), "against": _parse_days("--against", against)}
    with open_indexed_store().open_locked() as connection:
        import duckdb

        try:
            rows = fetch_question_rows(connection, "drift", **days, at=at, agent=agent, model=model)
        except duckdb.ConversionException:
            raise UsageError(f"--at {at!r}: write a time as 2026-11-24 12:00") from None
        by_week = (
            fetch_question_rows(connection, "drift_weeks", weeks=weeks, agent=agent, model=model)
            if weeks
            else ()
        )
    changes = find_changes(rows, alpha)
    if as_json:
        report = {"alpha": alpha, **days, "rows": rows, "changes": changes, "weeks": by_week}
        click.echo(json.dumps(report, default=str))
    else:
        click.echo("\n".join(format_changes(rows, changes, since, against)))
        for line in format_weeks(by_week):
            click.echo(line)
    if not is_comparable(rows):
        raise SystemExit(ExitCode.NOT_ENOUGH)
    alarming = [each for each in changes if each["worse"]] if alert else changes
    raise SystemExit(ExitCode.FINDING if alarming else ExitCode.OK)


def _parse_days(option: str, text: str) -> float:
    found = re.fullmatch(r"(\d+(?:\.\d+)?)([hdw])", text)
    if found is None or float(found[1]) == 0:
        raise UsageError(f"{option} {text!r}: write an age as 12h, 7d or 2w")
    return float(found[1]) * {"h": 1 / 24, "d": 1.0, "w": 7.0}[found[2]]
