"""A refusal of the player ends with the agent, also where there is a way out."""

import json
import socket
from pathlib import Path

import pytest

from recorder.proxy.route import UpstreamRoute
from recorder.proxy.server import ProxyServer
from recorder.proxy.upstream import OriginClient, UpstreamClient
from replay.player import refuse_unrecorded_request
from tests.support.servers.replay_server_thread import (
    GET,
    Script,
    dial,
    heard,
    on_stage,
)


def test_a_refusal_is_performed_and_nobody_else_is_asked(tmp_path: Path) -> None:
    script = Script(lambda exchange: refuse_unrecorded_request(exchange, "not recorded"))
    with socket.create_server(("127.0.0.1", 0)) as outside:
        outside.setblocking(False)

        def way(began: float) -> UpstreamClient:
            hosts = {"a.example": ("127.0.0.1", outside.getsockname()[1])}
            return OriginClient(UpstreamRoute(hosts=hosts), began, {})

        with (
            on_stage(ProxyServer(confdir=tmp_path), script, upstream=way) as stage,
            dial(stage) as end,
        ):
            end.sendall(GET)
            head, _, body = heard(end, b"}}").partition(b"\r\n\r\n")
        with pytest.raises(BlockingIOError):
            outside.accept()
    assert head.startswith(b"HTTP/1.1 422 Not Recorded\r\n")
    assert json.loads(body)["error"] == {"type": "diverged", "message": "not recorded"}
    assert [x.answered_by for x in script.got] == ["refused"]
