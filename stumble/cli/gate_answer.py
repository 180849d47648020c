"""`stumble gate --against`, from its options to its exit code."""

import json
from collections.abc import Mapping, Sequence
from typing import NoReturn, cast

import click

from scenarios.toml_reader import ScenarioError
from stumble.errors import ExitCode, UsageError
from stumble.experiments.gate_comparison import GateRequest, compare_candidates
from stumble.experiments.noninferiority import comparison_report
from stumble.experiments.noninferiority.arm_pairs import ArmFilter
from stumble.experiments.noninferiority.comparison import ArmComparison, combine_answers
from stumble.experiments.noninferiority.decision import ComparisonAnswer
from stumble.experiments.seals.analysis_terms import Measure
from stumble.gate.output_files import GateFiles
from traces.store.trace_store import TraceStore

ANSWER_EXITS: Mapping[ComparisonAnswer, ExitCode] = {
    "pass": ExitCode.OK,
    "fail": ExitCode.FINDING,
    "inconclusive": ExitCode.NOT_ENOUGH,
    "error": ExitCode.USAGE,
}


def parse_comparison_options(
    against: str | None,
    margin: float | None,
    measures: Sequence[str],
    alpha: float | None,
    require_seal: bool,
    which: Mapping[str, str | None],
) -> GateRequest:
    """Parse the options of a comparison. Raises UsageError for options of limits."""
    for name in ("op", "scenario"):
        if which[name] is not None:
            raise UsageError(f"--{name} is for limits: a comparison is of all faults of its arms")
    if which["by"] not in (None, "all"):
        raise UsageError("--by is for limits: a comparison is of all faults of its arms")
    arm_filter = ArmFilter(campaign=which["campaign"], agent=which["agent"], model=which["model"])
    return GateRequest(
        against=against,
        wanted=arm_filter,
        margin=margin,
        measures=cast(tuple[Measure, ...], tuple(dict.fromkeys(measures))),
        alpha=alpha,
        require_seal=require_seal,
    )


def answer_comparison(
    store: TraceStore, request: GateRequest, files: GateFiles, as_json: bool
) -> NoReturn:
    """Print the answer, write the files for CI services, and exit with its code."""
    comparisons, error, code = tuple[ArmComparison, ...](), None, ExitCode.USAGE
    try:
        comparisons = compare_candidates(store, request)
    except (UsageError, ScenarioError) as wrong:
        error = wrong.message if isinstance(wrong, UsageError) else str(wrong)
        code = wrong.exit_code if isinstance(wrong, UsageError) else ExitCode.USAGE
    else:
        code = ANSWER_EXITS[combine_answers(comparisons)]
    files.write(
        comparison_report.list_comparison_cases(comparisons),
        error or "nothing was compared",
        comparison_report.comparisons_to_markdown(comparisons, error),
    )
    _print_comparisons(comparisons, error, as_json)
    raise SystemExit(code)


def _print_comparisons(found: Sequence[ArmComparison], error: str | None, as_json: bool) -> None:
    answer = "error" if error else combine_answers(found)
    if as_json:
        checks = [comparison_report.comparison_to_dict(each) for each in found]
        click.echo(json.dumps({"answer": answer, "error": error, "checks": checks}))
    elif error is None:
        click.echo("\n".join(comparison_report.format_comparisons(found)))
    if error is not None:
        click.echo(f"stumble: ERROR: {error}", err=True)
