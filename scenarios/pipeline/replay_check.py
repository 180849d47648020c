"""Verdict on a pipeline run: stages that passed without a fault must pass again."""

from collections.abc import Iterable, Sequence
from typing import Self

from scenarios.world import Verdict
from traces.model import RunEvent


def find_passed_stages(marks: Iterable[RunEvent]) -> frozenset[str]:
    """Return the stages that a run passed."""
    graded = (mark.data for mark in marks if mark.name == "graded")
    return frozenset(str(data.get("stage")) for data in graded if data.get("passed"))


class Pipeline:
    """The world of one run; each run has a new workspace, so there is nothing to reset."""

    def __init__(self, wanted: frozenset[str]) -> None:
        self._wanted = wanted
        self._scores: dict[str, tuple[bool | None, object]] = {}

    def new_world(self) -> Self:
        """Return a new world for another run."""
        return type(self)(self._wanted)

    def on_run_event(self, mark: RunEvent) -> None:
        """Store the result of a graded stage."""
        if mark.name == "graded":
            passed = mark.data.get("passed")
            stage = str(mark.data.get("stage"))
            self._scores[stage] = passed if isinstance(passed, bool) else None, mark.data["score"]

    async def reset(self) -> None:
        """Do nothing: no state is reused."""

    async def verify(self, said: Sequence[str] = ()) -> Verdict:
        """Pass if all wanted stages pass; unknown if one has no score and none fails."""
        results = {stage: self._scores.get(stage, (None, None)) for stage in sorted(self._wanted)}
        failed = [f"{stage} scores {score}" for stage, (right, score) in results.items()
                  if right is False]  # fmt: skip
        if failed:
            return Verdict(passed=False, detail=", ".join(failed))
        unknown = [stage for stage, (right, _) in results.items() if right is None]
        if unknown:
            return Verdict(passed=None, detail=f"{', '.join(unknown)} was not graded")
        return Verdict(passed=True, detail=f"{', '.join(results) or 'no stage'} passed as before")
