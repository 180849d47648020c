"""One world for all runs of a campaign: two workers wait in turn, and find what one finds."""

from collections.abc import Iterator
from typing import Any

import pytest

from tests.support.agents.refund_desk import (
    Desk,
    desk,
    suspicious,
)

FAULTS = ("--fault", "http_status:code=503", "--fault", "digit:field=total")


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Desk]:
    with desk(tmp_path_factory.mktemp("world"), suspicious) as found:
        found.record()
        yield found


def campaign(lab: Desk, name: str, *options: str) -> Any:
    world = lab.world("reset", "verify")
    where = ("--where", "tool=get_order")
    command = ("campaign", "--name", name, "--traces", "a.tape", *FAULTS, *where, *lab.hosts)
    return lab.bench.stumble(*command, *world, *options, timeout=500)


@pytest.mark.thorough
def test_two_workers_give_the_verdicts_of_one(lab: Desk) -> None:
    planned = campaign(lab, "two", "--jobs", "2", "--plan", "--json")
    assert planned.json["jobs"] == 1, "one run after the other, whoever makes them"
    both = campaign(lab, "two", "--jobs", "2")
    assert "1 world for all runs, so runs wait for a free one" in both.err
    campaign(lab, "one")
    rows = lab.rows(
        "select campaign, cell, class, noticed, o.passed, baseline_valid from outcomes as o"
        " join injections using (injection_id) join trajectories using (trajectory_id) order by all"
    )
    found: dict[str, list[dict[str, Any]]] = {"one": [], "two": []}
    for row in rows:
        found[row.pop("campaign")].append(row)
    assert found["one"] == found["two"]
    assert {row["baseline_valid"] for row in rows} == {True}
    clean = lab.rows("select distinct passed from trajectories where condition = 'clean'"
                     " and campaign is not null")  # fmt: skip
    assert clean == [{"passed": True}]
