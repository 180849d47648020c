"""The text of `traces.tape` is the format: a second reader made from it alone sees the same."""

import json
import re
import shutil
from copy import replace
from pathlib import Path
from typing import Any

import pytest

from tests.support.stores import independent_tape_reader
from tests.support.stores.conformance_tapes import (
    MAKERS,
    TAPES,
    held,
    make,
    plainly,
)
from traces import tape as tape_format
from traces.model import BodyEdit, Exchange, Request, Trajectory
from traces.tape.reader import read_tape
from traces.tape.seal import seal_tape
from traces.tape.writer import TapeWriter

NAMES = [maker.__name__ for maker in MAKERS]
HOLDS = json.loads((TAPES / "tapes.json").read_text())


def by_the_other(data: bytes) -> object:
    """What the second reader finds, in the words of tapes.json."""
    tape = independent_tape_reader.read(data)
    exchanges = [exchange(tape["exchanges"][seq]) for seq in sorted(tape["exchanges"])]
    return plainly(tape | {"exchanges": exchanges})


def exchange(table: dict[str, Any]) -> dict[str, object]:
    head, done = table.get("head"), table.get("done", {})
    chunks = table.get("chunks", [])
    here = sum(len(data) for _, data in chunks)
    whole = here == done.get("bytes", here) and (head or "bytes" not in done)
    damage = f"damaged: {here} of {done.get('bytes')} bytes of the answer are on the tape"
    plain = ("seq", "connection", "stream", "transport", "started", "by", "method", "url")
    return {key: table[key] for key in (*plain, "headers", "body")} | {
        "edits": table.get("edits", []),
        "redacted": table.get("redacted", False) or done.get("redacted", False),
        "error": done.get("error") if whole else damage,
        "answer": head
        and {key: head[key] for key in ("at", "status", "reason", "version")}
        | {
            "headers": done.get("headers", head["headers"]),
            "chunks": chunks,
            "ended": done.get("ended"),
            "trailers": done.get("trailers", []),
        },
    }


def test_every_tape_is_there_and_no_other() -> None:
    assert sorted(path.stem for path in TAPES.glob("*.tape")) == sorted(NAMES) == sorted(HOLDS)


@pytest.mark.parametrize("name", NAMES)
def test_the_house_reads_what_the_tape_holds(name: str) -> None:
    assert json.loads(json.dumps(held(read_tape(TAPES / f"{name}.tape")))) == HOLDS[name]["holds"]


@pytest.mark.parametrize("name", [name for name in NAMES if name != "unknown"])
def test_the_second_reader_agrees(name: str) -> None:
    data = (TAPES / f"{name}.tape").read_bytes()
    assert json.loads(json.dumps(by_the_other(data))) == HOLDS[name]["holds"]


@pytest.mark.parametrize("name", ["stream", "error", "deltas", "sealed"])
def test_the_second_reader_finds_each_exchange_by_the_contents(name: str, tmp_path: Path) -> None:
    path = tmp_path / "a.tape"
    shutil.copy(TAPES / f"{name}.tape", path)
    seal_tape(path)
    data = path.read_bytes()

    found = independent_tape_reader.by_contents(data)

    assert list(found.values()) == list(independent_tape_reader.read(data)["exchanges"].values())
    assert list(found) == [independent_tape_reader.key(asked) for asked in found.values()]


def test_the_second_reader_sees_what_a_later_version_may_say() -> None:
    seen = independent_tape_reader.read((TAPES / "unknown.tape").read_bytes())
    assert seen["trajectory"]["mood"] == "good"
    assert len(seen["exchanges"]) == 1
    assert seen["lost"] == 0


def test_the_tapes_come_out_byte_for_byte_the_same(tmp_path: Path) -> None:
    make(tmp_path / "tapes")
    made = {path.name: path.read_bytes() for path in (tmp_path / "tapes").iterdir()}
    assert made == {path.name: path.read_bytes() for path in TAPES.iterdir()}


def test_a_sealed_tape_holds_what_it_held_before() -> None:
    before, after = read_tape(TAPES / "deltas.tape"), read_tape(TAPES / "sealed.tape")
    assert replace(after, path=before.path, spans=before.spans) == before
    assert after.path.stat().st_size < before.path.stat().st_size / 4


def test_a_damaged_block_costs_what_is_in_it_and_no_more() -> None:
    seen = read_tape(TAPES / "blocks.tape")
    assert [x.seq for x in seen.exchanges] == [0, 1, 3]
    assert [damage.why for damage in seen.damage] == ["checksum does not fit"]


def test_all_that_is_written_of_a_request_stands_in_the_text(tmp_path: Path) -> None:
    full = Exchange(
        seq=0,
        request=Request(method="POST", url="http://h/"),
        edits=(BodyEdit(start=0, stop=0, data=b"x"),),
        redacted=True,
        cascade=True,
        pinned=("c1",),
    )
    with TapeWriter(tmp_path / "a.tape", Trajectory(id="r", recorded_at=0.0)) as tape:
        tape.write_exchange(full)
    data = (tmp_path / "a.tape").read_bytes()
    (asked,) = (found for kind, found in independent_tape_reader.frames(data, 8, []) if kind == 2)
    written = independent_tape_reader.Msgpack(asked).value()
    assert written.keys() >= {"edits", "redacted", "cascade", "pinned"}
    text = tape_format.__doc__ or ""
    kind = text[text.index("2 request") : text.index("3 head")]
    assert [key for key in written if not re.search(rf"\b{key}\b", kind)] == []
