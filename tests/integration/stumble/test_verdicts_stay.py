"""Forking a recording again, by anybody with any verifier, changes no earlier verdict."""

from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from stumble.store import index
from tests.support.stores.scripted_runs import (
    BENT,
    ORDER,
    Telling,
)
from traces.model import Injection, RunEnding, Trajectory
from traces.store.trace_store import TraceStore
from traces.tape.writer import TapeWriter

pytestmark = pytest.mark.timeout(600)

VERDICTS = "SELECT * FROM verdicts ORDER BY injection_id"


@dataclass(frozen=True, slots=True, kw_only=True)
class Forked:
    """One fork of the recording: who ran it, how its runs went, and who judged them."""

    agent: str
    command: str
    model: str
    verifier: str
    twins: tuple[bool | None, ...]
    """What the verifier said of each clean twin."""
    passed: bool | None
    looks_again: bool
    """Whether twins and the faulted run read the order twice."""


FORKED = st.builds(
    Forked,
    agent=st.sampled_from(("desk", "clerk")),
    command=st.sampled_from(("agent.py", "agent.py --careful")),
    model=st.sampled_from(("m", "m-2")),
    verifier=st.sampled_from(("sums", "tests")),
    twins=st.lists(st.sampled_from((True, True, False, None)), min_size=0, max_size=4).map(tuple),
    passed=st.sampled_from((True, False, None)),
    looks_again=st.booleans(),
)


def write_fork(store: TraceStore, number: int, forked: Forked) -> None:
    """The tapes of a fork: its clean twins and the run with the fault."""
    for twin, passed in enumerate(forked.twins):
        write_run(store, number, f"f{number}-t{twin}", forked, passed, is_struck=False)
    write_run(store, number, f"f{number}", forked, forked.passed, is_struck=True)


def write_run(
    store: TraceStore, number: int, id: str, forked: Forked, passed: bool | None, *, is_struck: bool
) -> None:
    told = Telling().calls(BENT if is_struck else ORDER)
    if forked.looks_again:
        told.calls(ORDER)
    head = Trajectory(
        id=id, recorded_at=float(number), source="fork", parent="recording", forked_at="c1",
        world="fresh", experiment=f"e{number}", condition="fault" if is_struck else "clean",
        agent=forked.agent, command=tuple(forked.command.split()), model=forked.model,
    )  # fmt: skip
    store.tapes.mkdir(parents=True, exist_ok=True)
    with TapeWriter(store.tapes / f"{id}.tape", head) as tape:
        for exchange in told.says("DONE: refunded").over().tape.exchanges:
            tape.write_exchange(exchange)
        if is_struck:
            tape.write_injection(
                Injection(
                    id=f"{id}/1", seq=1, side="response", op="digit", family="V", place="http",
                    address="", tool="get_order", call_id="c1", original=ORDER.encode(),
                    mutated=BENT.encode(),
                )
            )  # fmt: skip
        tape.write_ending(RunEnding(ended="final", passed=passed, verifier_of=forked.verifier))


def verdicts(store: TraceStore) -> dict[str, tuple[object, ...]]:
    """Every column of every verdict, by injection."""
    assert index.refresh_index(store) == []
    with store.open_locked() as connection:
        return {str(row[0]): row for row in connection.execute(VERDICTS).fetchall()}


@pytest.mark.gate
@settings(deadline=None, max_examples=4, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(FORKED, min_size=2, max_size=3))
def test_forking_again_changes_no_earlier_verdict(forks: list[Forked]) -> None:
    with TemporaryDirectory() as folder:
        store = TraceStore(Path(folder) / ".stumble")
        earlier: dict[str, tuple[object, ...]] = {}
        for number, forked in enumerate(forks):
            write_fork(store, number, forked)
            now = verdicts(store)
            assert len(now) == number + 1
            assert {id: now[id] for id in earlier} == earlier
            earlier = now


@pytest.mark.gate
@settings(deadline=None, max_examples=2, suppress_health_check=[HealthCheck.too_slow])
@given(FORKED, st.integers(1, 2))
def test_the_same_fork_made_again_has_the_same_verdict(forked: Forked, times: int) -> None:
    with TemporaryDirectory() as folder:
        store = TraceStore(Path(folder) / ".stumble")
        for number in range(times + 1):
            write_fork(store, number, forked)
        facts = "SELECT class, noticed, passed, baseline_valid, len(twins) FROM verdicts"
        verdicts(store)
        with store.open_locked() as connection:
            assert len(set(connection.execute(facts).fetchall())) == 1
