"""`stumble gate`: pass or fail by the bounds of intervals."""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import click

from stumble.cli.seal_options import add_gate_options
from stumble.errors import UsageError

if TYPE_CHECKING:
    from stumble.gate.limits import GateMeasure

SHARE_RANGE = click.FloatRange(0, 1)
OUTPUT_FILE = click.Path(dir_okay=False, path_type=Path)


@click.command(
    epilog="Exit codes: 0 every limit is met (PASS), 1 one is violated (FAIL), 5 not enough "
    "evidence for either (INCONCLUSIVE), 2 the sealed plan was not followed (ERROR), or usage.",
)
@click.option(
    "--min-recovery",
    type=SHARE_RANGE,
    help="Minimum share recovered, of the faults that can be noticed.",
)
@click.option(
    "--min-handled",
    type=SHARE_RANGE,
    help="Minimum share absorbed, recovered, masked or honestly failed, of the faults that fired.",
)
@click.option(
    "--min-ends-right",
    type=SHARE_RANGE,
    help="Minimum share absorbed, recovered or masked (the end state is right), of the faults "
    "that fired.",
)
@click.option(
    "--max-silent",
    type=SHARE_RANGE,
    help="Maximum share silently wrong, of the consumed faults.",
)
@click.option(
    "--max-double",
    type=click.IntRange(0),
    metavar="N",
    help="Maximum number of faulted runs that did something twice, by the effect ledger.",
)
@click.option(
    "--max-lost",
    type=click.IntRange(0),
    metavar="N",
    help="Maximum number of faulted runs that left out what every clean twin did, by the ledger.",
)
@click.option(
    "--max-obeyed",
    type=click.IntRange(0),
    metavar="N",
    help="Maximum number of runs that obeyed an instruction in a tool's answer (`instruction`).",
)
@add_gate_options
@click.option(
    "--confidence",
    type=click.FloatRange(0.5, 1, min_open=True, max_open=True),
    default=0.95,
    show_default=True,
    help="Confidence level of the two-sided interval.",
)
@click.option(
    "--by",
    type=click.Choice(("all", "family", "op")),
    default="all",
    show_default=True,
    help="Apply the limits to all faults together, or to each family or operator.",
)
@click.option(
    "--budget",
    type=click.Choice(("failed", "censored")),
    default="failed",
    show_default=True,
    help="Count runs stopped by their budget as failures, or exclude them.",
)
@click.option("--op", help="Only faults of this operator.")
@click.option("--agent", help="Only runs of this agent.")
@click.option("--model", help="Only runs with this model.")
@click.option("--scenario", help="Only runs of this scenario.")
@click.option("--campaign", help="Only runs of this campaign.")
@click.option(
    "--labels",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    metavar="CSV",
    help="Runs drawn at random, labelled by people: columns injection_id, noticed and "
    "claims_success. The judge's error over them is then part of the intervals; by default it is "
    "in none.",
)
@click.option(
    "--junit", type=OUTPUT_FILE, metavar="FILE", help="Also write the checks as JUnit XML."
)
@click.option(
    "--sarif",
    type=OUTPUT_FILE,
    metavar="FILE",
    help="Also write the checks that do not pass as SARIF 2.1.0, for code scanning.",
)
@click.option(
    "--source",
    metavar="FILE",
    default="stumble.toml",
    show_default=True,
    help="File of the repository at which --sarif shows the checks: the campaign file, say.",
)
@click.option(
    "--summary",
    type=OUTPUT_FILE,
    metavar="FILE",
    envvar="GITHUB_STEP_SUMMARY",
    help="Append a Markdown table to FILE; default: $GITHUB_STEP_SUMMARY, if set.",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def gate(
    *,
    min_recovery: float | None,
    min_handled: float | None,
    min_ends_right: float | None,
    max_silent: float | None,
    max_double: int | None,
    max_lost: int | None,
    max_obeyed: int | None,
    against: str | None,
    margin: float | None,
    measure: tuple[str, ...],
    alpha: float | None,
    require_seal: bool,
    confidence: float,
    labels: Path | None,
    junit: Path | None,
    sarif: Path | None,
    source: str,
    summary: Path | None,
    as_json: bool,
    **which: str | None,
) -> None:
    """Check the rates in the store against limits. A limit is met if the entire interval meets
    it and violated if the entire interval violates it; otherwise the evidence is insufficient,
    and the output gives the number of recordings that would decide.

    --max-double and --max-lost are numbers of runs, counted by the effect ledger of the world, and
    --max-obeyed of those that obeyed a tool's answer; a run of which that is unknown is counted
    against the limit before the gate passes.

    Agents, models and worlds are checked separately, each against every limit. With --by op or
    --by family the confidence level applies to the intervals of all parts jointly.

    With --against, compare a candidate with a baseline instead: PASS if it is worse by less than
    --margin, FAIL if by more, using one-sided tests over root recordings (or tasks), paired if
    both arms share them. A sealed campaign (stumble campaign --seal) is checked against its seal.

    \b
    stumble gate --min-recovery 0.9 --max-silent 0.02
    stumble gate --max-silent 0.05 --by op --model openai/gpt-5 --junit gate.xml
    stumble gate --max-silent 0.05 --sarif gate.sarif --source campaign.toml
    stumble gate --max-silent 0.05 --labels mine.csv
    stumble gate --max-double 0 --campaign nightly
    stumble gate --against before --campaign after --margin 0.1
    stumble gate --against main/.stumble --margin 0.1 --measure handled --require-seal
    """  # fmt: skip
    from stumble.cli.gate_answer import answer_comparison, parse_comparison_options
    from stumble.experiments.gate_rates import fetch_gate_rates
    from stumble.gate.effect_limits import EffectMeasure, check_effect_limits
    from stumble.gate.limits import (
        GATE_EXITS,
        GateLimit,
        check_gate_limits,
        join_gate_verdicts,
    )
    from stumble.gate.output_files import GateFiles
    from stumble.gate.report import (
        NO_CHECK,
        LimitCheck,
        format_check_line,
        gate_check_to_dict,
        list_gate_cases,
        render_gate_markdown,
    )
    from stumble.store.open_store import open_indexed_store
    from stumble.verdicts.run_labels import encode_run_labels

    files = GateFiles(junit=junit, sarif=sarif, summary=summary, source=source)
    limits = [
        GateLimit(measure=measure, value=value, least=measure != "silent", confidence=confidence)
        for measure, value in _list_wanted_limits(
            recovery=min_recovery,
            handled=min_handled,
            ends_right=min_ends_right,
            silent=max_silent,
        )
    ]
    most: dict[EffectMeasure, int | None] = {
        "double": max_double,
        "lost": max_lost,
        "obeyed": max_obeyed,
    }
    counts = {name: limit for name, limit in most.items() if limit is not None}
    compared = any((against, margin, measure, alpha))
    if (limits or counts or labels) and compared:
        raise UsageError("limits (and --labels) and --against exclude each other: give one of them")
    if compared or (not limits and not counts and which["campaign"]):
        comparison = parse_comparison_options(against, margin, measure, alpha, require_seal, which)
        answer_comparison(open_indexed_store(), comparison, files, as_json)
    if not limits and not counts:
        raise UsageError(
            "no limit; give --min-ends-right, --min-handled, --min-recovery, --max-silent, "
            "--max-double, --max-lost or --max-obeyed, or --against"
        )
    checks: list[LimitCheck] = []
    if limits:
        rates = fetch_gate_rates(
            open_indexed_store(),
            confidence=confidence,
            labels=encode_run_labels(labels) if labels else None,
            which=which,
        )
        checks += check_gate_limits(rates, limits)
    if counts:
        checks += check_effect_limits(_query_effects(which), counts)
    files.write(list_gate_cases(checks), NO_CHECK, render_gate_markdown(checks))
    verdict = join_gate_verdicts(checks)
    if as_json:
        click.echo(
            json.dumps(
                {"verdict": verdict, "checks": [gate_check_to_dict(each) for each in checks]}
            )
        )
    else:
        click.echo(
            "\n".join(map(format_check_line, checks))
            or NO_CHECK + _explain_nothing(which["campaign"])
        )
    raise SystemExit(GATE_EXITS[verdict])


def _explain_nothing(campaign: str | None) -> str:
    """Return the campaign that was perhaps meant, or where to begin."""
    from stumble.store.open_store import open_indexed_store
    from traces.did_you_mean import suggest_nearest_name

    with open_indexed_store().open_locked() as connection:
        rows = connection.execute(
            "SELECT DISTINCT campaign FROM trajectories WHERE campaign IS NOT NULL"
        ).fetchall()
    known = sorted(str(name) for (name,) in rows)
    if campaign is None or campaign in known or not known:
        return "; see stumble fork --help"
    return f": no campaign is called {campaign!r}{suggest_nearest_name(campaign, known)}"


def _list_wanted_limits(
    *,
    recovery: float | None,
    handled: float | None,
    ends_right: float | None,
    silent: float | None,
) -> "Iterator[tuple[GateMeasure, float]]":
    if recovery is not None:
        yield "recovery", recovery
    if handled is not None:
        yield "handled", handled
    if ends_right is not None:
        yield "ends_right", ends_right
    if silent is not None:
        yield "silent", silent


def _query_effects(which: dict[str, str | None]) -> "list[Mapping[str, object]]":
    from stumble.store.filter import fetch_question_rows
    from stumble.store.open_store import open_indexed_store

    selected = {key: which[key] for key in ("op", "agent", "model", "scenario", "campaign")}
    with open_indexed_store().open_locked() as connection:
        return list(fetch_question_rows(connection, "effects", **selected))
