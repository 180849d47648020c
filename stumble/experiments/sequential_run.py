"""A campaign with several looks: it ends at the first look that decides.

Before each look only the runs of the first roots of the plan are made: a new root decides more than
further runs of a known one. Runs left out by a decision are never made by the same command: they
would not change the answer. What a look compares is a seal's arms, or a limit of `gate`.
"""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from msgspec import Struct

from stumble.campaigns.results import CampaignResult
from stumble.campaigns.runner import CampaignDisplay, run_campaign_session
from stumble.campaigns.spec import Campaign, TraceSource
from stumble.campaigns.worker_plan import WorkerPlan
from stumble.errors import UsageError
from stumble.experiments.gate_comparison import GateRequest, compare_candidates
from stumble.experiments.gate_rates import fetch_gate_rates
from stumble.experiments.noninferiority.arm_pairs import ArmFilter
from stumble.experiments.noninferiority.comparison import ArmComparison, combine_answers
from stumble.experiments.seals.alpha_spending import compute_look_levels
from stumble.experiments.seals.analysis_terms import AnalysisTerms, parse_sealed_terms
from stumble.experiments.seals.kept_verdicts import keep_verdicts
from stumble.experiments.seals.plan_progress import PlanUnit, compute_look_sizes, find_plan_units
from stumble.experiments.seals.seal_store import find_seal
from stumble.gate.limits import GateCheck, GateLimit, check_gate_limits, join_gate_verdicts
from traces.store.trace_store import TraceStore

type SessionRunner = Callable[[Sequence[TraceSource] | None], CampaignResult]
"""Runs these sources of a campaign, or all."""

LIMIT_LOOKS = (0.2, 0.4, 0.6, 0.8, 1.0)
"""Looks of `--until decided`, as fractions of the roots."""
CONFIDENCE = 0.95
"""Confidence of `--until decided` over all looks, the default of a gate."""


class SequentialResult(Struct, frozen=True, kw_only=True):
    """The result of a campaign, and of what was decided at its looks, if it has any."""

    outcome: CampaignResult
    found: Sequence[ArmComparison] = ()
    checks: Sequence[GateCheck] = ()
    """The limits of `--until decided`, at the last look."""
    left_out: int = 0
    """Number of traces not run because of an early decision."""


def run_sealed_campaign(
    campaign: Campaign,
    store: TraceStore,
    table: Mapping[str, object],
    folder: Path,
    *,
    ca: Path,
    workers: WorkerPlan,
    display: CampaignDisplay,
) -> SequentialResult:
    """Run a campaign up to the deciding look of its seal; see `run_campaign_session`."""

    def run(only: Sequence[TraceSource] | None) -> CampaignResult:
        return run_campaign_session(
            campaign, store, table, folder, ca=ca, workers=workers, display=display, only=only
        )

    seal = find_seal(campaign.name, folder, store) if campaign.seal else None
    terms = parse_sealed_terms(seal.get_part("analysis"), folder) if seal else None
    if terms is None or terms.against is None:
        result = SequentialResult(outcome=run(None))
    else:
        result = _run_sealed_looks(campaign, store, terms, run, display.warn)
    if seal:
        keep_verdicts(seal, folder, store)
    return result


def _run_sealed_looks(
    campaign: Campaign,
    store: TraceStore,
    terms: AnalysisTerms,
    run: SessionRunner,
    warn: Callable[[str], object],
) -> SequentialResult:
    comparisons: tuple[ArmComparison, ...] = ()

    def is_decided(_: int) -> bool:
        nonlocal comparisons
        try:
            comparisons = compare_candidates(
                store, GateRequest(wanted=ArmFilter(campaign=campaign.name))
            )
        except UsageError as wrong:
            warn(f"the campaign cannot end early: {wrong.message}")
            return False
        return combine_answers(comparisons) in ("pass", "fail", "error")

    outcome, left_out = _run_looks(campaign, store, terms.looks, run, is_decided)
    found = comparisons if outcome.is_finished else ()
    return SequentialResult(outcome=outcome, found=found, left_out=left_out)


def run_until_decided(
    campaign: Campaign,
    store: TraceStore,
    table: Mapping[str, object],
    folder: Path,
    max_silent: float,
    *,
    ca: Path,
    workers: WorkerPlan,
    display: CampaignDisplay,
) -> SequentialResult:
    """Run a campaign until `gate --max-silent` is met or violated; see `run_campaign_session`.

    It looks after each fifth of the roots. The looks share the error of one gate (Pocock's
    spending), so each has a wider interval than a gate that looks once.
    """
    levels = compute_look_levels(LIMIT_LOOKS, (1 - CONFIDENCE) / 2, "pocock")
    checks: tuple[GateCheck, ...] = ()

    def run(only: Sequence[TraceSource] | None) -> CampaignResult:
        return run_campaign_session(
            campaign, store, table, folder, ca=ca, workers=workers, display=display, only=only
        )

    def is_decided(number: int) -> bool:
        nonlocal checks
        confidence = 1 - 2 * levels[number]
        limit = GateLimit(measure="silent", value=max_silent, least=False, confidence=confidence)
        rates = fetch_gate_rates(store, confidence=confidence, which={"campaign": campaign.name})
        checks = check_gate_limits(rates, [limit])
        return join_gate_verdicts(checks) != "unknown"

    outcome, left_out = _run_looks(campaign, store, LIMIT_LOOKS, run, is_decided)
    return SequentialResult(outcome=outcome, checks=checks, left_out=left_out)


def _run_looks(
    campaign: Campaign,
    store: TraceStore,
    looks: Sequence[float],
    run: SessionRunner,
    is_decided: Callable[[int], bool],
) -> tuple[CampaignResult, int]:
    """Run up to each look, a fraction of the roots, until one decides.

    Return the last result, and the number of traces without a run that a decision left out.
    """
    done = 0
    for number, fraction in enumerate(looks):
        units = find_plan_units(campaign, store)
        only = select_first_sources(campaign.sources, units, fraction)
        outcome = run(only)
        done = _merge_look_counts(outcome, done)
        if not outcome.is_finished:
            return outcome, 0
        if is_decided(number):
            break
    return outcome, sum(
        not unit.done and source not in only
        for source, unit in zip(campaign.sources, units, strict=True)
    )


def _merge_look_counts(outcome: CampaignResult, earlier: int) -> int:
    """Count the runs of earlier looks as done now; return the total."""
    outcome.standing.done += earlier
    outcome.standing.before -= earlier
    return outcome.standing.done


def select_first_sources(
    sources: Sequence[TraceSource], units: Sequence[PlanUnit], fraction: float
) -> tuple[TraceSource, ...]:
    """Return the sources of the first fraction of the roots, for pairing by root and by task."""
    chosen = set[int]()
    for by_task in (False, True):
        names = [
            unit.task if by_task else unit.root or f"?{number}" for number, unit in enumerate(units)
        ]
        distinct = list(dict.fromkeys(names))
        [size] = compute_look_sizes((fraction,), len(distinct))
        chosen |= {n for n, name in enumerate(names) if name in distinct[:size]}
    return tuple(source for number, source in enumerate(sources) if number in chosen)
