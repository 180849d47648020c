"""A stored verdict keeps its controls, whoever forks the same recording later, and with what."""

from typing import Any

import pytest

from tests.support.agents.refund_desk import (
    Desk,
    desk,
    suspicious,
    twice,
)

DIGIT = ("--fault", "digit:field=total", "--where", "tool=get_order", "--seed", "7")
VERDICTS = """
    select injection_id, class, noticed, passed, baseline_valid, len(twins) as twins
    from outcomes order by injection_id
"""


@pytest.fixture(scope="module")
def forked(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """The same tape forked three times, and all verdicts after each of them."""
    with desk(tmp_path_factory.mktemp("apart"), suspicious) as lab:
        lab.record()
        yield [_fork(lab, policy, verify) for policy, verify in FORKS]


FORKS = ((suspicious, None), (twice, None), (suspicious, "false"))
"""As recorded; after the model behind that name was updated; with a verifier that says no."""


def _fork(lab: Desk, policy: Any, verify: str | None) -> tuple[Any, list[dict[str, Any]]]:
    lab.policy = policy
    world = lab.world("reset", "verify") if verify is None else (*lab.world("reset"), "--verify")
    said = lab.fork(*DIGIT, world=world if verify is None else (*world, verify))
    return said, lab.rows(VERDICTS)


def test_no_later_fork_moves_an_earlier_verdict(forked: Any) -> None:
    stores = [rows for _, rows in forked]
    for n, rows in enumerate(stores):
        assert len(rows) == n + 1
        assert all(later[: n + 1] == rows for later in stores[n:])
    assert [row["twins"] for row in stores[-1]] == [3, 3, 3]


def test_each_fork_has_the_verdict_of_its_own_controls(forked: Any) -> None:
    first, second, third = forked[-1][1]
    assert (first["class"], first["noticed"]) == ("recovered", True)
    assert (second["class"], second["noticed"]) == ("masked", False)
    assert third["baseline_valid"] is False


def test_what_a_fork_prints_is_what_the_store_holds(forked: Any) -> None:
    for n, (said, rows) in enumerate(forked):
        assert said.json["baseline_valid"] == rows[n]["baseline_valid"]
        assert said.json["noticed"] == rows[n]["noticed"]
        assert said.json["outcome"] == (rows[n]["class"] if rows[n]["baseline_valid"] else None)


def test_a_fork_whose_own_twins_all_fail_is_not_counted(forked: Any) -> None:
    said, _ = forked[-1]
    assert said.code == 5
    assert (said.json["counted"], said.json["excluded"]) == (False, "baseline_failed")
