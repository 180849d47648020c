"""Output of `stumble campaign` for a new seal and for the end of a sealed campaign."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import NoReturn

import click

from stumble.campaigns.spec import Campaign
from stumble.cli.gate_answer import ANSWER_EXITS
from stumble.experiments.noninferiority import comparison_report
from stumble.experiments.noninferiority.comparison import combine_answers, plan_looks
from stumble.experiments.noninferiority.decision import count_fewest_roots
from stumble.experiments.seals.analysis_terms import AnalysisTerms, parse_sealed_terms
from stumble.experiments.seals.seal_file import ExperimentSeal
from stumble.experiments.seals.seal_store import CampaignTable, make_seal
from stumble.experiments.sequential_run import SequentialResult
from stumble.gate.limits import GATE_EXITS, join_gate_verdicts
from stumble.gate.report import format_check_line, gate_check_to_dict
from traces.store.trace_store import TraceStore


def print_seal(
    campaign: Campaign, store: TraceStore, said: CampaignTable, folder: Path, as_json: bool
) -> None:
    """Seal a campaign, and print the seal, its looks and warnings."""
    seal, path = make_seal(campaign, said, folder, store)
    terms = parse_sealed_terms(seal.get_part("analysis"), folder)
    if as_json:
        click.echo(seal.to_text(), nl=False)
    else:
        click.echo("\n".join(_format_new_seal(seal, terms, campaign, path)))
    for line in _warn_too_few_roots(terms, _count_plan_roots(campaign)):
        click.echo(f"warning: {line}", err=True)


def _format_new_seal(
    seal: ExperimentSeal, terms: AnalysisTerms, campaign: Campaign, path: Path
) -> Iterator[str]:
    yield f"sealed {path.name}: {seal.short_digest}"
    yield (
        f"  {len(campaign.sources)} traces, {len(campaign.faults)} faults, "
        f"{len(campaign.seeds)} seeds, {campaign.reps} repetitions, judge version "
        f"{seal.get_part('judge')['version']}"
    )
    against = terms.against or "a baseline that stumble gate names"
    yield f"  {', '.join(terms.measures)} against {against}, margin {terms.margin:g}"
    for look in plan_looks(terms, _count_plan_roots(campaign)):
        yield (
            f"  look {look.number} of {look.of}: after {look.roots} roots, one-sided level "
            f"{look.level:.5f}, {look.spent:.5f} of alpha {terms.alpha:g} spent"
        )
    for part in ("agent", "world"):
        unfixed = seal.get_part(part)["unfixed"]
        if isinstance(unfixed, list) and unfixed:
            yield f"  not fixed, since they are no text: {', '.join(map(str, unfixed))}"
    yield f"run it with: stumble campaign {campaign.name}"


def _count_plan_roots(campaign: Campaign) -> int:
    """Count the roots of the plan; a task with two models is one root."""
    return len({source.name for source in campaign.sources})


def _warn_too_few_roots(terms: AnalysisTerms, roots: int) -> Iterator[str]:
    needed = count_fewest_roots(terms.margin, terms.alpha)
    if needed is None:
        yield f"margin {terms.margin:g} is too small for any number of root recordings"
    elif roots < needed:
        yield (
            f"{roots} roots: a candidate that does exactly what the baseline does passes margin "
            f"{terms.margin:g} from {needed} root recordings on; widen the margin or add traces"
        )


def print_campaign_end(gave: SequentialResult, as_json: bool) -> NoReturn:
    """Print the result of a campaign; exit with the code of what its looks decided, if any did."""
    comparisons, code = gave.found, gave.outcome.exit_code
    if comparisons:
        code = ANSWER_EXITS[combine_answers(comparisons)]
    elif gave.checks and gave.outcome.is_finished:
        code = GATE_EXITS[join_gate_verdicts(gave.checks)]
    if as_json:
        answer_part = {
            "answer": combine_answers(comparisons),
            "checks": [comparison_report.comparison_to_dict(each) for each in comparisons],
        }
        limit_part = {
            "verdict": join_gate_verdicts(gave.checks),
            "checks": [gate_check_to_dict(each) for each in gave.checks],
            "traces_left_out": gave.left_out,
        }
        decided = answer_part if comparisons else limit_part if gave.checks else {}
        click.echo(json.dumps(gave.outcome.to_dict() | decided))
    else:
        click.echo(
            "\n".join(
                [
                    *gave.outcome.to_lines(),
                    *comparison_report.format_comparisons(comparisons),
                    *map(format_check_line, gave.checks),
                    *_describe_skipped_traces(gave),
                ]
            )
        )
    raise SystemExit(code)


def _describe_skipped_traces(gave: SequentialResult) -> Iterator[str]:
    if gave.left_out:
        yield f"ended early: {gave.left_out} traces of the plan were not run"
