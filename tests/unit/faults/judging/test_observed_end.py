"""An end without a verifier: what runs left and sent, beside clean runs."""

import json
from collections import Counter
from copy import replace

from hypothesis import given
from hypothesis import strategies as st

from faults.judging.judge import RunEvidence
from faults.judging.observed_end import compare_left_files, is_steady, judge_by_observation
from faults.judging.sent_writes import (
    count_sent_writes,
    find_missing_writes,
    find_repeated_writes,
)
from tests.support.stores.scripted_runs import Telling, struck
from traces.model import OBSERVED_STATE, RunEnding

type Files = dict[str, str | None]


def ending(files: Files | None, ended: str = "final") -> RunEnding:
    text = "" if files is None else json.dumps(files)
    return RunEnding(ended=ended, state=text or None, state_text=text, state_of=OBSERVED_STATE)  # type: ignore[arg-type]


def booking(times: int, *, answer: str = '{"ok": true}', read: int = 0) -> RunEvidence:
    told = Telling()
    for _ in range(read):
        told = told.asks("get_slots", '{"slots": []}')
    for _ in range(times):
        told = told.asks("book_slot", answer, slot="slot-0900")
    return told.says("Done.").over(passed=None)


def leaving(files: Files | None) -> RunEvidence:
    run = booking(1)
    return replace(run, tape=replace(run.tape, ending=ending(files)))


@given(st.dictionaries(st.text(min_size=1, max_size=4), st.sampled_from("ab"), max_size=4))
def test_a_run_that_leaves_what_clean_runs_leave_is_right(files: Files) -> None:
    clean = [leaving(files), leaving(files), leaving(files)]
    verdict = judge_by_observation(leaving(files), clean, None)
    assert verdict.passed is (True if files else None)


@given(st.dictionaries(st.text(min_size=1, max_size=4), st.sampled_from("ab"), min_size=1))
def test_a_missing_file_and_another_content_are_wrong(files: Files) -> None:
    clean = [leaving(files)] * 3
    path = min(files)
    without = {name: content for name, content in files.items() if name != path}
    for other in (without, files | {path: "c"}):
        verdict = judge_by_observation(leaving(other), clean, None)
        assert verdict.passed is False
        assert path in verdict.difference


def test_a_file_that_was_there_and_that_one_run_alone_changed_leaves_the_end_open() -> None:
    """Clean runs may have written what an earlier run of the program had left."""
    clean = [leaving({}), leaving({}), leaving({"log": "~a"})]
    for digest, word in (("~b", "changed"), (None, "removed")):
        verdict = judge_by_observation(leaving({"receipt": digest}), clean, None)
        assert (verdict.passed, f"receipt was {word}" in (verdict.why or "")) == (None, True)
    others: tuple[Files, ...] = ({"log": "~b"}, {"new": "b"})
    for files in others:
        assert judge_by_observation(leaving(files), clean, None).why != verdict.why


def test_what_varies_among_clean_runs_decides_nothing() -> None:
    clean = [ending({"log": each, "report": "r"}) for each in "abc"]
    assert compare_left_files(ending({"log": "d", "report": "r"}), clean)[:2] == (2, ())


def test_files_that_are_not_known_decide_nothing() -> None:
    known = [ending({"report": "r"})] * 3
    assert compare_left_files(ending(None), known)[:2] == (0, ())
    assert compare_left_files(ending({}), [ending(None)] * 3)[:2] == (0, ())
    cut = RunEnding(ended="final", state="x", state_text='{"report": ', state_of=OBSERVED_STATE)
    assert compare_left_files(cut, known)[:2] == (0, ())
    assert judge_by_observation(leaving({}), [leaving({"report": "r"})], None).passed is None


@given(st.integers(1, 3), st.integers(0, 3))
def test_a_write_that_is_sent_more_often_is_repeated_and_a_read_is_not(
    clean: int, more: int
) -> None:
    twins = (booking(clean), booking(clean), booking(clean))
    run = booking(clean + more, read=more)
    assert count_sent_writes(run) == {"book_slot": clean + more}
    assert find_repeated_writes(run, twins) == (("book_slot",) if more else ())


def posting(times: int) -> RunEvidence:
    told = Telling().runs("ls", "a b")
    for _ in range(times):
        told = told.asks("bash", '{"ok": true}', command="curl -d '{}' http://shop/bash")
    return told.says("Done.").over(passed=None)


@given(st.integers(1, 3), st.integers(-1, 3))
def test_a_post_of_a_shell_is_a_write_under_its_address(clean: int, more: int) -> None:
    twins, run = (posting(clean),) * 3, posting(clean + more)
    name = "POST shop/bash"
    assert +count_sent_writes(run) == Counter({name: clean + more})
    assert find_repeated_writes(run, twins) == ((name,) if more > 0 else ())
    assert find_missing_writes(run, twins) == ((name,) if more < 0 else ())


def test_a_write_that_the_server_knew_again_counts_once() -> None:
    again = booking(2, answer='{"id": "bk-688538"}')
    assert count_sent_writes(again) == {"book_slot": 1}
    named = Telling().asks("get_slots", '{"slots": ["bk-688538"]}')
    for _ in range(2):
        named = named.asks("book_slot", '{"id": "bk-688538"}', slot="slot-0900")
    assert count_sent_writes(named.says("Done.").over()) == {"book_slot": 2}


def test_a_write_that_a_fault_kept_from_its_tool_is_not_known_again() -> None:
    """The answer that the fault replaced is that of the recording, as the next one's is."""
    answer = '{"id": "bk-688538"}'
    run = booking(2, answer=answer)
    exchanges = [
        replace(each, answered_by="fault") if each.seq == 1 else each for each in run.tape.exchanges
    ]
    for op, count in (("http_status", 1), ("lost_ack", 1)):
        injection = struck("E", "{}", op=op, original=answer)
        tape = replace(run.tape, exchanges=tuple(exchanges), injections=(injection,))
        assert count_sent_writes(replace(run, tape=tape)) == {"book_slot": count}


def test_clean_runs_are_steady_if_most_end_with_the_same_writes() -> None:
    crashed = booking(1)
    crashed = replace(crashed, tape=replace(crashed.tape, ending=ending({}, "crash")))
    assert is_steady([booking(1), booking(1), booking(1, read=2)])
    assert is_steady([booking(1), booking(1), crashed])
    assert not is_steady([booking(1), crashed, crashed])
    assert not is_steady([booking(1), booking(2), booking(3)])
    assert not is_steady([])
