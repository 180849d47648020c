"""What the index makes of tapes: verdicts beside older ones, and ends that only twins can judge."""

from pathlib import Path

import pytest

from stumble.store import index
from tests.support.stores.scripted_runs import (
    BENT,
    ORDER,
    Telling,
)
from traces.model import JUDGE_VERSION, Injection, RunEnding, Trajectory
from traces.store.trace_store import TraceStore
from traces.tape.reader import read_tape
from traces.tape.writer import TapeWriter

FORK = {"source": "fork", "parent": "p", "forked_at": "c1", "world": "fresh", "experiment": "e"}


def write(
    store: TraceStore,
    id: str,
    condition: str,
    result: str,
    passed: bool | None,
    state: str | None = None,
) -> None:
    """A run of one experiment on a tape of the store."""
    told = Telling().calls(result).says("DONE").over()
    head = Trajectory(id=id, recorded_at=0.0, condition=condition, **FORK)  # type: ignore[arg-type]
    store.tapes.mkdir(parents=True, exist_ok=True)
    with TapeWriter(store.tapes / f"{id}.tape", head) as tape:
        for exchange in told.tape.exchanges:
            tape.write_exchange(exchange)
        if condition == "fault":
            tape.write_injection(
                Injection(
                    id=f"{id}/1", seq=1, side="response", op="digit", family="V", place="http",
                    address="", tool="get_order", call_id="c1", original=ORDER.encode(),
                    mutated=BENT.encode(),
                )
            )  # fmt: skip
        of = "w" if state else None
        tape.write_ending(RunEnding(ended="final", passed=passed, state=state, state_of=of))


@pytest.mark.gate
def test_a_newer_judge_leaves_the_older_verdict(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = TraceStore(tmp_path / ".stumble")
    for n in range(3):
        write(store, f"t{n}", "clean", ORDER, passed=True)
    write(store, "f", "fault", BENT, passed=False)
    now = JUDGE_VERSION
    assert index.refresh_index(store) == []
    for module in ("stumble.store.index", "stumble.store.judged_rows", "faults.judging.judge"):
        monkeypatch.setattr(f"{module}.JUDGE_VERSION", now + 1)
    assert index.refresh_index(store) == []
    with store.connect() as connection:
        rows = connection.execute(
            "select judge_version, class, len(twins) from outcomes order by 1"
        ).fetchall()
        newest = connection.execute("select judge_version from verdicts").fetchall()
    assert rows == [(now, "silent_wrong", 3), (now + 1, "silent_wrong", 3)]
    assert newest == [(now + 1,)]
    assert read_tape(store.tapes / "f.tape").trajectory.experiment == "e"


def graded(store: TraceStore) -> dict[str, tuple[object, ...]]:
    """What the store holds of each run's end."""
    assert index.refresh_index(store) == []
    with store.connect() as connection:
        rows = connection.execute(
            "select trajectory_id, passed, passed_by, passed_reason from trajectories"
        ).fetchall()
    return {id: tuple(rest) for id, *rest in rows}


def test_where_only_end_states_are_known_twins_say_what_is_right(tmp_path: Path) -> None:
    store = TraceStore(tmp_path / ".stumble")
    for n, state in enumerate(("paid", "paid", "nothing")):
        write(store, f"t{n}", "clean", ORDER, None, state)
    write(store, "f", "fault", BENT, None, "paid twice")
    found = graded(store)
    assert found["t0"] == found["t1"] == (True, "state", None)
    assert found["t2"] == found["f"] == (False, "state", None)


@pytest.mark.gate
def test_too_few_twins_leave_an_end_unknown_with_the_reason_until_there_are_more(
    tmp_path: Path,
) -> None:
    store = TraceStore(tmp_path / ".stumble")
    for n in range(2):
        write(store, f"t{n}", "clean", ORDER, None, "paid")
    assert graded(store)["t0"] == (None, None, "2 of 3 clean twins have an end state")
    write(store, "t2", "clean", ORDER, None, "paid")
    assert set(graded(store).values()) == {(True, "state", None)}


def test_where_no_two_twins_agree_the_reason_names_it(tmp_path: Path) -> None:
    store = TraceStore(tmp_path / ".stumble")
    for n in range(3):
        write(store, f"t{n}", "clean", ORDER, None, f"at {n}")
    write(store, "f", "fault", BENT, None, "at 9")
    why = "no two clean twins end alike: let --state leave out what varies"
    assert {rest for rest in graded(store).values()} == {(None, None, why)}
