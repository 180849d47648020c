"""A held stream of an MCP server: what the agent gets before the response is changed."""

import pytest

from recorder.proxy.held_stream import HeldMcpStream
from traces.model import Chunk, Response

PRIMER = b"id: 0\ndata: \nretry: 3000\n\n"
QUESTION = b'data: {"jsonrpc":"2.0","id":7,"method":"elicitation/create","params":{}}\n\n'
ANSWER = b'data: {"jsonrpc":"2.0","id":0,"result":{}}\n\n'


@pytest.mark.parametrize(
    ("events", "is_listening", "passed"),
    [
        ((PRIMER, ANSWER), False, b""),
        ((PRIMER, QUESTION, ANSWER), False, PRIMER + QUESTION),
        ((QUESTION, PRIMER, ANSWER), False, QUESTION + PRIMER),
        ((PRIMER,), True, PRIMER),
    ],
)
def test_an_event_that_asks_nothing_waits_with_the_head(
    events: tuple[bytes, ...], is_listening: bool, passed: bytes
) -> None:
    """The head may name a session, which is changed with the response."""
    stream = HeldMcpStream(Response(status=200), is_listening)
    taken = [stream.take(Chunk(at=0.0, data=event)) for event in events]
    assert (b"".join(taken), stream.passed) == (passed, len(passed))
    assert stream.has_response is (ANSWER in events)
