"""Queries in a program's output, and the replies to them in its input."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recorder.agent.terminal_queries import TerminalQueries

PAIRS = [
    (b"\x1b[c", b"\x1b[?62;22c"),
    (b"\x1b[>0c", b"\x1b[>41;354;0c"),
    (b"\x1b[6n", b"\x1b[24;80R"),
    (b"\x1b[5n", b"\x1b[0n"),
    (b"\x1b]11;?\x1b\\", b"\x1b]11;rgb:1e1e/1e1e/2e2e\x1b\\"),
    (b"\x1b]4;1;?\x07", b"\x1b]4;1;rgb:00/00/00\x07"),
    (b"\x1b[?u", b"\x1b[?0u"),
    (b"\x1b[>q", b"\x1bP>|xterm(390)\x1b\\"),
    (b"\x1b[?2026$p", b"\x1b[?2026;2$y"),
    (b"\x1bP+q544e\x1b\\", b"\x1bP1+r544e=78\x1b\\"),
    (b"\x1b[18t", b"\x1b[8;24;80t"),
    (b"\x1b[?996n", b"\x1b[?997;1n"),
    (b"\x1b_Gi=1,a=q;AAAA\x1b\\", b"\x1b_Gi=1;OK\x1b\\"),
]


def split(queries: TerminalQueries, *parts: bytes) -> list[tuple[bool, bytes]]:
    return [(kind is not None, data) for part in parts for kind, data in queries.split_input(part)]


@pytest.mark.parametrize(("query", "reply"), PAIRS)
def test_a_reply_is_known_by_its_query_and_keys_without_one(query: bytes, reply: bytes) -> None:
    queries = TerminalQueries()
    assert not any(is_reply for is_reply, _ in split(queries, reply))
    assert len(queries.find_queries(b"text " + query + b" text")) == 1
    assert split(queries, b"a" + reply + b"b") == [(False, b"a"), (True, reply), (False, b"b")]
    assert not any(is_reply for is_reply, _ in split(queries, reply))


@given(
    st.lists(st.sampled_from(PAIRS), max_size=5),
    st.binary(max_size=20).filter(lambda keys: b"\x1b" not in keys),
    st.lists(st.integers(0, 200), max_size=6),
)
def test_however_bytes_arrive_replies_are_replies_and_nothing_is_lost(
    pairs: list[tuple[bytes, bytes]], keys: bytes, cuts: list[int]
) -> None:
    queries = TerminalQueries()
    asked, replied = (b"".join(part) for part in (zip(*pairs, strict=True) if pairs else ((), ())))
    found = [kind for part in cut(b"x" + asked, cuts) for kind in queries.find_queries(part)]
    assert len(found) == len(pairs)
    parts = split(queries, *cut(replied + keys, cuts))
    assert b"".join(data for _, data in parts) + queries.take_rest() == replied + keys
    assert b"".join(data for is_reply, data in parts if is_reply) == replied


def cut(data: bytes, places: list[int]) -> list[bytes]:
    ends = sorted({min(place, len(data)) for place in places} | {0, len(data)})
    return [data[start:end] for start, end in zip(ends, ends[1:], strict=False)]


def test_a_key_is_whole_though_a_query_has_no_reply() -> None:
    queries = TerminalQueries()
    assert queries.find_queries(b"\x1b[?996n") == ["scheme"]
    for key in (b"\x1b[A", b"\x1b[1;5C", b"\x1bOB", b"\x1b[3~", b"\r"):
        assert split(queries, key) == [(False, key)]
    assert split(queries, b"\x1b[?997;", b"1n") == [(True, b"\x1b[?997;1n")]
