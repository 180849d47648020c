"""An agent that talks as Codex does, as a user records it: over a WebSocket, and without one."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.leak_search import leaks
from tests.support.practice_shop import (
    Shop,
    shop,
)
from traces.conversation.derived_steps import DerivedSteps, derive_tape_steps
from traces.model import find_header
from traces.tape.reader import Tape, read_tape


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shop]:
    """One shop, and the same run recorded over a WebSocket and without one."""
    with shop(tmp_path_factory.mktemp("shop")) as found:
        for name, options in (("ws", ()), ("http", ("--no-websocket",))):
            found.reset()
            agent = found.agent("practice/retries", "--websocket")
            result = found.stumble(
                "record", "-o", f"{name}.tape", *options, *found.host_options(), "--", *agent
            )
            assert (result.code, result.out[:4]) == (0, "DONE"), result.err
            assert found.passed()
        yield found


def recorded(world: Shop, name: str) -> tuple[Tape, DerivedSteps]:
    tape = read_tape(world.folder / f"{name}.tape")
    return tape, derive_tape_steps(tape)


def test_every_message_of_the_agent_is_a_turn_on_the_tape(world: Shop) -> None:
    tape, story = recorded(world, "ws")
    upgrade, warm_up, *turns = (x for x in tape.exchanges if x.transport == "websocket")
    assert (upgrade.request.method, find_header(upgrade.request.headers, "openai-beta")) == (
        "GET",
        "responses_websockets=2026-02-06",
    )
    assert len({exchange.connection for exchange in (upgrade, warm_up, *turns)}) == 1
    assert [turn.stream for turn in turns] == list(range(2, 2 + len(turns)))
    assert [turn.seqs for turn in story.agent_steps] == [(turn.seq,) for turn in turns]
    assert all(turn.error is None for turn in turns)
    assert all(b"previous_response_id" in turn.request.body for turn in turns)
    last = turns[-1].request.body
    assert last.count(b'"function_call_output"') == last.count(b'"call_id"')
    assert leaks("sk-test-0123456789", world.folder / "ws.tape") == 0


def test_the_story_is_that_of_the_same_run_over_http(world: Shop) -> None:
    (_, socket), (plain, http) = recorded(world, "ws"), recorded(world, "http")
    assert [(s.source, s.message, s.calls, s.lane) for s in socket.steps] == [
        (s.source, s.message, s.calls, s.lane) for s in http.steps
    ]
    assert [(u.tool, u.arguments, u.prefix, u.ordinal, u.join) for u in socket.tool_uses] == [
        (u.tool, u.arguments, u.prefix, u.ordinal, u.join) for u in http.tool_uses
    ]
    assert len(socket.agent_steps) > 4
    refused = plain.exchanges[0]
    assert refused.response is not None
    assert (refused.response.status, refused.answered_by) == (426, "simulated")
    assert {x.request.method for x in plain.exchanges[1:]} == {"POST"}


def test_show_tells_it_and_sql_asks_it(world: Shop) -> None:
    shown, same = (world.stumble("show", f"{name}.tape") for name in ("ws", "http"))
    steps = [line.partition("[")[0] for line in shown.out.splitlines()[:-1]]
    assert steps == [line.partition("[")[0] for line in same.out.splitlines()[:-1]]
    assert any(line.strip().startswith("-> get_order") for line in steps)
    lines = world.stumble("show", "ws.tape", "--exchanges").out.splitlines()
    assert "GET http://model.practice/v1/responses" in lines[0]
    assert all(" model " in line for line in lines if "/v1/responses" in line)
    asked = "select count(*) as n, count(distinct kind) as kinds from exchanges"
    tape, _ = recorded(world, "ws")
    where = f"method = 'TEXT' and trajectory_id = '{tape.trajectory.id}'"
    rows = world.stumble("sql", "--format", "json", f"{asked} where {where}")
    turns = [x for x in tape.exchanges if x.request.method == "TEXT"]
    assert rows.json == [{"n": len(turns), "kinds": 1}], rows.err


@pytest.mark.thorough
def test_what_was_refused_replays_without_the_network(world: Shop) -> None:
    agent = world.agent("practice/retries", "--websocket")
    again = world.stumble("replay", "http.tape", "--json", "--", *agent)
    assert (again.code, again.json["diverged"]) == (0, []), again.err


def test_a_tape_that_begins_in_the_middle_says_so(world: Shop, tmp_path: Path) -> None:
    from traces.model import Trajectory
    from traces.tape.writer import TapeWriter

    tape, _ = recorded(world, "ws")
    path = tmp_path / "late.tape"
    with TapeWriter(path, Trajectory(id="late", recorded_at=0.0)) as late:
        for exchange in tape.exchanges:
            if exchange.request.method != "GET" and exchange.started > tape.exchanges[2].started:
                late.write_exchange(exchange)
    result = world.stumble("show", str(path))
    assert result.code == 0
    assert result.out.count("which is not on this tape") == 1


def test_it_is_replayed_without_the_network(world: Shop) -> None:
    again = world.stumble(
        "replay", "ws.tape", "--json", "--", *world.agent("practice/retries", "--websocket")
    )
    assert again.code == 0, again.err
    assert (again.json["upstream"], again.json["diverged"]) == (0, [])
    was, now = (read_tape(path) for path in (world.folder / "ws.tape", Path(again.json["tape"])))
    assert [turns(each) for each in (was, now)] == [turns(was)] * 2


def turns(tape: Tape) -> list[tuple[str, bytes, tuple[bytes, ...]]]:
    return [
        (x.request.method, x.request.body, tuple(chunk.data for chunk in x.response.chunks))
        for x in tape.exchanges
        if x.transport == "websocket" and x.response
    ]


@pytest.mark.thorough
def test_a_fork_goes_live_with_the_whole_conversation_and_the_lie_in_it(world: Shop) -> None:
    before = len(world.asked())
    result = world.stumble(
        "fork", "ws.tape", "--fault", "digit", "--nth", "3", "--twins", "3", "--at",
        "model-boundary", "--json", *world.world(), *world.host_options(), "--",
        *world.agent("practice/retries", "--websocket"),
    )  # fmt: skip
    first, *_ = world.asked()[before:]
    assert first["step"] > 1, "the provider was told all that came before"
    assert [twin["passed"] for twin in result.json["twins"]] == [True] * 3
    assert result.json["consumed"]
    assert result.json["passed"] is False, "the refund is that of the wrong amount"
