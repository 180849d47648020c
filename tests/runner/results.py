"""What a group came to: seconds, counts, and its tests with the processor time of each."""

import re
import xml.etree.ElementTree as ET
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

COUNT = re.compile(r"(\d+) (passed|failed|error|skipped)")


@dataclass(frozen=True, slots=True, kw_only=True)
class TestCase:
    """A test by pytest's node id; seconds on the clock and of processors, its fixtures included."""

    __test__ = False
    node: str
    seconds: float
    cpu_seconds: float
    failed: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupResult:
    """How a group ended: its exit status and the last line that it printed."""

    name: str
    seconds: float
    code: int
    last: str
    cases: tuple[TestCase, ...] = ()

    def has_only_failures(self) -> bool:
        """Return whether tests failed and nothing else did, as pytest's exit status has it."""
        return self.code == 1 and any(case.failed for case in self.cases)

    def count(self) -> dict[str, int]:
        """Tests that passed, failed (errors too) and were skipped, as pytest's last line has it."""
        total = {"passed": 0, "failed": 0, "skipped": 0}
        for number, kind in COUNT.findall(self.last):
            total["failed" if kind == "error" else kind] += int(number)
        return total


def read_cases(junit: Path) -> Iterator[TestCase]:
    """The tests in a report of pytest whose properties tests/conftest.py has written."""
    for case in ET.parse(junit).iter("testcase"):
        properties = {each.get("name"): each.get("value") for each in case.iter("property")}
        yield TestCase(
            node=properties.get("node") or "",
            seconds=float(case.get("time", "0")),
            cpu_seconds=float(properties.get("cpu") or 0),
            failed=any(case.find(kind) is not None for kind in ("failure", "error")),
        )


def sum_files(cases: Iterable[TestCase]) -> list[tuple[str, float, float]]:
    """Processor seconds and seconds on the clock of each file of tests, the most first."""
    total: dict[str, tuple[float, float]] = defaultdict(lambda: (0.0, 0.0))
    for case in cases:
        cpu, seconds = total[case.node.partition("::")[0]]
        total[case.node.partition("::")[0]] = (cpu + case.cpu_seconds, seconds + case.seconds)
    return sorted(((file, *sums) for file, sums in total.items()), key=lambda each: -each[1])
