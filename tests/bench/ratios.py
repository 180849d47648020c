"""Rows of a bench, each measured as a ratio to a peer and compared with the ratio of a file."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

LIMIT = 2.0
"""How many times the ratio of the file a row may reach."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BenchRow:
    """A figure of stumble and that of its peer, in the same unit."""

    name: str
    peer: str
    measure: Callable[[], float]
    measure_peer: Callable[[], float]


def check_same_rows(measured: Sequence[str], ratios: Mapping[str, float]) -> None:
    """Check that no row would go unseen.

    Raises:
        ValueError: a row has no ratio in the file, or the file has one of no row.
    """
    if different := sorted(set(measured) ^ set(ratios)):
        raise ValueError(f"the bench and its file have different rows: {'; '.join(different)}")


def find_rows_over(measured: Mapping[str, float], ratios: Mapping[str, float]) -> list[str]:
    """Return the names of the rows whose measured ratio exceeds LIMIT times that of the file."""
    return [name for name, ratio in measured.items() if not ratio <= LIMIT * ratios[name]]


def format_row(name: str, peer: str, measured: float, ratio: float) -> str:
    """Return the line of one row: name, measured ratio, the file's, the limit, and ok or over."""
    limit = LIMIT * ratio
    verdict = "over" if find_rows_over({name: measured}, {name: ratio}) else "ok"
    if measured * LIMIT < ratio:
        verdict += ", --write would lower the limit"
    figures = f"{measured:8.3f}  file {ratio:8.3f}  limit {limit:8.3f}"
    return f"{name:48} {figures}  x {peer:15}  {verdict}"


def measure_ratios(rows: Sequence[BenchRow], rounds: int) -> dict[str, float]:
    """Return the ratio of each row, of the least figures of all rounds."""
    figures = {row.name: (list[float](), list[float]()) for row in rows}
    for _ in range(rounds):
        for row in rows:
            for values, measure in zip(
                figures[row.name], (row.measure_peer, row.measure), strict=True
            ):
                values.append(measure())
    return {name: min(values) / min(peers) for name, (peers, values) in figures.items()}


def measure_again(
    rows: Sequence[BenchRow],
    measured: Mapping[str, float],
    ratios: Mapping[str, float],
    rounds: int,
) -> dict[str, float]:
    """Return the ratios, of rows that are over the lesser one of two measurements."""
    over = find_rows_over(measured, ratios)
    for name in over:
        print(f"{name}: {measured[name]:.3f} is over, measured again", flush=True)
    again = measure_ratios([row for row in rows if row.name in over], rounds)
    return {name: min(ratio, again.get(name, ratio)) for name, ratio in measured.items()}
