"""A store with one judged fork: three clean twins, and runs that paid out a wrong amount."""

from copy import replace
from pathlib import Path

from faults.judging.judge import RunEvidence
from tests.support.stores.scripted_runs import BENT, ORDER, Telling, struck
from traces.model import Trajectory
from traces.store.trace_store import TraceStore
from traces.tape.writer import TapeWriter

DONE = '{"ok": true}'


def told(result: str, amount: float, text: str = "DONE") -> Telling:
    read = Telling().asks("get_order", result, id="ord-7314")
    return read.asks("issue_refund", DONE, id="ord-7314", amount=amount).says(text)


def keep(store: TraceStore, run: RunEvidence, trajectory: Trajectory) -> None:
    with TapeWriter(store.tapes / f"{trajectory.id}.tape", trajectory, redact=False) as tape:
        for exchange in run.tape.exchanges:
            tape.write_exchange(exchange)
        if trajectory.condition == "fault":
            tape.write_injection(replace(struck("V", BENT), id=f"{trajectory.id}/1", detect="D3"))
        assert run.tape.ending is not None
        tape.write_ending(run.tape.ending)


def make_judged_fork(root: Path, text: str = "DONE") -> TraceStore:
    """Three clean twins, and two runs whose agent paid out the corrupted amount; all end with
    `said`.
    """
    made = TraceStore(root)
    fork = Trajectory(id="", recorded_at=1e9, source="fork", parent="a", forked_at="c1")
    for n in range(3):
        keep(made, told(ORDER, 1250.4, text).over(), replace(fork, id=f"twin-{n}"))
    lied = told(BENT, 1259.4, text).over(passed=False)
    for id in ("lied-1", "lied-2"):
        keep(made, lied, replace(fork, id=id, condition="fault"))
    return made
