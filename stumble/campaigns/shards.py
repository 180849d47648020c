"""Shards: the parts of a campaign that machines without a common folder make.

All runs of one call, its controls among them, belong to one shard: they are made on one machine and
judged there. A source that is still to be recorded belongs to one shard as a whole.
"""

import os
import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from msgspec import Struct

if TYPE_CHECKING:
    from stumble.campaigns.run_matrix import RunCell

MAX_SHARDS = 100_000
SCHEDULER_VARIABLES = ("SLURM_ARRAY_TASK_ID", "JOB_COMPLETION_INDEX")


class CampaignShard(Struct, frozen=True, kw_only=True):
    """One of `count` equal parts; numbers begin at 1."""

    number: int
    count: int

    def __str__(self) -> str:
        return f"{self.number}/{self.count}"

    def has_source(self, number: int) -> bool:
        """Whether this shard records the source of this number."""
        return number % self.count == self.number - 1

    def select_cells(self, number: int, cells: "Sequence[RunCell]") -> "tuple[RunCell, ...]":
        """Return the cells of a recorded source that this shard makes: whole calls, in turn."""
        calls = {call: n for n, call in enumerate(dict.fromkeys(cell.call for cell in cells))}
        return tuple(cell for cell in cells if self.has_source(number + calls[cell.call]))


def parse_shard(text: str, environment: Mapping[str, str] | None = None) -> CampaignShard:
    """Parse `3/16`, or `auto/16` and `auto` with the variables of a scheduler.

    Slurm: `--array=1-16` or any other range of step 1. Kubernetes: an Indexed Job, whose number of
    completions has to be given. Raises ValueError.
    """
    environment = os.environ if environment is None else environment
    found = re.fullmatch(r"(\d+|auto)(?:/(\d+))?", text)
    if found is None:
        raise ValueError(f"--shard {text}: not NUMBER/COUNT, auto/COUNT or auto")
    first, last = found[1], found[2]
    if first == "auto":
        number, known = _find_scheduler_number(environment)
        count = int(last or known or 0)
    else:
        number, count = int(first), int(last or 0)
    if not count:
        raise ValueError(f"--shard {text}: how many are there? Give --shard {first}/COUNT")
    if not 1 <= number <= count <= MAX_SHARDS:
        raise ValueError(f"--shard {text}: {number} is not one of 1..{count}")
    return CampaignShard(number=number, count=count)


def _find_scheduler_number(environment: Mapping[str, str]) -> tuple[int, str | None]:
    if "SLURM_ARRAY_TASK_ID" in environment:
        first = int(environment.get("SLURM_ARRAY_TASK_MIN", "1"))
        number = int(environment["SLURM_ARRAY_TASK_ID"]) - first + 1
        return number, environment.get("SLURM_ARRAY_TASK_COUNT")
    if "JOB_COMPLETION_INDEX" in environment:
        return int(environment["JOB_COMPLETION_INDEX"]) + 1, None
    raise ValueError(
        f"--shard auto: none of {', '.join(SCHEDULER_VARIABLES)} is set; give --shard NUMBER/COUNT"
    )
