"""The player finds, refuses and explains; it never guesses."""

import json
from collections.abc import Callable
from copy import replace
from itertools import count
from pathlib import Path

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from replay.fork_state import Fork
from replay.matching.diff import explain_miss
from replay.matching.index import BUILT_IN_RULES, RecordingIndex
from replay.matching.rules import MatchRules, parse_match_rule
from replay.player import REFUSED_STATUS, PlaybackOptions, TapePlayer
from tests.support.tiers import examples
from traces.conversation.tracker import ConversationTap
from traces.dialects import openai_chat
from traces.dialects.types import ModelAnswer, ToolCall
from traces.model import Chunk, Exchange, Request, Response, RunEnding, Trajectory
from traces.redaction.redactor import Redactor
from traces.tape.random_access import SealedTape
from traces.tape.reader import Tape, read_tape_lazily
from traces.tape.seal import seal_tape
from traces.tape.writer import TapeWriter
from traces.taps import TapChain

MODEL = "http://m/v1/chat/completions"
GO: list[dict[str, object]] = [{"role": "user", "content": "go"}]
CALL = ToolCall(id="c1", name="get_order", arguments="{}")


def model(messages: list[dict[str, object]], *calls: ToolCall, text: str = "") -> Exchange:
    body = json.dumps({"model": "m", "messages": messages}).encode()
    answer = ModelAnswer(message=text, calls=calls, model="m")
    headers, chunks = openai_chat.write_model_answer(answer, stream=False, id="x", created=0)
    response = Response(status=200, headers=headers, chunks=chunks, ended=0.0)
    request = Request(method="POST", url=MODEL, body=body)
    return Exchange(seq=0, request=request, response=response)


def tool(said: str, body: str = "{}", status: int = 200) -> Exchange:
    request = Request(method="POST", url="http://shop/get_order", body=body.encode())
    chunks = (Chunk(at=0.0, data=said.encode()),)
    answer = Response(status=status, chunks=chunks, ended=0.0)
    return Exchange(seq=0, request=request, response=answer)


def after(text: str, call: ToolCall = CALL) -> list[dict[str, object]]:
    function = {"name": call.name, "arguments": call.arguments}
    return [
        *GO,
        {"role": "assistant", "tool_calls": [{"id": call.id, "function": function}]},
        {"role": "tool", "tool_call_id": call.id, "content": text},
    ]


def tape(*exchanges: Exchange) -> Tape:
    timed = []
    for seq, x in enumerate(exchanges):
        assert x.response is not None
        at = float(seq)
        chunks = tuple(replace(chunk, at=at + 0.5) for chunk in x.response.chunks)
        answer = replace(x.response, at=at + 0.4, chunks=chunks, ended=at + 0.6)
        timed.append(replace(x, seq=seq, started=at, response=answer))
    run = Trajectory(id="rec", recorded_at=0.0)
    return Tape(path=Path("x"), trajectory=run, exchanges=tuple(timed), spans={})


RECORDED = tape(model(GO, CALL), tool('{"total": 345}'), model(after('{"total": 345}'), text="345"))


class Stage:
    """Asks a player as an agent would; what it lets out is answered by `live`."""

    def __init__(
        self,
        recording: Tape,
        live: Exchange | None = None,
        *,
        kinds=(),
        redact: Callable[[Request], Request] = lambda request: request,
        rules: MatchRules = BUILT_IN_RULES,
        **options,
    ) -> None:
        self.watch = ConversationTap()
        playback = PlaybackOptions(live=kinds, **options)
        self.player = TapePlayer(
            recording, self.watch, options=playback, redact=redact, rules=rules
        )
        self.taps, self.seqs, self.live = TapChain([self.watch, self.player]), count(), live

    def ask(self, exchange: Exchange, at: float = 100.0) -> Exchange:
        asked = Exchange(seq=next(self.seqs), request=exchange.request, started=at)
        answered = self.taps.request(asked)
        if answered.response is None and answered.error is None:
            assert self.live is not None, "it went out, and there is no way out"
            answered = replace(answered, response=self.live.response, error=self.live.error)
        self.taps.done(answered)
        return answered


def test_a_recorded_run_gets_its_recorded_answers_byte_for_byte() -> None:
    stage = Stage(RECORDED)
    for x in RECORDED.exchanges:
        said = stage.ask(x)
        assert said.answered_by == "recorded"
        assert said.response is not None
        assert x.response is not None
        assert said.response.body == x.response.body
        assert said.response.headers == x.response.headers
    assert stage.player.diverged == []


def test_a_struck_turn_of_the_model_uses_up_its_recorded_answer() -> None:
    stage = Stage(RECORDED)
    limited = Response(status=429, at=100.0, ended=100.0)
    asked = Exchange(seq=next(stage.seqs), request=RECORDED.exchanges[0].request, started=100.0)
    stage.taps.done(stage.taps.request(asked.with_response(limited, None, "fault")))
    assert stage.ask(RECORDED.exchanges[0]).answered_by == "refused"


def test_at_speed_0_all_is_now_and_at_speed_1_gaps_are_as_recorded() -> None:
    def times(speed: float) -> tuple[float, float, float | None]:
        answer = Stage(RECORDED, speed=speed).ask(RECORDED.exchanges[0], at=10.0).response
        assert answer is not None
        return answer.at, answer.chunks[0].at, answer.ended

    assert times(0) == (10.0, 10.0, 10.0)
    assert times(1) == (10.4, 10.5, 10.6)
    assert times(2) == (10.2, 10.25, 10.3)


def test_other_spacing_and_key_order_say_the_same() -> None:
    x = RECORDED.exchanges[0]
    value = json.loads(x.request.body)
    spaced = json.dumps(dict(reversed(value.items())), indent=2).encode()
    assert Stage(RECORDED).ask(replace(x, request=replace(x.request, body=spaced))).answered_by == (
        "recorded"
    )


def test_a_miss_is_refused_not_retried_and_shows_where_it_parts() -> None:
    stage = Stage(RECORDED)
    stage.ask(RECORDED.exchanges[0])
    said = stage.ask(model(after("HTTP 502: bad gateway")))

    assert said.answered_by == "refused"
    assert said.response is not None
    assert said.response.status == REFUSED_STATUS
    assert ("x-should-retry", "false") in said.response.headers
    (why,) = stage.player.diverged
    assert "nearest is exchange 2" in why
    assert "messages[2].content" in why
    assert "- " in why
    assert "345" in why
    assert "+ " in why
    assert "HTTP 502" in why


def test_asking_more_often_than_recorded_is_a_miss_that_says_so() -> None:
    stage = Stage(RECORDED)
    for x in RECORDED.exchanges:
        stage.ask(x)
    assert stage.ask(RECORDED.exchanges[1]).answered_by == "refused"
    assert "more often" in explain_miss(RECORDED.exchanges[1].request, RECORDED.exchanges)


def test_tool_requests_that_say_the_same_in_other_bytes_are_one_miss() -> None:
    """They are no attempts of one another, since those of a tool are equal to the byte."""
    stage = Stage(RECORDED)
    for seq, body in enumerate((b'{"left": 1, "right": 2}', b'{"right":2,"left":1}')):
        request = Request(method="POST", url="http://shop/unknown", body=body)
        said = stage.ask(Exchange(seq=seq, request=request))
        assert said.answered_by == "refused"
    assert len(stage.player.diverged) == 1


def test_among_equals_the_order_of_the_recording_holds() -> None:
    twice = tape(tool("first"), tool("second"))
    stage = Stage(twice)
    said = [stage.ask(twice.exchanges[0]).response for _ in range(2)]
    assert [answer.body for answer in said if answer] == [b"first", b"second"]


def test_telemetry_is_answered_and_never_counts_as_diverged() -> None:
    stage = Stage(RECORDED)
    request = Request(method="POST", url="https://x/v1/traces", body=b"")
    said = stage.ask(Exchange(seq=0, request=request))
    assert (said.answered_by, said.response and said.response.status) == ("simulated", 204)
    assert stage.player.diverged == []


def test_live_tools_go_out_and_a_different_answer_diverges() -> None:
    stage = Stage(RECORDED, tool('{ "total":345 }'), kinds=("tool",))
    stage.ask(RECORDED.exchanges[0])
    assert stage.ask(RECORDED.exchanges[1]).answered_by == "live"
    assert stage.player.diverged == []

    stage = Stage(RECORDED, tool('{"total": 346}'), kinds=("tool",))
    stage.ask(RECORDED.exchanges[0])
    stage.ask(RECORDED.exchanges[1])
    assert "was 345 at total, is 346" in stage.player.diverged[0]


def test_a_secret_in_a_live_answer_is_the_one_that_was_replaced_on_the_tape() -> None:
    def said(key: str, total: int = 345) -> Exchange:
        return tool(json.dumps({"api_key": key, "total": total}))

    mine, yours = "sk-ant-0123456789abcdef0123", "sk-ant-9876543210fedcba9876543"
    was = said(mine)
    assert was.response is not None
    asked = replace(was.request, body=was.response.body)
    hidden = Redactor().redact_request(asked).body.decode()
    assert mine not in hidden
    recording = tape(model(GO, CALL), tool(hidden))
    for live, diverged in ((said(yours), 0), (said(yours, 346), 1)):
        stage = Stage(recording, live, kinds=("tool",), redact=Redactor().redact_request)
        stage.ask(recording.exchanges[0])
        stage.ask(recording.exchanges[1])
        assert len(stage.player.diverged) == diverged


def fork_at_the_call(*, world: bool) -> Fork:
    stage = Stage(RECORDED)
    stage.ask(RECORDED.exchanges[0])
    (call,) = stage.watch.conversations.calls
    return Fork(call.id, call.prefix, world=world)


def test_a_fork_follows_the_tape_to_the_struck_result_and_is_live_from_there() -> None:
    fork = fork_at_the_call(world=True)
    live = model(after("HTTP 503"), text="sorry")
    stage = Stage(RECORDED, live, fork=fork)
    assert stage.ask(RECORDED.exchanges[0]).answered_by == "recorded"
    stage.live = tool('{"total": 345}')
    assert stage.ask(RECORDED.exchanges[1]).answered_by == "live"
    stage.live = live
    assert stage.ask(live).answered_by == "live"
    assert stage.player.diverged == []
    assert [x.seq for x in stage.player.saved] == [0]


def test_a_fork_without_a_world_ends_as_unknown_where_the_tape_ends() -> None:
    live = model(after('{"total": 345}'), replace(CALL, id="c2", arguments='{"id": 2}'))
    stage = Stage(RECORDED, live, fork=fork_at_the_call(world=False))

    stage.ask(RECORDED.exchanges[0])
    assert stage.ask(RECORDED.exchanges[1]).answered_by == "recorded"
    stage.ask(live)
    assert stage.ask(tool("", '{"id": 2}')).answered_by == "refused"
    assert stage.player.diverged == []
    assert len(stage.player.missed) == 1


def test_what_the_tape_has_lost_is_refused_and_not_played_as_empty() -> None:
    first, *rest = RECORDED.exchanges
    lost = replace(first, error="damaged: 0 of 9 bytes of the answer are on the tape")
    stage = Stage(replace(RECORDED, exchanges=(lost, *rest)))
    assert stage.ask(first).answered_by == "refused"
    assert len(stage.player.diverged) == 1


def poll(seq: int, url: str = "http://127.0.0.1:7/health") -> Exchange:
    request = Request(method="GET", url=url)
    return Exchange(seq=seq, request=request, error="refused: by 127.0.0.1", started=float(seq))


def test_of_polls_without_an_answer_some_may_be_left_out_and_not_all() -> None:
    polls = (poll(3), poll(4), poll(5, "http://127.0.0.1:7/other"))
    stage = Stage(replace(RECORDED, exchanges=(*RECORDED.exchanges, *polls)))
    for x in (*RECORDED.exchanges, polls[0]):
        stage.ask(x)
    assert [x.seq for x in stage.player.list_unasked()] == [5]


def test_a_background_request_is_not_compared_and_never_gets_another_ones_answer() -> None:
    sent = tool("stored", '{"events": 1}')
    stage = Stage(
        tape(*RECORDED.exchanges, sent),
        rules=MatchRules([parse_match_rule("background:POST http://shop/get_order")]),
    )
    said = stage.ask(tool("", '{"events": 2, "more": true}')).response
    assert said is not None
    assert (said.status, said.body) == (503, b"")
    assert stage.player.diverged == []
    assert [x.seq for x in stage.player.list_unasked()] == [0, 2]
    assert list(stage.player.background) == ["POST http://shop/get_order"]


def test_what_was_never_asked_for_is_known() -> None:
    stage = Stage(RECORDED)
    stage.ask(RECORDED.exchanges[0])
    assert [x.seq for x in stage.player.list_unasked()] == [1, 2]


class AgainstAList(RuleBasedStateMachine):
    """The index against the plainest thing that could work: a list searched from the front."""

    asked = st.sampled_from(["a", "b", "c"])

    def __init__(self) -> None:
        super().__init__()
        bodies = ["a", "b", "a", "c", "a", "b"]
        self.left = list(enumerate(bodies))
        recorded = [tool(str(i), json.dumps(body)) for i, body in self.left]
        self.index = RecordingIndex(tape(*recorded).exchanges)

    @rule(body=asked, spaced=st.booleans())
    def ask(self, body: str, spaced: bool) -> None:
        text = json.dumps(body) + (" " if spaced else "")
        found = self.index.find(tool("", text).request)
        expected = next((i for i, held in self.left if held == body), None)
        assert (found.exchange.seq if found else None) == expected
        self.left = [each for each in self.left if each[0] != expected]

    @invariant()
    def what_is_left_is_left(self) -> None:
        assert [x.seq for x in self.index.iter_unused()] == [i for i, _ in self.left]


TestAgainstAList = AgainstAList.TestCase
TestAgainstAList.settings = settings(max_examples=examples(40), stateful_step_count=12)


def test_of_a_large_recording_only_the_requests_that_are_listed_are_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "large.tape"
    with TapeWriter(path, Trajectory(id="large", recorded_at=0.0)) as writer:
        for seq in range(50):
            request = Request(method="GET", url=f"http://shop.example/{seq}")
            answer = Response(status=200, at=float(seq), ended=float(seq))
            writer.write_exchange(
                Exchange(seq=seq, started=float(seq), request=request, response=answer)
            )
        writer.write_ending(RunEnding(ended="final"))
    assert seal_tape(path)
    read, read_exchange = list[int](), SealedTape.read_exchange

    def counted(book: SealedTape, number: int) -> Exchange:
        read.append(number)
        return read_exchange(book, number)

    monkeypatch.setattr(SealedTape, "read_exchange", counted)
    player = TapePlayer(read_tape_lazily(path), ConversationTap())
    assert [each.seq for each in player.list_unasked(3)] == [0, 1, 2]
    assert read == [0, 1, 2]
    assert player.unused_count == 50
