"""`campaign --plan --max-silent`: the gate passes with the recordings that it names."""

from collections.abc import Iterator

import pytest

from stumble.campaigns.estimate import format_least_duration
from stumble.campaigns.sample_size import count_recordings_to_pass
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
