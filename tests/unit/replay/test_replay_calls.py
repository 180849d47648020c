"""Two conversations ask a tool the same thing, and each is told what it was told before."""

from copy import replace
from itertools import permutations

import pytest

from replay.matching.diff import describe_matches
from tests.unit.replay.test_replay_player import MODEL, Stage, model, tape, tool
from traces.dialects.types import ToolCall
from traces.model import Exchange, Request, Response
from traces.tape.reader import Tape

STATUS = '{"order": 7}'


def call(id: str) -> ToolCall:
    return ToolCall(id=id, name="get_order", arguments=STATUS)


def begin(lane: str, *calls: str) -> Exchange:
    return model([{"role": "user", "content": lane}], *map(call, calls))


def status(text: str, id: str | None = None) -> Exchange:
    exchange = tool(text, STATUS)
    headers = () if id is None else (("x-tool-call-id", id),)
    return replace(exchange, request=replace(exchange.request, headers=headers))


def go_on(lane: str, id: str, text: str) -> Exchange:
    function = {"name": "get_order", "arguments": STATUS}
    asked: dict[str, object] = {
        "role": "assistant",
        "tool_calls": [{"id": id, "function": function}],
    }
    result: dict[str, object] = {"role": "tool", "tool_call_id": id, "content": text}
    return model([{"role": "user", "content": lane}, asked, result], text=f"{lane}: {text}")


def body(exchange: Exchange) -> str:
    assert exchange.response is not None
    return exchange.response.body.decode()


ONE_BY_ONE = tape(
    begin("a", "c1"),
    status("open"),
    go_on("a", "c1", "open"),
    begin("b", "c2"),
    status("shipped"),
    go_on("b", "c2", "shipped"),
)


def test_a_lane_that_comes_first_now_is_told_what_it_was_told() -> None:
    a, b = ONE_BY_ONE.exchanges[:3], ONE_BY_ONE.exchanges[3:]
    stage = Stage(ONE_BY_ONE)
    assert [body(stage.ask(x)) for x in (*b, *a)] == [body(x) for x in (*b, *a)]
    assert stage.player.diverged == []
    assert stage.player.list_unasked() == ()


TOGETHER = tape(
    begin("a", "c1"),
    begin("b", "c2"),
    begin("c", "c3"),
    status("one", "c1"),
    status("two", "c2"),
    status("three", "c3"),
)


@pytest.mark.parametrize("order", [*permutations((3, 4, 5))])
def test_calls_that_name_themselves_come_in_any_order(order: tuple[int, ...]) -> None:
    stage = Stage(TOGETHER)
    for x in TOGETHER.exchanges[:3]:
        stage.ask(x)
    for seq in order:
        assert body(stage.ask(TOGETHER.exchanges[seq])) == body(TOGETHER.exchanges[seq])


def test_a_call_that_asks_too_often_does_not_get_what_another_was_told() -> None:
    stage = Stage(TOGETHER)
    for x in TOGETHER.exchanges[:4]:
        stage.ask(x)
    assert stage.ask(status("", "c1")).answered_by == "refused"
    assert [x.seq for x in stage.player.list_unasked()] == [4, 5]


def test_a_late_retry_of_a_call_is_no_call_of_another_lane() -> None:
    recording = tape(
        begin("a", "c1"),
        status("open", "c1"),
        go_on("a", "c1", "open"),
        begin("b", "c2"),
        status("shipped", "c2"),
    )
    stage = Stage(recording)
    for x in recording.exchanges[:4]:
        stage.ask(x)
    assert stage.ask(status("", "c1")).answered_by == "refused"
    assert body(stage.ask(recording.exchanges[4])) == "shipped"


def test_what_a_later_lane_was_told_is_left_for_it() -> None:
    """c was first in the recording, and here nobody has asked for it yet."""
    recording = tape(
        begin("c", "c3"),
        status("three"),
        go_on("c", "c3", "three"),
        begin("a", "c1"),
        begin("b", "c2"),
        status("one"),
        status("two"),
    )
    stage = Stage(recording)
    for seq in (3, 4):
        stage.ask(recording.exchanges[seq])
    assert [body(stage.ask(recording.exchanges[seq])) for seq in (5, 6)] == ["one", "two"]


def test_equal_calls_of_one_answer_go_by_start_time() -> None:
    recording = tape(begin("a", "c1", "c2"), status("first"), status("second"))
    late = (recording.exchanges[2], recording.exchanges[1])
    shuffled = replace(recording, exchanges=(recording.exchanges[0], *late))
    stage = Stage(shuffled)
    assert [body(stage.ask(x))[:6] for x in recording.exchanges][1:] == ["first", "second"]


def test_a_live_model_gives_other_ids_and_its_calls_are_answered_all_the_same() -> None:
    stage = Stage(TOGETHER, live=begin("a", "new"), kinds=("model",))
    stage.ask(begin("a"))
    assert body(stage.ask(status("", "new"))) == "one"


def poll(count: int) -> Tape:
    """One conversation that asks for the same thing again and again."""
    said: list[dict[str, object]] = [{"role": "user", "content": "wait"}]
    exchanges = list[Exchange]()
    for number in range(count):
        id = f"c{number}"
        exchanges += (model([*said], call(id)), status(f"{number} %"))
        function = {"name": "get_order", "arguments": STATUS}
        said += (
            {"role": "assistant", "tool_calls": [{"id": id, "function": function}]},
            {"role": "tool", "tool_call_id": id, "content": f"{number} %"},
        )
    return tape(*exchanges)


def test_a_poll_is_told_what_it_was_told_each_time() -> None:
    recording = poll(20)
    stage = Stage(recording)
    assert [body(stage.ask(x)) for x in recording.exchanges] == [
        body(x) for x in recording.exchanges
    ]


def test_without_any_conversation_equals_go_by_start_time() -> None:
    def get(seq: int) -> Exchange:
        request = Request(method="GET", url=MODEL.replace("chat", "status"))
        return Exchange(seq=seq, request=request, response=Response(status=200 + seq))

    recording = tape(*(get(seq) for seq in range(5)))
    stage = Stage(recording)
    said = [stage.ask(get(0)).response for _ in range(5)]
    assert [answer.status for answer in said if answer] == [200, 201, 202, 203, 204]


def test_it_is_said_which_of_several_equals_a_request_was_given() -> None:
    a, b = ONE_BY_ONE.exchanges[:3], ONE_BY_ONE.exchanges[3:]
    stage = Stage(ONE_BY_ONE)
    asked = [stage.ask(x) for x in (*b, *a)]
    said = list(describe_matches(asked, stage.player.matched))
    assert said[1].endswith("exchange 4, same bytes, that of its call")
    assert said[0].endswith("exchange 3, same bytes")
    stage = Stage(tape(tool("first"), tool("second")))
    asked = [stage.ask(tool("")) for _ in range(2)]
    first, second = describe_matches(asked, stage.player.matched)
    assert first.endswith("exchange 0, same bytes, the next of several")
    assert second.endswith("exchange 1, same bytes")
