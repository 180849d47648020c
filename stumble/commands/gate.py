"""`stumble gate`: pass or fail by the bound of an interval."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from stumble.exits import Exits, Wrong

if TYPE_CHECKING:
    from stumble.gate import Measure, Rate

SHARE = click.FloatRange(0, 1)
PATH = click.Path(dir_okay=False, path_type=Path)


@click.command(
    short_help="Pass or fail by what faults did, with the interval as the judge.",
    epilog="Exit codes: 0 every limit is kept, 1 one is broken, 5 not enough evidence for either.",
)
@click.option("--min-recovery", type=SHARE, help="Recovered of all faults that can be noticed.")
@click.option(
    "--min-handled",
    type=SHARE,
    help="Absorbed, recovered, masked or honestly failed, of all faults that fired.",
)
@click.option(
    "--min-ends-right",
    type=SHARE,
    help="Absorbed, recovered or masked, so that the end state is right, of all faults that fired.",
)
@click.option("--max-silent", type=SHARE, help="Silently wrong of all faults that were consumed.")
@click.option(
    "--confidence",
    type=click.FloatRange(0.5, 1, min_open=True, max_open=True),
    default=0.95,
    show_default=True,
    help="Of the two-sided interval.",
)
@click.option(
    "--by",
    type=click.Choice(("all", "family", "op")),
    default="all",
    show_default=True,
    help="Hold the limits for all faults together, or for each family or operator.",
)
@click.option(
    "--budget",
    type=click.Choice(("failed", "censored")),
    default="failed",
    show_default=True,
    help="Count runs that were ended by their budget as failures, or leave them out.",
)
@click.option("--op", help="Only faults of this operator.")
@click.option("--agent", help="Only runs of this agent.")
@click.option("--model", help="Only runs with this model.")
@click.option("--scenario", help="Only runs of this scenario.")
@click.option("--campaign", help="Only runs of this campaign.")
@click.option("--junit", type=PATH, metavar="FILE", help="Write the checks as JUnit XML, too.")
@click.option(
    "--summary",
    type=PATH,
    metavar="FILE",
    envvar="GITHUB_STEP_SUMMARY",
    help="Append a Markdown table; by default to $GITHUB_STEP_SUMMARY, where that is set.",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def gate(
    *,
    min_recovery: float | None,
    min_handled: float | None,
    min_ends_right: float | None,
    max_silent: float | None,
    confidence: float,
    junit: Path | None,
    summary: Path | None,
    as_json: bool,
    **which: str | None,
) -> None:
    """Judge what was recorded in the store against limits. A limit is kept where the whole
    interval keeps it and broken where the whole interval breaks it; between, there is not enough
    evidence, and the answer says how many more injections would decide.

    Agents, models and worlds are judged apart, each against every limit. With --by op or --by
    family the intervals of all parts hold together with the confidence that is given.

    \b
    stumble gate --min-recovery 0.9 --max-silent 0.02
    stumble gate --max-silent 0.05 --by op --model openai/gpt-5 --junit gate.xml
    """  # fmt: skip
    from stumble.gate import Limit, checks, overall
    from stumble.gatereport import junit as as_junit
    from stumble.gatereport import line, markdown, plain

    limits = [
        Limit(measure=measure, value=value, least=measure != "silent", confidence=confidence)
        for measure, value in _wanted(
            recovery=min_recovery,
            handled=min_handled,
            ends_right=min_ends_right,
            silent=max_silent,
        )
    ]
    if not limits:
        raise Wrong(
            "no limit; give --min-ends-right, --min-handled, --min-recovery or --max-silent"
        )
    found = checks(_rates(confidence, which), limits)
    if junit:
        junit.write_text(as_junit(found), encoding="utf-8")
    if summary:
        with summary.open("a", encoding="utf-8") as file:
            file.write(markdown(found))
    verdict = overall(found)
    if as_json:
        click.echo(json.dumps({"verdict": verdict, "checks": [plain(each) for each in found]}))
    else:
        click.echo("\n".join(map(line, found)) or "no fault was injected; see stumble fork --help")
    raise SystemExit({"pass": Exits.OK, "fail": Exits.FINDING}.get(verdict, Exits.NOT_ENOUGH))


def _wanted(
    *,
    recovery: float | None,
    handled: float | None,
    ends_right: float | None,
    silent: float | None,
) -> "Iterator[tuple[Measure, float]]":
    if recovery is not None:
        yield "recovery", recovery
    if handled is not None:
        yield "handled", handled
    if ends_right is not None:
        yield "ends_right", ends_right
    if silent is not None:
        yield "silent", silent


def _rates(confidence: float, which: dict[str, str | None]) -> "list[Rate]":
    from stumble import indexing
    from stumble.gate import Rate
    from stumble.home import store_root
    from traces.sql import ask
    from traces.store import Store

    store = Store(store_root())
    for refused in indexing.refresh(store):
        click.echo(f"warning: not indexed: {refused}", err=True)
    with store.reading() as connection:
        answer = ask(connection, "gate", confidence=confidence, **which)
        names = [column[0] for column in answer.description or ()]
        return [Rate(**dict(zip(names, row, strict=True))) for row in answer.fetchall()]
