"""The model server through the official SDK: streamed and not, refusals, log."""

import asyncio
import json
import time
from collections.abc import AsyncIterator, Callable, Coroutine
from pathlib import Path
from typing import Any

import httpx
import openai
import pytest
from openai.lib.streaming.chat import ChatCompletionStreamState
from openai.types.chat import ChatCompletion, ChatCompletionChunk

from scenarios.practice import model_server
from scenarios.practice.agents.openai_agent import OFFERED_TOOLS
from scenarios.practice.tasks.registry import ORDER_TASKS
from tests.support.agents.practice_agents import (
    port,
    program,
    run,
)

PROMPT: list[dict[str, str]] = [{"role": "user", "content": ORDER_TASKS["refund-1"].prompt}]

TOOLS: Any = OFFERED_TOOLS

type Ask[R] = Callable[[openai.AsyncOpenAI], Coroutine[None, None, R]]


def asking[R](ask: Ask[R], **settings: Any) -> R:
    """What a client gets from a model server in this process."""

    async def both() -> R:
        async with model_server.serve_model(**settings) as chosen:
            url = f"http://127.0.0.1:{chosen}/v1"
            http = httpx.AsyncClient(trust_env=False)
            async with openai.AsyncOpenAI(base_url=url, api_key="x", http_client=http) as client:
                return await ask(client)

    return asyncio.run(both())


async def whole(client: openai.AsyncOpenAI, messages: Any, model: str) -> ChatCompletion:
    return await client.chat.completions.create(model=model, messages=messages, tools=TOOLS)


async def events(
    client: openai.AsyncOpenAI, messages: Any, model: str, **options: Any
) -> AsyncIterator[ChatCompletionChunk]:
    stream = await client.chat.completions.create(
        model=model, messages=messages, tools=TOOLS, stream=True, **options
    )
    async for chunk in stream:
        yield chunk


async def joined(client: openai.AsyncOpenAI, messages: Any, model: str) -> ChatCompletion:
    state = ChatCompletionStreamState()
    async for chunk in events(client, messages, model, stream_options={"include_usage": True}):
        state.handle_chunk(chunk)
    return state.get_final_completion()


@pytest.mark.gate
def test_streamed_and_whole_answers_say_the_same(tmp_path: Path) -> None:
    conversation = run(tmp_path, ORDER_TASKS["refund-1"], "verifies").messages

    async def ask(client: openai.AsyncOpenAI) -> None:
        for end in range(1, len(conversation) + 1, 2):
            one = await whole(client, conversation[:end], "practice/verifies")
            two = await joined(client, conversation[:end], "practice/verifies")
            assert one.id == two.id
            assert one.usage == two.usage
            assert one.choices[0].finish_reason == two.choices[0].finish_reason
            assert content(one) == content(two)

    asking(ask)


def content(answer: ChatCompletion) -> object:
    message = answer.choices[0].message
    calls = [(call.id, call.function) for call in message.tool_calls or () if call.type != "custom"]
    return message.content, [(id, made.name, made.arguments) for id, made in calls]


def test_usage_comes_in_a_stream_only_if_asked_for() -> None:
    async def usages(client: openai.AsyncOpenAI, **options: Any) -> list[bool]:
        chunks = events(client, PROMPT, "naive", **options)
        return [chunk.usage is not None async for chunk in chunks]

    assert True not in asking(usages)
    asked = asking(lambda client: usages(client, stream_options={"include_usage": True}))
    assert asked.index(True) == len(asked) - 1


def test_a_gap_stands_between_the_events_of_a_stream() -> None:
    async def answer(client: openai.AsyncOpenAI) -> tuple[int, float]:
        start = time.monotonic()
        number = len([chunk async for chunk in events(client, PROMPT, "naive")])
        return number, time.monotonic() - start

    number, took = asking(answer, gap=0.05)
    assert took >= 0.05 * (number - 1)


@pytest.mark.parametrize(
    "model", ["naive", "practice/retries", "openai/practice/verifies", "practice/p=0.25"]
)
def test_the_model_is_the_skill(model: str) -> None:
    answer = asking(lambda client: whole(client, PROMPT, model))
    assert answer.model == model
    assert answer.choices[0].message.tool_calls


def test_what_is_wrong_with_a_request_is_said_as_openai_says_it() -> None:
    async def ask(client: openai.AsyncOpenAI) -> None:
        with pytest.raises(openai.NotFoundError) as missing:
            await whole(client, PROMPT, "gpt-4o")
        assert missing.value.code == "model_not_found"
        async with httpx.AsyncClient(base_url=client.base_url, trust_env=False) as plain:
            for body in ("{", "[]", '{"model": "naive"}', '{"model": "naive", "messages": [1]}'):
                refused = await plain.post("chat/completions", content=body)
                assert refused.status_code == 400
                assert refused.json()["error"]["type"] == "invalid_request_error"
        listed = [model.id async for model in client.models.list()]
        assert listed == [
            "practice/naive",
            "practice/retries",
            "practice/verifies",
            "practice/hopes",
            "practice/stubborn",
            "practice/p=0.7",
        ]

    asking(ask)


def test_the_sdk_absorbs_a_failure_that_was_asked_for(tmp_path: Path) -> None:
    log = tmp_path / "log.jsonl"
    answer = asking(lambda client: whole(client, PROMPT, "naive"), log=log, failures={1: 503})
    assert answer.choices[0].message.tool_calls
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    assert [(line["seq"], line["status"]) for line in lines] == [(1, 503), (2, 200)]


def test_the_log_says_what_was_noticed(tmp_path: Path) -> None:
    log = tmp_path / "log.jsonl"
    messages: list[dict[str, Any]] = [*PROMPT]

    async def ask(client: openai.AsyncOpenAI) -> None:
        for result in ('{"count": 0}', None):
            answer = await whole(client, messages, "practice/retries")
            message = answer.choices[0].message.model_dump(exclude_none=True)
            [call] = message["tool_calls"]
            said = {"role": "tool", "tool_call_id": call["id"], "content": result}
            messages.extend([message, said])

    asking(ask, log=log)
    first, second = [json.loads(line) for line in log.read_text().splitlines()]
    assert (first["step"], first["noticed"]) == (1, [])
    assert (second["step"], second["noticed"]) == (
        2,
        ["search_customer failed: query is missing."],
    )
    assert first["calls"] == second["calls"]
    assert first["conversation"] != second["conversation"]
    assert first["model"] == "practice/retries"


@pytest.mark.gate
def test_as_a_program(tmp_path: Path) -> None:
    log = tmp_path / "log.jsonl"
    with program(
        "model_server", "--log", log, "--fail-nth", "1=500", "--fail-nth", "2=429"
    ) as process:
        url = f"http://127.0.0.1:{port(process)}/v1/chat/completions"
        body = {"model": "naive", "messages": PROMPT}
        statuses = [httpx.post(url, json=body, trust_env=False).status_code for _ in range(3)]
        assert process.stdin is not None
        process.stdin.close()
        assert process.wait(20) == 0
    assert statuses == [500, 429, 200]
    assert len(log.read_text().splitlines()) == 3
