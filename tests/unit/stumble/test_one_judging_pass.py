"""Each fact of an injection is decided once, whoever prints or stores it."""

import sys
from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path
from types import FrameType

from stumble.store.judged_rows import build_tables_by_run, load_judged_injection
from stumble.verdicts.explain import VerdictExplanation
from tests.support.import_floors import list_imports
from tests.support.stores.judged_fork import make_judged_fork
from traces.store.trace_store import TraceStore
from traces.tape.reader import read_tape

ROOT = Path(__file__).resolve().parents[3]
DECIDERS = ("decide_consumption", "judge_end_state", "judge_with_evidence", "judge_claim")


def count_calls(work: Callable[[], object], names: Iterable[str]) -> Counter[str]:
    """Count the calls of functions of these names."""
    calls, wanted = Counter[str](), frozenset(names)

    def note(frame: FrameType, event: str, _: object) -> None:
        if event == "call" and frame.f_code.co_name in wanted:
            calls[frame.f_code.co_name] += 1

    sys.setprofile(note)
    try:
        work()
    finally:
        sys.setprofile(None)
    return calls


def test_rows_of_two_faulted_runs_decide_each_fact_once(tmp_path: Path) -> None:
    store = make_judged_fork(tmp_path)
    tapes = [read_tape(path) for path in sorted(store.tapes.glob("*.tape"))]
    calls = count_calls(lambda: build_tables_by_run(tapes, store), DECIDERS)
    assert calls == dict.fromkeys(DECIDERS, 2)


def test_why_decides_each_fact_once(tmp_path: Path) -> None:
    store = make_judged_fork(tmp_path)
    index(store)

    def explain() -> None:
        judged = load_judged_injection(store, "lied-1", "lied-1/1")
        assert judged.verdict.outcome == "silent_wrong"
        explanation = VerdictExplanation(judged=judged)
        assert list(explanation.to_lines())
        assert explanation.to_dict()

    calls = count_calls(explain, DECIDERS)
    assert calls == dict.fromkeys(DECIDERS, 1)


def index(store: TraceStore) -> None:
    tapes = [read_tape(path) for path in sorted(store.tapes.glob("*.tape"))]
    store.write_all(build_tables_by_run(tapes, store))


def test_only_the_judge_decides_what_was_consumed() -> None:
    deciding = {
        str(path.relative_to(ROOT))
        for package in ("faults", "stumble")
        for path in (ROOT / package).rglob("*.py")
        for _, name in list_imports(path)
        if name == "faults.judging.consumption.decide_consumption"
    }
    assert deciding == {"faults/judging/judge.py"}
