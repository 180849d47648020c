"""Of a sealed tape one exchange is read without the others, and is the one that it says it is."""

import shutil
from collections.abc import Callable
from copy import replace
from itertools import accumulate, pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.bench.conversation import conversation
from tests.support.stores.conformance_tapes import TAPES
from tests.unit.traces.tape.test_traces_tape import RUN, exchange, exchanges, written
from traces.model import Exchange, Injection, RunEnding
from traces.tape import frames
from traces.tape.frame_kinds import REQUEST, TRAJECTORY
from traces.tape.payload import pack, unpack
from traces.tape.random_access import LazyExchanges
from traces.tape.reader import Tape, read_tape, read_tape_lazily
from traces.tape.seal import seal_tape
from traces.tape.table_of_contents import CONTENTS
from traces.tape.writer import TapeWriter

FEW = [HealthCheck.function_scoped_fixture]


@st.composite
def crowds(draw: st.DrawFn) -> tuple[list[Exchange], list[int]]:
    """Exchanges in the order of asking, and the order in which each says its next word."""
    asked = draw(exchanges())
    starts = sorted(each.started for each in asked)
    asked = [replace(each, started=at) for each, at in zip(asked, starts, strict=True)]
    words = [each.seq for each in asked for _ in range(4)]
    return asked, draw(st.permutations(words))


def spoken(path: Path, crowd: list[Exchange], order: list[int]) -> Path:
    """A sealed tape on which these talk at once; requests come in their order."""
    with TapeWriter(path, RUN, redact=False) as tape:
        for each in crowd:
            tape.request(each)
        left = {each.seq: list(words(tape, each)) for each in crowd}
        for seq in order:
            if left[seq]:
                say, *said = left[seq].pop(0)
                say(*said)
        for rest in left.values():
            for say, *said in rest:
                say(*said)
        for each in crowd[:1]:
            injection = Injection(
                id="i", seq=each.seq, side="response", op="o", place="http", address="a"
            )
            tape.write_injection(injection)
        tape.write_ending(RunEnding(ended="final"))
    assert seal_tape(path)
    return path


def words(tape: TapeWriter, exchange: Exchange):
    """What the tape is told of an exchange after its request, one thing after the other."""
    if exchange.response is not None:
        yield tape.head, exchange
        yield from ((tape.chunk, exchange, chunk) for chunk in exchange.response.chunks)
    yield tape.done, exchange


def same(one: Tape, two: Tape) -> bool:
    """True where two tapes say the same, and as much of it was read as can be."""
    plain = [replace(t, exchanges=tuple(t.exchanges), spans=dict(t.spans)) for t in (one, two)]
    return plain[0] == plain[1]


@given(crowd=crowds(), data=st.data())
@settings(suppress_health_check=FEW, deadline=None)
def test_what_is_browsed_is_what_is_read(
    tmp_path_factory: pytest.TempPathFactory,
    crowd: tuple[list[Exchange], list[int]],
    data: st.DataObject,
) -> None:
    path = spoken(tmp_path_factory.mktemp("t") / "a.tape", *crowd)
    whole, tape = read_tape(path), read_tape_lazily(path)

    assert isinstance(tape.exchanges, LazyExchanges)
    for place in data.draw(st.permutations(range(len(whole.exchanges)))):
        assert tape.exchanges[place] == whole.exchanges[place] == crowd[0][place]
    assert same(tape, whole)


@pytest.mark.parametrize("path", sorted(TAPES.glob("*.tape")), ids=lambda path: path.stem)
def test_tapes_of_any_shape_can_be_browsed_sealed_or_not(path: Path, tmp_path: Path) -> None:
    copy = tmp_path / "a.tape"
    shutil.copy(path, copy)
    assert same(read_tape_lazily(copy), read_tape(copy))
    if seal_tape(copy):
        assert isinstance(read_tape_lazily(copy).exchanges, LazyExchanges)
        assert same(read_tape_lazily(copy), read_tape(copy))


@pytest.mark.gate
def test_the_end_of_a_conversation_is_read_without_its_middle(tmp_path: Path) -> None:
    said = list(conversation(300))
    path = written(tmp_path / "a.tape", *said)
    seal_tape(path)
    for first in (299, 150, 65, 0):
        tape = read_tape_lazily(path)
        assert tape.exchanges[first] == said[first]
        assert list(tape.exchanges) == said


@pytest.mark.parametrize("share", [0.02, 0.3, 0.6, 0.9, 0.97, 0.995])
def test_a_damaged_tape_is_read_as_far_as_it_goes(share: float, tmp_path: Path) -> None:
    path = written(tmp_path / "a.tape", *conversation(12))
    seal_tape(path)
    data = bytearray(path.read_bytes())
    data[max(120, int(len(data) * share))] ^= 8
    path.write_bytes(bytes(data))

    tape = read_tape_lazily(path)

    assert tape.damage
    assert same(tape, read_tape(path))


def test_a_tape_that_goes_on_behind_its_contents_is_read_whole(tmp_path: Path) -> None:
    path = written(tmp_path / "a.tape", exchange(0))
    seal_tape(path)
    other = written(tmp_path / "b.tape", exchange(0), exchange(1))
    more = [f for f in frames.read_frames(other.read_bytes()) if isinstance(f, frames.TapeFrame)][
        5:9
    ]
    with path.open("ab") as file:
        file.writelines(frames.encode_frame(each.kind, bytes(each.payload)) for each in more)
    assert [each.seq for each in read_tape_lazily(path).exchanges] == [0, 1]


def test_who_asked_first_has_the_lower_number_or_there_are_no_contents(tmp_path: Path) -> None:
    late, early = exchange(0), replace(exchange(1), started=-1.0)
    path = written(tmp_path / "a.tape", late, early)
    seal_tape(path)
    tape = read_tape_lazily(path)
    assert tape.exchanges == (late, early)


def _turned(keys: bytes) -> bytes:
    return keys[16:32] + keys[:16] + keys[32:]


LIES: dict[str, Callable[[dict[str, Any]], object]] = {
    "unknown keys": lambda said: said | {"keys": bytes(len(said["keys"]))},
    "the first two keys": lambda said: said | {"keys": _turned(said["keys"])},
    "seqs": lambda said: said | {"seqs": said["seqs"][::-1]},
    "numbers that are not there": lambda said: said | {"seqs": [n + 9 for n in said["seqs"]]},
    "one run for all": lambda said: said | {"runs": [said["runs"][0], sum(said["runs"]), 0, 0]},
    "shifted": lambda said: said | {"runs": [said["runs"][0] + 1, *said["runs"][1:]]},
    "backwards": lambda said: said | {"runs": [-n for n in said["runs"]]},
    "far away": lambda said: said | {"runs": [n + (1 << 40) for n in said["runs"]]},
    "half": lambda said: said | {"runs": [said["runs"][0], said["runs"][1] // 2, 0, 0]},
    "open": lambda said: said | {"open": said["seqs"]},
    "texts": lambda said: said | {"seqs": [str(seq) for seq in said["seqs"]]},
    "no column": lambda said: {name: said[name] for name in said if name != "counts"},
    "fewer": lambda said: said | {"counts": [1]},
    "no rest": lambda said: said | {"rest": []},
    "nothing": lambda said: None,
}


def lied(path: Path, wrong_value: str) -> None:
    """Put other contents, with a checksum that fits, at the end of a sealed tape."""
    data = path.read_bytes()
    last = list(frames.read_outer_frames(data))[-1]
    assert isinstance(last, frames.TapeFrame)
    assert last.kind == CONTENTS
    said = LIES[wrong_value](unpack(last.payload))
    path.write_bytes(data[: last.offset] + frames.encode_frame(CONTENTS, pack(said)))


@pytest.mark.parametrize("lie", LIES)
def test_contents_that_lie_are_an_error_and_no_other_exchange(lie: str, tmp_path: Path) -> None:
    path = written(tmp_path / "a.tape", exchange(0), exchange(1))
    seal_tape(path)
    lied(path, lie)

    with pytest.raises(ValueError, match=f"^{path}: "):
        list(read_tape_lazily(path).exchanges)

    assert list(read_tape(path).exchanges) == [exchange(0), exchange(1)]


def test_bodies_that_are_said_by_way_of_one_another_are_an_error(tmp_path: Path) -> None:
    path = written(tmp_path / "a.tape", exchange(0), exchange(1))
    seal_tape(path)
    first, _, last = [
        f for f in frames.read_outer_frames(path.read_bytes()) if isinstance(f, frames.TapeFrame)
    ]
    said, turned = unpack(last.payload), b""
    sizes: list[int] = []
    for each in frames.read_frames(path.read_bytes()):
        assert isinstance(each, frames.TapeFrame)
        value = unpack(each.payload)
        if each.kind == REQUEST:
            value |= {"body": {"parent": 1 - value["seq"], "pieces": [(0, 2)]}}
        if each.kind not in (TRAJECTORY, CONTENTS):
            sizes.append(len(frame := frames.encode_frame(each.kind, pack(value))))
            turned += frame
    edges = list(accumulate(sizes, initial=first.length))
    whole = [edges[0], edges[4], edges[4], edges[8]]
    said |= {"runs": [b - a for a, b in pairwise([0, *whole])], "counts": [1, 1]}
    said |= {"rest": [0, first.length, edges[8] - first.length, sizes[8]]}
    start = path.read_bytes()[: first.offset + first.length]
    path.write_bytes(start + turned + frames.encode_frame(CONTENTS, pack(said)))

    with pytest.raises(ValueError, match="do not fit exchange 0"):
        list(read_tape_lazily(path).exchanges)
