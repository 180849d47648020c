"""The turns of a WebSocket are readable, in whatever order messages and ends come."""

from itertools import count
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from recorder.proxy.mitm.websocket import WebSocketExchanges
from traces.model import Exchange, Request, Response, Trajectory
from traces.tape.reader import read_tape
from traces.tape.writer import TapeWriter
from traces.taps import TapChain

UPGRADE = Exchange(
    seq=0,
    started=0.0,
    request=Request(method="GET", url="http://a.example/rt"),
    response=Response(status=101, at=0.0),
    transport="websocket",
)
ENDS: dict[str, dict[str, Any]] = {
    "close": {"closed": (1008, "policy")},
    "agent closes": {"closed": (1000, ""), "by_agent": True},
    "cut": {"error": "eof: the server went without a close"},
}


@given(
    events=st.lists(st.sampled_from(["agent", "server"]), max_size=5),
    end=st.sampled_from(list(ENDS)),
)
@example(events=["agent"], end="close")
@example(events=["agent", "agent", "server"], end="cut")
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
def test_every_turn_is_readable(
    tmp_path_factory: pytest.TempPathFactory, events: list[str], end: str
) -> None:
    path: Path = tmp_path_factory.mktemp("t") / "a.tape"
    with TapeWriter(path, Trajectory(id="r", recorded_at=0.0)) as tape:
        tape.request(UPGRADE)
        tape.head(UPGRADE)
        turns = WebSocketExchanges(
            UPGRADE, Response(status=101, at=0.0), TapChain((tape,)), lambda: 1.0, count(1)
        )
        for event in events:
            if event == "agent":
                turns.take_agent_message((False, b"question"))
            else:
                turns.take_server_message((False, b"answer"))
        turns.finish_turn(**ENDS[end])
    read = read_tape(path)
    assert read.damage == ()
    errors = [each.error for each in read.exchanges]
    assert errors == [None] * events.count("agent") + [ENDS[end].get("error")]
    assert len(read.exchanges) == 1 + events.count("agent")
    assert all(each.response is not None for each in read.exchanges if each.error is None)
