"""Work and memory of a step depend on what is new in it; what is found does not."""

import json
import sys
import tracemalloc
from collections.abc import Callable
from copy import replace
from functools import partial
from pathlib import Path
from types import FrameType
from typing import get_args

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.support.long_conversation import Change, make_long_conversation
from tests.unit.traces.dialects.test_traces_dialects import BODIES
from traces.conversation.derived_steps import DerivedSteps, derive_steps, derive_tape_steps
from traces.conversation.tracker import ConversationTap
from traces.dialects import LENSES
from traces.dialects.types import DialectLens
from traces.model import Exchange, Trajectory
from traces.shared_sequence import SharedSequence
from traces.tape.reader import read_tape, read_tape_lazily
from traces.tape.seal import seal_tape
from traces.tape.writer import TapeWriter

CHANGES: tuple[Change, ...] = get_args(Change.__value__)
each_change = pytest.mark.parametrize("change", CHANGES)


def describe(derived: DerivedSteps) -> object:
    """Return all that was derived, with plain sequences."""
    contexts = {
        seq: each._replace(call=None, messages=tuple(each.messages), results=tuple(each.results))
        for seq, each in derived.contexts.items()
    }
    returned = {
        seq: [(call.id, result) for call, result in each.returned] for seq, each in contexts.items()
    }
    plain = {seq: each._replace(returned=()) for seq, each in contexts.items()}
    return derived.steps, derived.tool_uses, plain, returned


@given(st.lists(st.sampled_from(CHANGES), max_size=25), st.booleans())
@example(["grow"] * 4 + ["compact"] * 3 + ["grow", "prepend", "reorder", "truncate", "mark"], True)
def test_a_tracker_finds_the_same_however_much_histories_share(
    changes: list[Change], late: bool
) -> None:
    exchanges = [*make_long_conversation(len(changes) + 1, 40, changes)]
    if late:  # an answer is over only after the request that has its result
        exchanges = [with_later_end(each) for each in exchanges]
    shared = describe(derive_steps(exchanges))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(SharedSequence, "count_shared", lambda self, other: 0)
        assert describe(derive_steps(exchanges)) == shared


def with_later_end(exchange: Exchange) -> Exchange:
    """Return the exchange with its answer a second later, if its number is odd."""
    return exchange.with_delay(1.0) if exchange.seq % 2 else exchange


@pytest.mark.parametrize("dialect", LENSES, ids=lambda each: str(each.NAME))
@settings(max_examples=25)
@given(data=st.data())
def test_a_dialect_reads_the_same_whatever_history_was_before(
    dialect: DialectLens, data: st.DataObject
) -> None:
    whole = BODIES[dialect.NAME]
    assert isinstance(whole, dict)
    known, items = dialect.make_dialect_reader(), whole.get(dialect.MESSAGES_KEY)
    history = list[object]()
    for _ in range(data.draw(st.integers(1, 8))):
        kept = data.draw(st.integers(0, len(history)))
        new = data.draw(st.lists(st.sampled_from(items), max_size=4)) if items else []
        history = [*history[:kept], *new]
        body = json.dumps(whole | {dialect.MESSAGES_KEY: history}).encode().ljust(1 << 14)
        assert known(body) == dialect.make_dialect_reader()(body)


def count_calls(function: Callable[[], object]) -> int:
    """Return how many functions are called, native ones included."""
    count = 0

    def note(frame: FrameType, event: str, _: object) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    sys.setprofile(note)
    try:
        function()
    finally:
        sys.setprofile(None)
    return count


def pass_through(tap: ConversationTap, exchange: Exchange) -> None:
    """Show a tap an exchange that is over at once."""
    tap.whole(tap.request(exchange))


@pytest.mark.parametrize("change", ["grow", "mark"])
def test_a_step_of_a_long_run_is_no_more_work_than_an_early_one(change: Change) -> None:
    tap, works = ConversationTap(), list[int]()
    for exchange in make_long_conversation(400, 200, [change] * 400):
        works.append(count_calls(partial(pass_through, tap, exchange)))
    early, late = sum(works[40:80]) / 40, sum(works[-40:]) / 40
    assert late < 1.5 * early + 3 * 64


def write_tape(path: Path, exchanges: list[Exchange], *, is_sealed: bool) -> Path:
    """Write a tape of these exchanges; without an ending it is one that was cut."""
    with TapeWriter(path, Trajectory(id="run", recorded_at=0.0), sync=False) as tape:
        for exchange in exchanges:
            tape.write_exchange(exchange)
    assert not is_sealed or seal_tape(path)
    return path


@each_change
def test_a_rewritten_history_is_on_its_tape_as_it_was(change: Change, tmp_path: Path) -> None:
    changes: list[Change] = [change if n > 4 else "grow" for n in range(80)]
    exchanges = [*make_long_conversation(80, 300, changes)]
    path = write_tape(tmp_path / "a.tape", exchanges, is_sealed=True)
    for tape in (read_tape(path), read_tape_lazily(path)):
        assert [*tape.exchanges] == exchanges
        assert describe(derive_tape_steps(tape)) == describe(derive_steps(exchanges))


@pytest.mark.gate
@pytest.mark.parametrize("is_sealed", [True, False])
@each_change
def test_memory_of_a_tape_depends_on_what_is_new(
    change: Change, is_sealed: bool, tmp_path: Path
) -> None:
    changes: list[Change] = [change if n % 10 == 0 else "grow" for n in range(600)]
    whole = [*make_long_conversation(600, 1000, changes)]
    raw = sum(len(each.request.body) for each in whole)
    path = write_tape(tmp_path / "a.tape", whole, is_sealed=is_sealed)
    del whole
    tracemalloc.start()
    try:
        derived = derive_tape_steps(read_tape(path))
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert len(derived.agent_steps) == 600
    assert peak < 30_000_000
    assert change == "compact" or raw > 3 * peak


@pytest.mark.gate
def test_ten_thousand_results_at_once_are_read_once() -> None:
    (whole,) = make_long_conversation(1, 20, first=10_000)
    messages: list[object] = [{"role": "user", "content": "go on"}]
    for number in range(10_000):
        messages.append({"role": "tool", "tool_call_id": f"old-{number}", "content": "x"})
    tap, works = ConversationTap(), list[int]()
    for seq in range(4):
        messages.append({"role": "user", "content": f"{seq}"})
        body = json.dumps({"model": "m", "messages": messages}).encode()
        request = replace(whole.request, body=body)
        exchange = replace(whole, seq=seq, request=request, started=float(seq))
        works.append(count_calls(partial(pass_through, tap, exchange)))
    assert works[0] > 100_000
    assert max(works[1:]) < 2_000


@pytest.mark.thorough
def test_a_request_of_fifty_megabytes_is_followed_by_its_like(tmp_path: Path) -> None:
    one, two = make_long_conversation(2, 50_000_000)
    three = replace(two, seq=2, started=2.0)
    path = write_tape(tmp_path / "a.tape", [one, two, three], is_sealed=True)
    assert [*read_tape(path).exchanges] == [one, two, three]
    assert len(derive_tape_steps(read_tape_lazily(path)).agent_steps) == 3


@pytest.mark.thorough
def test_a_tape_of_five_thousand_steps_that_was_cut_is_whole_up_to_the_cut(tmp_path: Path) -> None:
    exchanges = [*make_long_conversation(300, 400)]
    tail = [*make_long_conversation(4_700, 4, first=300)]
    path = write_tape(tmp_path / "a.tape", [*exchanges, *tail], is_sealed=False)
    data = path.read_bytes()
    path.write_bytes(data[: len(data) - 100])
    tape = read_tape(path)
    assert len(tape.exchanges) == 5_000
    assert tape.cut_at == 4_999
    assert tape.dropped < 1_000
    assert len(derive_tape_steps(tape).agent_steps) >= 4_999
    assert seal_tape(path) is False
