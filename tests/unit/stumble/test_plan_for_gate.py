"""`campaign --plan --max-silent`: the gate passes with the recordings that it names."""

from collections.abc import Iterator

import numpy as np
import pytest

from stumble.campaigns.estimate import format_least_duration
from stumble.campaigns.sample_size import count_recordings_to_pass
from stumble.experiments.seals.alpha_spending import compute_look_levels
from stumble.experiments.sequential_run import CONFIDENCE, LIMIT_LOOKS
from stumble.gate.limits import GateLimit, GateRate, GateVerdict
from tests.support.stores.faulted_runs import Strike, store, strike
from tests.support.stores.in_memory_relations import Sql, empty
from traces.store.sql import run_question


@pytest.fixture(scope="module")
def sql() -> Iterator[Sql]:
    with empty() as connection:
        yield connection


def _gate(sql: Sql, runs: list[Strike], most: float) -> GateVerdict:
    store(sql, runs)
    answer = run_question(sql, "gate")
    names = [column[0] for column in answer.description or ()]
    rows = [dict(zip(names, values, strict=True)) for values in answer.fetchall()]
    [silent] = [GateRate(**row) for row in rows if row["measure"] == "silent"]
    return GateLimit(measure="silent", value=most, least=False, confidence=0.95).verdict(silent)


@pytest.mark.gate
@pytest.mark.parametrize("most", [0.02, 0.05, 0.1, 0.3, 0.5])
def test_so_many_recordings_pass_the_gate_and_one_fewer_does_not(sql: Sql, most: float) -> None:
    needed = count_recordings_to_pass(most)
    assert needed is not None
    runs = [strike(trace=str(n)) for n in range(needed)]
    assert _gate(sql, runs, most) == "pass"
    assert _gate(sql, runs[1:], most) == "unknown"
    assert _gate(sql, runs[1:] * 3, most) == "unknown", "repetitions are no recordings"
    unknown = runs[0] | {"class": None, "noticed": None}
    assert _gate(sql, [*runs[1:], unknown], most) == "unknown"


def test_the_gate_of_the_readme_needs_149_recordings() -> None:
    assert count_recordings_to_pass(0.02) == 149
    assert count_recordings_to_pass(0) is None


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0.02, "1 second"), (12.4, "12 seconds"), (90, "1.5 minutes")],
)
def test_a_plan_never_takes_no_time(seconds: float, text: str) -> None:
    assert format_least_duration(seconds) == text


@pytest.mark.gate
@pytest.mark.parametrize("rate", [0.05, 0.3])
def test_looks_together_decide_wrongly_as_seldom_as_one_gate(sql: Sql, rate: float) -> None:
    """A rate that is the limit is neither met nor violated: each answer is an error."""
    levels = compute_look_levels(LIMIT_LOOKS, (1 - CONFIDENCE) / 2, "pocock")
    sizes = [round(120 * fraction) for fraction in LIMIT_LOOKS]
    drawn = np.random.default_rng(4).random((3000, sizes[-1])) < rate
    answers = [
        [bounds[hits] for hits in drawn[:, :size].sum(1).tolist()]
        for size, level in zip(sizes, levels, strict=True)
        if (bounds := _list_bounds(sql, size, 1 - 2 * level))
    ]
    passed = sum(any(look[n][1] < rate for look in answers) for n in range(3000)) / 3000
    failed = sum(any(look[n][0] > rate for look in answers) for n in range(3000)) / 3000
    assert passed <= 0.03
    assert failed <= 0.03


def _list_bounds(sql: Sql, traces: int, confidence: float) -> list[tuple[float, float]]:
    """The bounds of 0 to `traces` hits in as many traces of one case."""
    query = (
        "SELECT found.lo, found.hi FROM (SELECT clustered_at("
        "list_transform(range($traces), lambda each: (each < hits)::INT::DOUBLE), "
        "list_transform(range($traces), lambda each: 1::DOUBLE), $confidence) AS found "
        "FROM range($traces + 1) AS r(hits))"
    )
    return sql.execute(query, {"traces": traces, "confidence": confidence}).fetchall()
