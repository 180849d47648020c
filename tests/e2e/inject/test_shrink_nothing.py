"""`stumble shrink` asks first whether the agent breaks without any fault; no try enters a rate."""

from collections.abc import Iterator

import pytest

from tests.support.agents.refund_desk import (
    Desk,
    desk,
    overpays,
)

DELAY = ("--fault", "delay:ms=20", "--where", "tool=get_order")
RATES = "select fired, judged, excluded from recovery"


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Desk]:
    with desk(tmp_path_factory.mktemp("nothing"), overpays) as found:
        found.record()
        yield found


def test_an_agent_that_is_always_wrong_breaks_by_no_fault(lab: Desk) -> None:
    forked = lab.fork(*DELAY)
    assert (forked.code, forked.json["excluded"]) == (5, "baseline_failed")
    before = lab.rows(RATES)
    world = lab.world("reset", "verify")
    result = lab.bench.stumble(
        "shrink", forked.json["run"], *lab.hosts, *world, "-o", "least.toml", "--json"
    )
    assert result.code == 1, result.err
    assert result.json["left"] == []
    assert "try 1: no fault at all: 1 of 1 broken" in result.err
    assert not (lab.bench.folder / "least.toml").exists()
    assert lab.rows(RATES) == before
    found = lab.rows("select condition, count(*) as n from trajectories group by 1 order by 1")
    assert found[-1] == {"condition": "shrink", "n": 1}
