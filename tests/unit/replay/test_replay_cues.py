"""What a stdio server said unasked is told by what was said before it, and how long before."""

import pytest

from replay.mcp.stdio_timing import find_message_timings
from traces.model import Chunk, Exchange, Request, Response


def said(seq: int, at: float, *chunks: float, method: str = "MESSAGE") -> Exchange:
    """A message of the client's, and when something was said to it."""
    parts = tuple(Chunk(at=each, data=b"{}") for each in chunks)
    return Exchange(
        seq=seq,
        request=Request(method=method, url="stdio://shop/", body=b"{}"),
        response=Response(status=200, chunks=parts, ended=9.0) if parts else None,
        started=at,
        connection=1,
        transport="stdio",
    )


@pytest.mark.parametrize(("speed", "second"), [(0, 0.0), (1, 1.0), (4, 0.25)])
def test_a_cue_is_what_came_before_and_how_long_ago_it_was(speed: float, second: float) -> None:
    start = said(0, 1.0, 1.5, 4.0, 6.0, method="START")
    session = (start, said(1, 2.0, 5.0), said(2, 3.0, 5.5), said(3, 3.0))
    first, progress, last = find_message_timings(start, session, speed)
    half = second / 2
    assert (first, progress, last) == ((0, 0, half), (3, 0, second), (3, 2, half))


def test_another_session_is_no_cue() -> None:
    start = said(0, 1.0, 4.0, method="START")
    other = Exchange(seq=1, request=start.request, connection=2, transport="stdio", started=2.0)
    assert find_message_timings(start, (start, other), 1) == ((0, 0, 3.0),)


def test_a_server_that_was_never_heard_of_has_none() -> None:
    assert find_message_timings(said(0, 1.0, method="START"), ()) == ()
