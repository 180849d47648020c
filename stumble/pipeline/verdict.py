"""Whether a run of the pipeline is right: what passed where nothing was struck passes again."""

from collections.abc import Iterable, Sequence
from typing import Self

from scenarios.world import Verdict
from traces.model import Mark


def passed(marks: Iterable[Mark]) -> frozenset[str]:
    """The stages that a run passed."""
    graded = (mark.data for mark in marks if mark.name == "graded")
    return frozenset(str(data.get("stage")) for data in graded if data.get("passed"))


class Pipeline:
    """The world of one run: each lays out a workspace of its own, so there is none to set back."""

    def __init__(self, wanted: frozenset[str]) -> None:
        self._wanted = wanted
        self._scores: dict[str, tuple[bool | None, object]] = {}

    def anew(self) -> Self:
        """The same for another run."""
        return type(self)(self._wanted)

    def hear(self, mark: Mark) -> None:
        """Take in what a stage came to."""
        if mark.name == "graded":
            known = mark.data.get("passed")
            stage = str(mark.data.get("stage"))
            self._scores[stage] = known if isinstance(known, bool) else None, mark.data["score"]

    async def reset(self) -> None:
        """Nothing is used again."""

    async def verify(self, said: Sequence[str] = ()) -> Verdict:
        """True where all wanted stages pass; unknown where one has no score, and none fails."""
        found = {stage: self._scores.get(stage, (None, None)) for stage in sorted(self._wanted)}
        failed = [f"{stage} scores {score}" for stage, (right, score) in found.items()
                  if right is False]  # fmt: skip
        if failed:
            return Verdict(passed=False, detail=", ".join(failed))
        unknown = [stage for stage, (right, _) in found.items() if right is None]
        if unknown:
            return Verdict(passed=None, detail=f"{', '.join(unknown)} was not graded")
        return Verdict(passed=True, detail=f"{', '.join(found) or 'no stage'} passed as before")
