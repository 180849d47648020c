"""What the taps of a fork do with one request: each part of it is decoded once."""

import sys
from collections import Counter
from pathlib import Path
from types import FrameType

import pytest

from tests.support.scripted.data import load_agents
from tests.support.scripted.runs import run_scripted
from traces.model import Exchange, Request
from traces.taps import TapChain


class WalkCounter:
    """Counts what is computed while a chain of taps handles requests."""

    def __init__(self) -> None:
        self.requests = list[Exchange]()
        self.parsed = Counter[tuple[int, bytes]]()
        """How often each body was parsed, by the number of requests so far."""
        self.headers = 0
        """How often a header was searched for."""
        self.dialects = Counter[int]()
        """How often the dialect of a request was decided."""

    def __call__(self, frame: FrameType, event: str, _: object) -> None:
        if event != "call":
            return
        values, number = frame.f_locals, len(self.requests)
        match frame.f_code.co_name:
            case "parse_json_text":
                self.parsed[number, bytes(values["text"])] += 1
            case "find_header":
                self.headers += 1
            case "find_dialect":
                assert isinstance(values["request"], Request)
                self.dialects[number] += 1


@pytest.fixture
def walk(monkeypatch: pytest.MonkeyPatch) -> WalkCounter:
    counter = WalkCounter()
    request, whole = TapChain.request, TapChain.whole

    def count_request(chain: TapChain, exchange: Exchange) -> Exchange:
        counter.requests.append(exchange)
        sys.setprofile(counter)
        try:
            return request(chain, exchange)
        finally:
            sys.setprofile(None)

    def count_whole(chain: TapChain, exchange: Exchange) -> None:
        sys.setprofile(counter)
        try:
            whole(chain, exchange)
        finally:
            sys.setprofile(None)

    monkeypatch.setattr(TapChain, "request", count_request)
    monkeypatch.setattr(TapChain, "whole", count_whole)
    return counter


def test_each_part_of_a_request_is_decoded_once(tmp_path: Path, walk: WalkCounter) -> None:
    (agent,) = (agent for agent in load_agents() if agent.name == "asks_first")
    assert run_scripted([agent], tmp_path)
    assert len(walk.requests) > 3
    assert walk.dialects.total() == len(walk.requests)
    bodies = {x.request.body for x in walk.requests if x.request.body}
    again = {text: n for (_, text), n in walk.parsed.items() if text in bodies and n > 1}
    assert not again
    assert walk.headers <= 10 * len(walk.requests)
