"""`stumble gate --against`: the arms, their seal, and the answer."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from copy import replace
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct

from scenarios.toml_reader import ScenarioError
from stumble.campaigns.completed_runs import CampaignFolder
from stumble.errors import UsageError
from stumble.experiments import seal_checks
from stumble.experiments.noninferiority.arm_evidence import (
    BASELINE_PREFIX,
    ExperimentArm,
    query_arms,
)
from stumble.experiments.noninferiority.arm_pairs import ArmFilter, is_store_path, pair_arms
from stumble.experiments.noninferiority.comparison import ArmComparison, PlanOrder, compare_measure
from stumble.experiments.noninferiority.store_pair import find_other_store, open_store_pair
from stumble.experiments.seals.analysis_terms import AnalysisTerms, Measure, parse_sealed_terms
from stumble.experiments.seals.kept_verdicts import is_of_this_judge
from stumble.experiments.seals.plan_progress import (
    PlanUnit,
    find_plan_units,
    load_planned_campaign,
    order_plan_roots,
)
from stumble.experiments.seals.seal_file import ExperimentSeal
from stumble.experiments.seals.seal_store import find_seal
from traces.model import JUDGE_VERSION
from traces.store.trace_store import TraceStore

if TYPE_CHECKING:
    import duckdb


class GateRequest(Struct, frozen=True, kw_only=True):
    """The request of a gate; None for the value of the seal, or the default."""

    against: str | None = None
    wanted: ArmFilter = ArmFilter()
    margin: float | None = None
    measures: tuple[Measure, ...] = ()
    alpha: float | None = None
    require_seal: bool = False

    def merge_terms(self, sealed: AnalysisTerms | None) -> AnalysisTerms:
        """Return the sealed terms with those of the request. Raises UsageError without a margin."""
        if sealed is None and self.margin is None:
            raise UsageError("--margin is missing: by how much the rate may be worse, as 0.05")
        base = sealed or AnalysisTerms(margin=self.margin or 0.0)
        return replace(
            base,
            margin=base.margin if self.margin is None else self.margin,
            measures=self.measures or base.measures,
            alpha=base.alpha if self.alpha is None else self.alpha,
            against=self.against or base.against,
        )


type ArmPair = tuple["PlannedArm", "PlannedArm"]
"""A candidate and its baseline."""


class PlannedArm(Struct, frozen=True, kw_only=True):
    """An arm with the plan and the seal of its campaign, in its own store."""

    arm: ExperimentArm
    seal: ExperimentSeal | None
    units: tuple[PlanUnit, ...]
    """The units of its plan; empty without a campaign, or if the plan cannot be read."""


def compare_candidates(store: TraceStore, request: GateRequest) -> tuple[ArmComparison, ...]:
    """Compare every measure of every candidate. Raises UsageError for an invalid request.

    The store must be indexed.
    """
    with open_store_pair(store) as connection:
        arms = query_arms(connection)
    against = request.against or _find_sealed_baseline(store, arms, request.wanted)
    other = Path(against) if is_store_path(against, arms) else None
    if other:
        with open_store_pair(store, other) as connection:
            arms = query_arms(connection)
    other_store = find_other_store(other) if other else store
    # Before opening the connection, which holds a lock: reading the store again would wait for it.
    planned_pairs = [
        (_load_planned_arm(store, candidate), _load_planned_arm(other_store, baseline))
        for candidate, baseline in pair_arms(arms, against, request.wanted)
    ]
    with open_store_pair(store, other) as connection:
        by_today = tuple(_compare_pairs(connection, store, planned_pairs, request))
    if all(each.seal is None or is_of_this_judge(each.seal) for each, _ in planned_pairs):
        return by_today
    by_kept = () if other else _compare_by_kept_verdicts(store, planned_pairs, request)
    return tuple(map(_answer_as_sealed, by_today, by_kept or (None,) * len(by_today)))


def _compare_by_kept_verdicts(
    store: TraceStore, pairs: Sequence[ArmPair], request: GateRequest
) -> tuple[ArmComparison, ...]:
    """Compare by the verdicts that were kept with the seals; empty if there are not of all arms."""
    names = {each.arm.campaign for pair in pairs for each in pair if each.arm.campaign}
    with open_store_pair(store, kept=names) as connection:
        arms = {_get_arm_key(arm): arm for arm in query_arms(connection) if any(arm.judge_versions)}
        kept = [
            (
                replace(one, arm=arms[_get_arm_key(one.arm)]),
                replace(two, arm=arms[_get_arm_key(two.arm)]),
            )
            for one, two in pairs
            if {_get_arm_key(one.arm), _get_arm_key(two.arm)} <= arms.keys()
        ]
        if len(kept) < len(pairs):
            return ()
        return tuple(_compare_pairs(connection, store, kept, request, by_kept=True))


def _get_arm_key(arm: ExperimentArm) -> tuple[str | None, ...]:
    return arm.campaign, arm.agent, arm.model, arm.world


def _answer_as_sealed(by_today: ArmComparison, by_kept: ArmComparison | None) -> ArmComparison:
    """Return the answer of the judge that was sealed, with that of today beside it."""
    if by_kept is not None:
        return replace(by_kept, by_today=by_today)
    if by_today.answer == "error":
        return by_today
    why = "the verdicts of the judge that was sealed were not kept"
    return replace(
        by_today, answer="inconclusive", reasons=(why, *by_today.reasons), by_today=by_today
    )


def _find_sealed_baseline(
    store: TraceStore, arms: Sequence[ExperimentArm], wanted: ArmFilter
) -> str:
    """Return the one baseline that the seals of the candidates name."""
    names = {arm.campaign for arm in arms if wanted.matches(arm)}
    seals = [seal for name in names if (seal := _find_campaign_seal(store, name))]
    baselines = {str(each) for seal in seals if (each := seal.get_part("analysis")["against"])}
    if len(baselines) != 1:
        raise UsageError("--against is missing: a campaign, seal, agent or model, or another store")
    return baselines.pop()


def _find_campaign_seal(store: TraceStore, name: str | None) -> ExperimentSeal | None:
    """Return the seal of a campaign, next to its file or in the store."""
    if name is None:
        return None
    plan = CampaignFolder.load_plan(store, name)
    return find_seal(name, plan[1] if plan else None, store)


def _load_planned_arm(store: TraceStore, arm: ExperimentArm) -> PlannedArm:
    name = arm.campaign.removeprefix(BASELINE_PREFIX) if arm.campaign else None
    try:
        planned = load_planned_campaign(store, name) if name else None
        units = find_plan_units(planned, store) if planned else ()
    except (ScenarioError, OSError):
        units = ()
    return PlannedArm(arm=arm, seal=_find_campaign_seal(store, name), units=units)


def _compare_pairs(
    connection: "duckdb.DuckDBPyConnection",
    store: TraceStore,
    pairs: Iterable[ArmPair],
    request: GateRequest,
    *,
    by_kept: bool = False,
) -> Iterator[ArmComparison]:
    """Yield the comparisons by the verdicts of this judge, or by the kept ones of the sealed."""
    for pair in pairs:
        seal = pair[0].seal
        judge = int(str(seal.get_part("judge")["version"])) if seal and by_kept else JUDGE_VERSION
        yield from (
            replace(each, judge=judge)
            for each in _compare_arms(connection, store, pair, request, judge)
        )


def _compare_arms(
    connection: "duckdb.DuckDBPyConnection",
    store: TraceStore,
    pair: ArmPair,
    request: GateRequest,
    judge: int,
) -> Iterator[ArmComparison]:
    candidate, baseline = pair
    seal = candidate.seal
    terms = request.merge_terms(
        parse_sealed_terms(seal.get_part("analysis"), Path(seal.name)) if seal else None
    )
    breaches = (
        *_list_gate_breaches(connection, store, candidate, baseline, request, terms),
        *(_list_other_judges(pair, judge) if seal else ()),
    )
    order: Mapping[bool, PlanOrder] | None = None
    if seal:
        order = {by_task: order_plan_roots(candidate.units, by_task) for by_task in (False, True)}
    for measure in terms.measures:
        comparison = compare_measure(
            connection,
            candidate.arm,
            baseline.arm,
            measure,
            terms,
            seal=seal.digest if seal else None,
            order=order,
            gaps=tuple(_list_plan_gaps(candidate, baseline)),
        )
        yield replace(comparison, answer="error", reasons=breaches) if breaches else comparison


def _list_gate_breaches(
    connection: "duckdb.DuckDBPyConnection",
    store: TraceStore,
    candidate: PlannedArm,
    baseline: PlannedArm,
    request: GateRequest,
    terms: AnalysisTerms,
) -> Iterator[str]:
    """Yield the violations of the seal."""
    yield from seal_checks.find_unsealed_arms(candidate.arm, baseline.arm, request.require_seal)
    seal = candidate.seal
    if seal is None:
        return
    if not candidate.units:
        yield f"the plan of {seal.name} is not in this store, or a file of it is missing"
    yield from seal_checks.find_term_changes(seal, terms)
    yield from seal_checks.find_seal_breaches(
        connection, store, seal, candidate.arm, candidate.units
    )
    yield from seal_checks.find_plan_changes(seal, baseline.seal)


def _list_other_judges(pair: ArmPair, judge: int) -> Iterator[str]:
    for each in pair:
        yield from seal_checks.find_other_judges(judge, each.arm)


def _list_plan_gaps(candidate: PlannedArm, baseline: PlannedArm) -> Iterator[str]:
    """Yield reasons for no answer yet; a sealed candidate has looks before its end."""
    if candidate.seal is None:
        yield from seal_checks.find_mixed_judges(candidate.arm, baseline.arm)
    yield from seal_checks.find_mixed_verifiers(candidate.arm, baseline.arm)
    if candidate.seal is None:
        yield from seal_checks.find_incomplete_campaign("candidate", candidate.arm, candidate.units)
    if baseline.arm.campaign != candidate.arm.campaign:
        yield from seal_checks.find_incomplete_campaign("baseline", baseline.arm, baseline.units)
