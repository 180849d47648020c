"""The model server over a WebSocket, and conversations that it keeps, as real ones do."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import Any

import aiohttp
import pytest

from scenarios.practice import model_server
from scenarios.practice.agents.websocket_agent import RESPONSES_TOOLS
from scenarios.practice.tasks.registry import ORDER_TASKS
from traces.dialects import openai_responses
from traces.dialects.types import ModelAnswer

type Talk = Callable[[aiohttp.ClientSession, str], Awaitable[None]]
type Body = dict[str, Any]

ASK: Body = {"type": "response.create", "model": "practice/verifies", "tools": RESPONSES_TOOLS}
TASK: Body = {"type": "message", "role": "user", "content": ORDER_TASKS["refund-1"].prompt}


def talking(talk: Talk, **settings: Any) -> None:
    """A client beside a model server in this process."""

    async def both() -> None:
        async with model_server.serve_model(**settings) as port, aiohttp.ClientSession() as session:
            await asyncio.wait_for(talk(session, f"http://127.0.0.1:{port}/v1/responses"), 30)

    asyncio.run(both())


async def turn(ws: aiohttp.ClientWebSocketResponse, **more: Any) -> list[Body]:
    """The events of one answer."""
    await ws.send_json({**ASK, **more})
    events: list[Body] = []
    while not events or not openai_responses.is_final_event(json.dumps(events[-1]).encode()):
        events.append(await ws.receive_json())
    return events


def answer(events: list[Body]) -> ModelAnswer:
    found = openai_responses.parse_model_answer((), "".join(map(json.dumps, events)).encode())
    assert found is not None
    return found


def result(call: str) -> Body:
    return {"type": "function_call_output", "call_id": call, "output": "error: no such order"}


def test_what_is_kept_counts_as_if_it_had_been_sent_again() -> None:
    async def talk(session: aiohttp.ClientSession, url: str) -> None:
        async with session.ws_connect(url) as ws:
            first = await turn(ws, input=[TASK])
            (call,) = answer(first).calls
            id = first[-1]["response"]["id"]
            second = await turn(ws, previous_response_id=id, input=[result(call.id)])
            whole = [TASK, *first[-1]["response"]["output"], result(call.id)]
            resent = await turn(ws, input=whole)
        assert answer(second) == answer(resent)
        async with session.post(url, json={**ASK, "input": [TASK]}) as posted:
            id = (await posted.json())["id"]
        more = {"previous_response_id": id, "input": [result(call.id)]}
        async with session.post(url, json={**ASK, **more}) as posted:
            assert openai_responses.parse_model_answer((), await posted.read()) == answer(resent)

    talking(talk)


def test_a_warm_up_is_answered_with_nothing() -> None:
    async def talk(session: aiohttp.ClientSession, url: str) -> None:
        async with session.ws_connect(url) as ws:
            warm = await turn(ws, input=[TASK], generate=False)
            kinds = [event["type"] for event in warm]
            assert kinds == ["response.created", "response.in_progress", "response.completed"]
            assert warm[-1]["response"]["output"] == []
            id = warm[-1]["response"]["id"]
            after = await turn(ws, previous_response_id=id, input=[])
            assert answer(after) == answer(await turn(ws, input=[TASK]))
            assert after[-1]["response"]["id"] != id

    talking(talk)


def test_what_was_said_on_one_connection_is_not_known_on_another() -> None:
    async def talk(session: aiohttp.ClientSession, url: str) -> None:
        async with session.ws_connect(url) as ws:
            id = (await turn(ws, input=[TASK]))[-1]["response"]["id"]
        async with session.ws_connect(url) as ws:
            (event,) = await turn(ws, previous_response_id=id, input=[])
            assert (event["type"], event["status"]) == ("error", 400)
            assert event["error"] == {
                "type": "invalid_request_error",
                "code": "previous_response_not_found",
                "message": f"Previous response with id '{id}' not found.",
                "param": "previous_response_id",
            }
            assert answer(await turn(ws, input=[TASK])).calls

    talking(talk)


@pytest.mark.parametrize("store", [True, False])
def test_over_http_only_what_was_to_be_stored_is_kept(store: bool) -> None:
    async def talk(session: aiohttp.ClientSession, url: str) -> None:
        async with session.post(url, json={**ASK, "input": [TASK], "store": store}) as posted:
            id = (await posted.json())["id"]
        more = {"previous_response_id": id, "input": "go on"}
        async with session.post(url, json={**ASK, **more}) as posted:
            assert posted.status == (200 if store else 400)

    talking(talk)


def test_refusals_are_events_and_the_connection_goes_on() -> None:
    async def talk(session: aiohttp.ClientSession, url: str) -> None:
        async with session.ws_connect(url) as ws:
            (told,) = await turn(ws, input=[TASK])
            assert (told["status"], told["error"]["code"]) == (429, "told_to_fail")
            (missing,) = await turn(ws, input=[TASK], model="gpt-5")
            assert (missing["status"], missing["error"]["code"]) == (404, "model_not_found")
            (odd,) = await turn(ws, type="response.cancel")
            assert odd["status"] == 400
            assert answer(await turn(ws, input=[TASK])).calls

    talking(talk, failures={1: 429})
