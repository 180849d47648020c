"""Selection of the candidate arms of a store and of their baselines."""

from collections.abc import Callable, Sequence
from pathlib import Path

from msgspec import Struct

from stumble.errors import UsageError
from stumble.experiments.noninferiority.arm_evidence import BASELINE_PREFIX, ExperimentArm
from traces.did_you_mean import suggest_nearest_name

SHORTEST_SEAL_PREFIX = 8
"""Fewest hex digits that identify a seal."""


class ArmFilter(Struct, frozen=True, kw_only=True):
    """A filter of candidate arms; None matches any name."""

    campaign: str | None = None
    agent: str | None = None
    model: str | None = None

    def matches(self, arm: ExperimentArm) -> bool:
        """Whether an arm matches."""
        return all(
            expected is None or expected == actual
            for expected, actual in (
                (self.campaign, arm.campaign),
                (self.agent, arm.agent),
                (self.model, arm.model),
            )
        )


def is_store_path(against: str, arms: Sequence[ExperimentArm]) -> bool:
    """Whether a baseline is the path of another store; names of arms take precedence."""
    return _make_baseline_test(against, arms) is None and Path(against).exists()


def pair_arms(
    arms: Sequence[ExperimentArm], against: str, wanted: ArmFilter
) -> tuple[tuple[ExperimentArm, ExperimentArm], ...]:
    """Return each candidate with its baseline.

    Raises UsageError if a name matches nothing, or several arms.
    """
    own_arms = [arm for arm in arms if not (arm.campaign or "").startswith(BASELINE_PREFIX)]
    other_arms = [arm for arm in arms if (arm.campaign or "").startswith(BASELINE_PREFIX)]
    named = _make_baseline_test(against, own_arms)
    if not other_arms and named is None:
        known_names = {
            name for arm in own_arms for name in (arm.campaign, arm.agent, arm.model) if name
        }
        raise UsageError(
            f"no campaign, seal, agent or model is called {against!r}, and no store lies there"
            + suggest_nearest_name(against, sorted(known_names))
        )
    is_baseline: Callable[[ExperimentArm], bool] = (
        other_arms.__contains__ if other_arms else named or bool
    )
    candidates = [arm for arm in own_arms if wanted.matches(arm) and not is_baseline(arm)]
    _check_campaigns(candidates, wanted)
    if not candidates:
        raise UsageError(
            f"there is nothing to hold against {against}: no other run of this store has a fault"
            + (" under these names" if wanted != ArmFilter() else "")
        )
    baselines = [arm for arm in arms if is_baseline(arm)]
    return tuple((each, _find_closest_baseline(each, baselines, against)) for each in candidates)


def _make_baseline_test(
    against: str, arms: Sequence[ExperimentArm]
) -> Callable[[ExperimentArm], bool] | None:
    """Return a test for baseline arms, by campaign, seal, model or agent; None if none match."""
    tests: tuple[Callable[[ExperimentArm], bool], ...] = (
        lambda arm: arm.campaign == against,
        lambda arm: len(against) >= SHORTEST_SEAL_PREFIX and (arm.seal or "").startswith(against),
        lambda arm: arm.model == against,
        lambda arm: arm.agent == against,
    )
    return next((test for test in tests if any(map(test, arms))), None)


def _check_campaigns(candidates: Sequence[ExperimentArm], wanted: ArmFilter) -> None:
    names = sorted({arm.campaign for arm in candidates if arm.campaign})
    if wanted.campaign is None and len(names) > 1:
        raise UsageError(f"which campaign is the candidate? Say --campaign: {', '.join(names)}")


def _find_closest_baseline(
    candidate: ExperimentArm, baselines: Sequence[ExperimentArm], against: str
) -> ExperimentArm:
    """Return the baseline in the same world with the most in common with the candidate."""
    closest = [arm for arm in baselines if arm.world == candidate.world]
    if not closest:
        raise UsageError(
            f"{against} has faults in no world of the kind of {candidate.name} ({candidate.world})"
        )
    similarity_tests: tuple[Callable[[ExperimentArm], bool], ...] = (
        lambda arm: (
            (arm.campaign or "").removeprefix(BASELINE_PREFIX) == (candidate.campaign or "")
        ),
        lambda arm: arm.model == candidate.model,
        lambda arm: arm.agent == candidate.agent,
    )
    for is_similar in similarity_tests:
        closest = [arm for arm in closest if is_similar(arm)] or closest
    if len(closest) > 1:
        names = "; ".join(arm.name for arm in closest)
        raise UsageError(
            f"{against} is the name of {len(closest)} arms: {names}. Say a campaign or model"
        )
    return closest[0]
