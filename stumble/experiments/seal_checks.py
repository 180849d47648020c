"""Obstacles to an answer: violations of a seal, and gaps in the evidence.

A violation makes any answer an ERROR. A gap makes it inconclusive, and more runs may close it.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from scenarios.toml_reader import ScenarioError
from stumble.errors import UsageError
from stumble.experiments.noninferiority.arm_evidence import BASELINE_PREFIX, ExperimentArm
from stumble.experiments.seals.analysis_terms import AnalysisTerms, parse_sealed_terms
from stumble.experiments.seals.plan_progress import PlanUnit, describe_missing_runs
from stumble.experiments.seals.seal_file import (
    SHOWN_DIGEST_LENGTH,
    ExperimentSeal,
    find_value_differences,
)
from stumble.experiments.seals.seal_store import find_file_changes
from traces.store.trace_store import TraceStore

if TYPE_CHECKING:
    import duckdb

_SEALED_RUNS_SQL = """
    SELECT coalesce(seal, '') AS seal, count(*) AS runs
    FROM trajectories
    WHERE campaign = $campaign AND coalesce(seal, '') != $seal
    GROUP BY ALL ORDER BY ALL
"""


def find_unsealed_arms(
    candidate: ExperimentArm, baseline: ExperimentArm, required: bool
) -> Iterator[str]:
    """Yield arms without a seal, if seals are required."""
    for role, arm in (("candidate", candidate), ("baseline", baseline)):
        if required and arm.seal is None:
            yield (
                f"the {role} {arm.name} is not sealed, and --require-seal was given: "
                "stumble campaign FILE.toml --seal, before its first run"
            )


def find_term_changes(seal: ExperimentSeal, asked: AnalysisTerms) -> Iterator[str]:
    """Yield differences of the requested analysis from the sealed one."""
    sealed = parse_sealed_terms(seal.get_part("analysis"), Path(seal.name)).to_dict()
    if sealed["against"] is None:
        sealed["against"] = asked.against
    yield from find_value_differences(sealed, asked.to_dict(), "analysis", ("sealed", "asked for"))


def find_seal_breaches(
    connection: "duckdb.DuckDBPyConnection",
    store: TraceStore,
    seal: ExperimentSeal,
    arm: ExperimentArm,
    units: Sequence[PlanUnit],
) -> Iterator[str]:
    """Yield differences of the runs of a sealed campaign, or of its present plan, from the seal."""
    params = {"campaign": arm.campaign, "seal": seal.digest}
    for other, runs in connection.execute(_SEALED_RUNS_SQL, params).fetchall():
        seal_text = f"the seal {other[:SHOWN_DIGEST_LENGTH]}" if other else "no seal"
        yield f"{runs} runs of {seal.name} carry {seal_text}, not {seal.short_digest}"
    try:
        yield from find_file_changes(seal, store)
    except (UsageError, ScenarioError) as error:
        yield f"the plan cannot be compared with the seal: {error}"
    if arm.again:
        yield f"{arm.again} runs are of cells that were run more than once"
    beyond = sum(unit.beyond for unit in units)
    if beyond:
        yield f"{beyond} runs are of no cell of the sealed plan"


def find_other_judges(judge: int, arm: ExperimentArm) -> Iterator[str]:
    """Yield verdicts on an arm by another judge version than this one."""
    others = [each for each in arm.judge_versions if each != judge]
    if others:
        names = ", ".join(map(str, others))
        yield f"judge.version: {judge} is asked, and verdicts on {arm.name} are of {names}"


def find_plan_changes(seal: ExperimentSeal, of_baseline: ExperimentSeal | None) -> Iterator[str]:
    """Yield differences of the sealed baseline from the candidate."""
    if of_baseline is None or of_baseline.digest == seal.digest:
        return
    for part in ("plan", "world", "judge"):
        yield from find_value_differences(
            seal.get_part(part), of_baseline.get_part(part), part, ("candidate", "baseline")
        )


def find_mixed_judges(candidate: ExperimentArm, baseline: ExperimentArm) -> Iterator[str]:
    """Yield a line if verdicts are of several judge versions, which are not comparable."""
    versions = sorted({*candidate.judge_versions, *baseline.judge_versions})
    if len(versions) > 1:
        yield (
            f"verdicts are of several versions of the judge ({', '.join(map(str, versions))}): "
            "keep the tapes in the store, and its next command judges them anew"
        )


def find_mixed_verifiers(candidate: ExperimentArm, baseline: ExperimentArm) -> Iterator[str]:
    """Yield lines if several verifiers judged end states of the same recordings or tasks."""
    for role, arm in (("candidate", candidate), ("baseline", baseline)):
        if arm.has_second_verifier:
            yield f"several verifiers judged the {role} on the same recordings: name a campaign"
    verifiers = {*candidate.verifiers, *baseline.verifiers}
    if len(candidate.verifiers) == len(baseline.verifiers) == 1 and len(verifiers) > 1:
        yield (
            "candidate and baseline were judged by different verifiers: run one of them again "
            "with the verifier of the other"
        )


def find_incomplete_campaign(
    role: str, arm: ExperimentArm, units: Sequence[PlanUnit]
) -> Iterator[str]:
    """Yield a line if a campaign is incomplete."""
    missing = describe_missing_runs(units)
    if missing:
        name = (arm.campaign or "").removeprefix(BASELINE_PREFIX)
        yield f"the {role} is incomplete: {missing}; go on with stumble campaign {name}"
