"""Counts behind an answer, and how much unknown outcomes could change it."""

from collections.abc import Iterator, Sequence

from msgspec import Struct

from stumble.experiments.noninferiority.arm_evidence import Pairing, RootEvidence


class ComparisonSample(Struct, frozen=True, kw_only=True):
    """Counts of roots and cells, and mean rates."""

    paired_by: Pairing | None = None
    roots: int = 0
    cells: int = 0
    known: int = 0
    left_out: int = 0
    candidate: float | None = None
    """The mean over roots of the wanted rate."""
    baseline: float | None = None
    least: float | None = None
    """The difference if all unknown outcomes were against the candidate."""
    most: float | None = None

    @property
    def unknown(self) -> float:
        """The share of cells that are unknown or missing in one arm."""
        total = self.cells + self.left_out
        return (total - self.known) / total if total else 0.0


def describe_movement(sample: ComparisonSample) -> str:
    """Describe how much unknown outcomes could change the difference."""
    if sample.least is None or sample.most is None:
        return "by how much the difference could move is not known"
    return (
        f"were all unknown ones against the candidate the difference would be {sample.least:+.3f}, "
        f"were all in its favour {sample.most:+.3f}"
    )


def summarize_roots(roots: Sequence[RootEvidence]) -> ComparisonSample:
    """Count cells, and average rates over roots with equal weights."""
    counted = [root for root in roots if root.known]
    candidate = _mean_of_known(root.candidate for root in roots)
    baseline = _mean_of_known(root.baseline for root in roots)
    return ComparisonSample(
        paired_by=roots[0].paired_by if roots else None,
        roots=len(counted),
        cells=sum(root.cells for root in roots),
        known=sum(root.known for root in roots),
        left_out=sum(root.left_out for root in roots),
        candidate=candidate,
        baseline=baseline,
        least=_subtract_known(
            _mean_of_known(root.candidate_least for root in roots),
            _mean_of_known(root.baseline_most for root in roots),
        ),
        most=_subtract_known(
            _mean_of_known(root.candidate_most for root in roots),
            _mean_of_known(root.baseline_least for root in roots),
        ),
    )


def _mean_of_known(values: Iterator[float | None]) -> float | None:
    known_values = [value for value in values if value is not None]
    return sum(known_values) / len(known_values) if known_values else None


def _subtract_known(one: float | None, other: float | None) -> float | None:
    return None if one is None or other is None else one - other
