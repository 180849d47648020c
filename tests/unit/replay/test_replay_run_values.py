"""A value of the run: what neither the command nor an answer gave, and that is of its time."""

import base64
import json
from datetime import UTC, datetime

import pytest

from replay.matching.run_values import find_run_values
from traces.model import Chunk, Exchange, Request, Response, Trajectory

AT = datetime(2026, 11, 22, 20, 40, 30, tzinfo=UTC).timestamp()
UUID = "3f2b8f0e-7c1d-4a53-9a64-1f0c2d3e4b5a"


def found(*texts: str, answer: str = "fine", command: tuple[str, ...] = ("agent",)) -> list[str]:
    told = Response(status=200, chunks=(Chunk(at=0.0, data=answer.encode()),), at=0.0, ended=0.0)
    sent = tuple(
        Exchange(
            seq=n,
            request=Request(method="POST", url="http://tool/x", body=json.dumps(each).encode()),
            response=told,
            started=float(n),
        )
        for n, each in enumerate(texts)
    )
    run = Trajectory(id="a", recorded_at=AT, command=command, workspace="/srv/ann/project")
    return [value.text for _, value in find_run_values(sent, run)]


@pytest.mark.parametrize(
    "value",
    [UUID, "2026-11-22 20:40:31", "20:41", "Sunday, November 22, 2026", "0.25 s", "pid 4711"]
    + ["/tmp/tmpab12cd", "localhost:40123", "1795379999", "5feceb66ffc86f38d952786c6d696c79"],
)
def test_a_value_of_the_run_is_found_once(value: str) -> None:
    if value == "1795379999":
        value = str(int(AT) + 1)
    (one,) = found(f"see {value} here", f"see {value} here")
    assert one in value


@pytest.mark.parametrize(
    "value",
    ["2019-01-02 03:04:05", "07:15", "Friday", "17 of 40", "/srv/ann/project/tmp/a", "/usr/bin/env"]
    + ["3.11", "1500000000"],
)
def test_what_is_not_of_the_run_is_not(value: str) -> None:
    assert found(f"see {value} here") == []


def test_a_part_of_a_file_in_base64_is_no_value_of_the_run() -> None:
    image = base64.b64encode(bytes(range(256)) * 4).decode()
    assert found(image) == found(f"data:image/png;base64,{image}") == []
    assert found(f"see {UUID}") == [UUID]


def test_what_the_agent_was_given_is_not() -> None:
    assert found("begin", f"refund {UUID}", answer=f'{{"order": "{UUID}"}}') == []
    assert found(f"refund {UUID}", command=("agent", f"refund {UUID}")) == []
    assert found(f"refund {UUID}", "end", answer=UUID) == [UUID], "it asked before the answer"
