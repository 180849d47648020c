"""A newer judge adds its verdict to that of the older one, which stays as it was."""

from pathlib import Path

import pytest

from faults.lexicon import JUDGE_VERSION
from stumble import indexing
from tests.told_runs import BENT, ORDER, Telling
from traces.model import Ending, Injection, Trajectory
from traces.store import Store
from traces.tape import Writer, read

FORK = {"source": "fork", "parent": "p", "forked_at": "c1", "world": "fresh", "experiment": "e"}


def write(store: Store, id: str, condition: str, result: str, passed: bool) -> None:
    """A run of one experiment on a tape of the store."""
    told = Telling().calls(result).says("DONE").over()
    head = Trajectory(id=id, recorded_at=0.0, condition=condition, **FORK)  # type: ignore[arg-type]
    store.tapes.mkdir(parents=True, exist_ok=True)
    with Writer(store.tapes / f"{id}.tape", head) as tape:
        for exchange in told.tape.exchanges:
            tape.exchange(exchange)
        if condition == "fault":
            tape.injection(
                Injection(
                    id=f"{id}/1", seq=1, side="response", op="digit", family="V", place="http",
                    address="", tool="get_order", call_id="c1", original=ORDER.encode(),
                    mutated=BENT.encode(),
                )
            )  # fmt: skip
        tape.ending(Ending(ended="final", passed=passed))


def test_a_newer_judge_leaves_the_older_verdict(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = Store(tmp_path / ".stumble")
    for n in range(3):
        write(store, f"t{n}", "clean", ORDER, passed=True)
    write(store, "f", "fault", BENT, passed=False)
    now = JUDGE_VERSION
    assert indexing.refresh(store) == []
    for module in ("stumble.indexing", "faults.judge"):
        monkeypatch.setattr(f"{module}.JUDGE_VERSION", now + 1)
    assert indexing.refresh(store) == []
    with store.connect() as connection:
        rows = connection.execute(
            "select judge_version, class, len(twins) from outcomes order by 1"
        ).fetchall()
        newest = connection.execute("select judge_version from verdicts").fetchall()
    assert rows == [(now, "silent_wrong", 3), (now + 1, "silent_wrong", 3)]
    assert newest == [(now + 1,)]
    assert read(store.tapes / "f.tape").trajectory.experiment == "e"
