"""A campaign whose ends nobody knows is not left out of the report without a word."""

from stumble.report.paired_effect import build_paired_section
from tests.support.stores.in_memory_relations import (
    empty,
    fill,
)

RUN = {"source": "fork", "ended": "final", "condition": "fault", "parent_id": "p"}


def test_runs_that_are_in_no_pair_are_named_with_the_reason() -> None:
    why = "no two clean twins end alike: let --state leave out what varies"
    unknown = RUN | {"campaign": "nightly", "passed_reason": why}
    runs = [unknown | {"trajectory_id": f"t{n}"} for n in range(3)]
    runs.append(RUN | {"trajectory_id": "s", "condition": "shrink", "passed_reason": "a try"})
    with empty() as sql:
        fill(sql, "trajectories", runs)
        section = build_paired_section(sql, lambda row: "agent")
    assert section.nothing is not None
    assert section.nothing.endswith(
        f"3 runs of the campaign nightly are left out, their end is not known: {why}."
    )
