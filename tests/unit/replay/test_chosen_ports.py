"""An agent's own server on loopback has another port in each run: one stands for another."""

from copy import replace

import pytest

from replay.matching.index import RecordingIndex
from tests.unit.replay.test_client_values import exchange, index, seqs
from tests.unit.replay.test_replay_player import Stage, tape
from traces.model import Request


def asked(port: int, path: str = "/mcp", body: str = "{}", host: str = "127.0.0.1") -> Request:
    headers = (("Host", f"{host}:{port}"),)
    url = f"http://{host}:{port}{path}"
    return Request(method="POST", url=url, headers=headers, body=body.encode())


@pytest.fixture
def recorded() -> RecordingIndex:
    """An agent with two servers, of which one was asked twice."""
    turns = [asked(43771), asked(43771, body="[]"), asked(50001, "/status")]
    return index(*(exchange(each, f"{n}", float(n)) for n, each in enumerate(turns)))


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "[::1]"])
def test_another_port_stands_for_the_recorded_one_in_all_of_a_run(host: str) -> None:
    turns = [asked(43771, host=host), asked(43771, body="[]", host=host)]
    made = index(*(exchange(each, f"{n}", float(n)) for n, each in enumerate(turns)))
    assert seqs(made, [asked(60000, host=host), asked(60000, body="[]", host=host)]) == [0, 1]
    assert made.values.names == {f"{host}:43771": f"{host}:60000"}


def test_two_servers_are_never_one(recorded: RecordingIndex) -> None:
    turns = [
        asked(40000),
        asked(40001, body="[]"),
        asked(40000, "/status"),
        asked(40001, "/status"),
    ]
    assert seqs(recorded, turns) == [0, None, None, 2]


def test_a_recorded_port_that_is_asked_stands_for_itself(recorded: RecordingIndex) -> None:
    assert seqs(recorded, [asked(43771), asked(40000, body="[]"), asked(43771, body="[]")]) == [
        0,
        None,
        1,
    ]


def test_a_server_that_fits_two_is_not_guessed() -> None:
    made = index(exchange(asked(43771), "a"), exchange(asked(43772), "b", 1.0))
    assert seqs(made, [asked(40000)]) == [None]


@pytest.mark.parametrize(
    "other",
    [
        asked(8080),
        asked(32767),
        asked(40000, "/other"),
        asked(40000, body="other"),
        asked(40000, host="localhost"),
        asked(40000, host="127.0.0.2"),
        asked(40000, host="model.test"),
    ],
)
def test_what_is_another_server_counts(other: Request, recorded: RecordingIndex) -> None:
    assert seqs(recorded, [other]) == [None]
    assert recorded.values.names == {}


def test_a_recorded_answer_has_the_port_of_this_run() -> None:
    told = exchange(asked(43771), '{"endpoint": "http://127.0.0.1:43771/mcp"}')
    stage = Stage(tape(told))
    answered = stage.ask(replace(told, request=asked(40000)))
    assert answered.response is not None
    assert answered.response.body == b'{"endpoint": "http://127.0.0.1:40000/mcp"}'
    assert answered.renamed == ("127.0.0.1:43771", "127.0.0.1:40000")
    assert stage.player.diverged == []
