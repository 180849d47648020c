"""Tables of outcomes for people: of each figure, a line for each number and size of clusters."""

from itertools import groupby
from pathlib import Path

from tests.statistical.grids.cells import SIZES
from tests.statistical.grids.outcome import Outcome

START, END = "<!-- grids start -->", "<!-- grids end -->"
HEAD = "| figure | clusters | cases of each | cells printed | coverage | alarms | passes |"


def print_tables(outcomes: list[Outcome]) -> None:
    """Print all tables as Markdown."""
    print("\n".join(make_tables(outcomes)))


def write_tables(page: Path, outcomes: list[Outcome]) -> None:
    """Replace what stands between the markers of a page."""
    text = page.read_text(encoding="utf-8")
    before, rest = text.split(START)
    _, after = rest.split(END)
    tables = "\n".join(make_tables(outcomes))
    page.write_text(f"{before}{START}\n{tables}\n{END}{after}", encoding="utf-8")


def make_tables(outcomes: list[Outcome]) -> list[str]:
    """A line for each figure, number and size of clusters: the twelve correlations and rates."""
    lines = [HEAD, "|" + "---|" * 7]
    order = list(dict.fromkeys(each.figure for each in outcomes))

    sizes = list(SIZES)
    covering = {each.figure for each in outcomes if each.printed}

    def key(each: Outcome) -> tuple[int, int, int]:
        return order.index(each.figure), each.cell.roots, sizes.index(each.cell.size)

    for (place, roots, size_place), some in groupby(sorted(outcomes, key=key), key=key):
        cells = list(some)
        printed = [each for each in cells if each.printed]
        columns = (
            order[place],
            str(roots),
            ", ".join(map(str, SIZES[sizes[size_place]])),
            f"{len(printed)} of {len(cells)}" if order[place] in covering else "",
            _describe_range([each.covered for each in printed]) if order[place] in covering else "",
            _describe_most([each.alarms for each in cells]),
            _describe_most([each.passes for each in cells]),
        )
        lines.append("| " + " | ".join(columns) + " |")
    return lines


def _describe_range(shares: list[float | None]) -> str:
    known = [share for share in shares if share is not None]
    return f"{min(known):.3f}-{max(known):.3f}" if known else "none"


def _describe_most(shares: list[float | None]) -> str:
    known = [share for share in shares if share is not None]
    return f"{max(known):.3f}" if known else ""
