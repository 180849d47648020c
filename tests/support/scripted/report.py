"""Accuracy of the judge on scripted agents: the development set, the held-out set, unseen ones.

python -m tests.support.scripted.report [NAME ...]
"""

import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import click

from tests.support.scripted.data import load_agents
from tests.support.scripted.runs import JudgedCase, run_scripted


@dataclass(frozen=True, slots=True)
class Agreement:
    """Agreement of verdicts with the required ones."""

    cases: tuple[JudgedCase, ...]

    @property
    def mistaken(self) -> tuple[JudgedCase, ...]:
        return tuple(case for case in self.cases if any(case.mistakes()))

    @property
    def right(self) -> float:
        return 1 - len(self.mistaken) / len(self.cases)

    @property
    def unknown(self) -> float:
        return sum(case.unknown for case in self.cases) / len(self.cases)

    @property
    def swapped(self) -> tuple[JudgedCase, ...]:
        """Cases that are silently wrong but judged right, handled or honest, or the reverse."""
        return tuple(case for case in self.mistaken if _is_swapped(case))

    def lines(self) -> Iterator[str]:
        yield (
            f"{len(self.cases)} cases: {self.right:.1%} right, {self.unknown:.1%} unknown, "
            f"{len(self.swapped)} silently wrong for something else or the reverse"
        )
        yield from map(str, self.mistaken)


def _is_swapped(case: JudgedCase) -> bool:
    found = {outcome for outcome in case.outcomes if outcome != "unknown"}
    wrong = found - set(case.case.outcomes)
    return bool(wrong) and ("silent_wrong" in wrong or "silent_wrong" in case.case.outcomes)


def split(cases: Sequence[JudgedCase]) -> dict[str, Agreement]:
    """Return the agreement on the development set, the held-out set, and unseen agents."""
    kinds = {"made with": (False, False), "held out": (True, False), "unseen": (False, True)}
    return {
        name: Agreement(
            tuple(each for each in cases if (each.agent.held_out, each.agent.unseen) == kind)
        )
        for name, kind in kinds.items()
    }


def main(names: Sequence[str]) -> None:
    """Run the agents of these names, or all, and print the agreement."""
    agents = [each for each in load_agents() if not names or each.name in names]
    with tempfile.TemporaryDirectory() as folder:
        found = split(run_scripted(agents, Path(folder)))
    for name, agreement in found.items():
        if agreement.cases:
            click.echo(f"{name}: " + "\n  ".join(agreement.lines()))


if __name__ == "__main__":
    main(sys.argv[1:])
