"""A sealed campaign with several looks: it ends at the first look that decides.

Before each look only the runs of the first roots of the plan are made. Runs left out by a decision
are never made by the same command: they would not change the answer.
"""

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path

from msgspec import Struct

from stumble.campaigns.results import CampaignResult
from stumble.campaigns.runner import CampaignDisplay, run_campaign_session
from stumble.campaigns.scheduler import ProgressListener
from stumble.campaigns.spec import Campaign, TraceSource
from stumble.campaigns.worker_plan import WorkerPlan
from stumble.errors import UsageError
from stumble.experiments.gate_comparison import GateRequest, compare_candidates
from stumble.experiments.noninferiority.arm_pairs import ArmFilter
from stumble.experiments.noninferiority.comparison import ArmComparison, combine_answers
from stumble.experiments.seals.analysis_terms import AnalysisTerms, parse_sealed_terms
from stumble.experiments.seals.kept_verdicts import keep_verdicts
from stumble.experiments.seals.plan_progress import PlanUnit, compute_look_sizes, find_plan_units
from stumble.experiments.seals.seal_store import find_seal
from traces.store.trace_store import TraceStore

type ProgressDisplay = Callable[[], AbstractContextManager[ProgressListener]]


class SequentialResult(Struct, frozen=True, kw_only=True):
    """The result of a campaign, and of the comparison in its seal, if there is one."""

    outcome: CampaignResult
    found: Sequence[ArmComparison] = ()
    left_out: int = 0
    """Number of traces not run because of an early decision."""


def run_sealed_campaign(
    campaign: Campaign,
    store: TraceStore,
    said: Mapping[str, object],
    beside: Path,
    *,
    ca: Path,
    workers: WorkerPlan,
    display: CampaignDisplay,
) -> SequentialResult:
    """Run a campaign up to the deciding look of its seal; see `run_campaign_session`."""

    def run(only: Sequence[TraceSource] | None) -> CampaignResult:
        return run_campaign_session(
            campaign, store, said, beside, ca=ca, workers=workers, display=display, only=only
        )

    seal = find_seal(campaign.name, beside, store) if campaign.seal else None
    terms = parse_sealed_terms(seal.get_part("analysis"), beside) if seal else None
    if terms is None or terms.against is None:
        result = SequentialResult(outcome=run(None))
    else:
        result = _run_looks(campaign, store, terms, run, display.warn)
    if seal:
        keep_verdicts(seal, beside, store)
    return result


def _run_looks(
    campaign: Campaign,
    store: TraceStore,
    terms: AnalysisTerms,
    run: Callable[[Sequence[TraceSource] | None], CampaignResult],
    warn: Callable[[str], object],
) -> SequentialResult:
    done, comparisons = 0, tuple[ArmComparison, ...]()
    for fraction in terms.looks:
        only = select_first_sources(campaign.sources, find_plan_units(campaign, store), fraction)
        outcome = run(only)
        done = _merge_look_counts(outcome, done)
        if not outcome.is_finished:
            return SequentialResult(outcome=outcome)
        try:
            comparisons = compare_candidates(
                store, GateRequest(wanted=ArmFilter(campaign=campaign.name))
            )
        except UsageError as wrong:
            warn(f"the campaign cannot end early: {wrong.message}")
            continue
        if combine_answers(comparisons) in ("pass", "fail", "error"):
            break
    return SequentialResult(
        outcome=outcome, found=comparisons, left_out=len(campaign.sources) - len(only)
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
