"""How much more often runs end wrong with a fault than their own clean twins do without it."""

from collections.abc import Iterator

import numpy as np
import pytest

from tests.support.stores.gained_and_lost import gained_and_lost
from tests.support.stores.in_memory_relations import (
    Sql,
    answers,
    empty,
    fill,
    near,
    one,
)

OPS = {"delay": (3, 3), "digit": (5, 3)}
"""Of five faulted runs with a fault so many end wrong, and of fifteen twins so many."""


@pytest.fixture
def sql() -> Iterator[Sql]:
    """Five recordings, at each one run with each fault, and three clean twins for each of these."""
    with empty() as connection:
        runs: list[dict[str, object]] = []
        injections: list[dict[str, object]] = []
        outcomes: list[dict[str, object]] = []
        for op, (wrong, twins_wrong) in OPS.items():
            for n in range(5):
                id = f"{op}{n}"
                facts: dict[str, object] = {
                    "parent_id": f"r{n}",
                    "source": "fork",
                    "ended": "final",
                }
                twins = [f"{id}t{k}" for k in range(3)]
                runs.append(facts | {"trajectory_id": id, "condition": "fault"})
                for k, twin in enumerate(twins):
                    passed = not (k == 0 and n < twins_wrong)
                    runs.append(
                        facts | {"trajectory_id": twin, "condition": "clean", "passed": passed}
                    )
                injections.append(
                    {"injection_id": id, "trajectory_id": id, "op": op, "consumed": True}
                    | {"sham": False}
                )
                outcomes.append(
                    {"injection_id": id, "judge_version": 1, "passed": n >= wrong, "twins": twins}
                    | {"baseline_valid": True}
                )
        fill(connection, "trajectories", runs)
        fill(connection, "injections", injections)
        fill(connection, "outcomes", outcomes)
        yield connection


def test_what_twins_do_anyway_is_taken_from_what_runs_do(sql: Sql) -> None:
    names = "op, runs, wrong_rate, twins_wrong_rate, excess, traces"
    delay, digit = answers(sql, f"SELECT {names} FROM excess ORDER BY op")
    assert delay == {
        "op": "delay", "runs": 5, "wrong_rate": near(0.6), "twins_wrong_rate": near(0.2),
        "excess": near(0.4), "traces": 5,
    }  # fmt: skip
    assert (digit["wrong_rate"], digit["excess"]) == (near(1.0), near(0.8))


def test_the_interval_is_that_of_what_recordings_gained_and_lost(sql: Sql) -> None:
    """One faulted run against three twins: 2/3, 2/3, 2/3, 0, 0 by recording."""
    found = one(sql, "SELECT excess_lo, excess_hi FROM excess WHERE op = 'delay'")
    lo, hi, _ = gained_and_lost(np.array([[2 / 3, 2 / 3, 2 / 3, 0, 0]]), np.ones((1, 5)))
    assert found == {"excess_lo": near(lo[0]), "excess_hi": near(hi[0])}


def test_recovery_shows_it_beside_the_rates(sql: Sql) -> None:
    found = one(sql, "SELECT wrong_rate, twins_wrong_rate, excess FROM recovery WHERE op = 'delay'")
    assert found == {
        "wrong_rate": near(0.6), "twins_wrong_rate": near(0.2), "excess": near(0.4),
    }  # fmt: skip


def test_an_end_that_nobody_knows_is_neither_right_nor_wrong(sql: Sql) -> None:
    sql.execute("UPDATE outcomes SET passed = NULL WHERE injection_id = 'delay0'")
    found = one(sql, "SELECT runs, wrong_rate FROM excess WHERE op = 'delay'")
    assert found == {"runs": 4, "wrong_rate": near(0.5)}
    sql.execute("UPDATE trajectories SET ended = 'budget' WHERE trajectory_id = 'delay0'")
    found = one(sql, "SELECT runs, wrong_rate FROM excess WHERE op = 'delay'")
    assert found == {"runs": 5, "wrong_rate": near(0.6)}
