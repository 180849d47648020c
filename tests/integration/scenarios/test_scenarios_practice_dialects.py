"""The model server in its other dialects: the same conversation, the same answers."""

import asyncio
import json
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import boto3
import httpx
import openai
import pytest
from botocore.config import Config  # type: ignore[import-untyped]

from scenarios.practice import model_server
from scenarios.practice.dialects import anthropic_to_chat
from scenarios.practice.tasks.registry import ORDER_TASKS
from tests.support.agents.practice_agents import (
    OFFERED,
    Run,
    run,
)
from traces.dialects import anthropic_messages, cohere_chat, gemini, ollama_chat
from traces.dialects.types import ModelAnswer

type Lead = Callable[[httpx.AsyncClient, list[str]], Coroutine[None, None, list[str]]]
"""Leads the model through a task whose results are these, and gives what it said."""

PROMPT = ORDER_TASKS["refund-1"].prompt
FUNCTIONS: list[dict[str, Any]] = [json.loads(json.dumps(tool["function"])) for tool in OFFERED]


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """A run in chat completions that no fault disturbed."""
    return run(tmp_path_factory.mktemp("told"), ORDER_TASKS["refund-1"], "verifies")


def results(told: Run) -> list[str]:
    return [str(message["content"]) for message in told.messages if message["role"] == "tool"]


def led(lead: Lead, results: list[str], **settings: Any) -> list[str]:
    async def both() -> list[str]:
        async with model_server.serve_model(**settings) as port:
            url = f"http://127.0.0.1:{port}/v1/"
            async with httpx.AsyncClient(base_url=url, trust_env=False) as client:
                return await lead(client, results)

    return asyncio.run(both())


def anthropic(*, stream: bool, listed: bool = False) -> Lead:
    async def lead(client: httpx.AsyncClient, results: list[str]) -> list[str]:
        said: list[str] = []
        messages: list[dict[str, Any]] = [{"role": "user", "content": PROMPT}]
        for result in [*results, None]:
            answer = await anthropic_answer(client, messages, stream=stream)
            said.append(answer.message)
            assert answer.usage is not None
            assert answer.finish == ("tool_use" if answer.calls else "end_turn")
            for call in answer.calls:
                shown = [{"type": "text", "text": result}] if listed else result
                used = {"type": "tool_use", "id": call.id, "name": call.name}
                given = {"type": "tool_result", "tool_use_id": call.id, "content": shown}
                text = {"type": "text", "text": answer.message}
                asked = [text, used | {"input": json.loads(call.arguments)}]
                messages += [
                    {"role": "assistant", "content": asked},
                    {"role": "user", "content": [given]},
                ]
        return said

    return lead


async def anthropic_answer(
    client: httpx.AsyncClient, messages: list[dict[str, Any]], *, stream: bool
) -> ModelAnswer:
    tools = [
        {"name": each["name"], "description": "", "input_schema": each["parameters"]}
        for each in FUNCTIONS
    ]
    body = {
        "model": "practice/verifies",
        "max_tokens": 1000,
        "system": "You work in a shop.",
        "messages": messages,
        "tools": tools,
        "stream": stream,
    }
    response = await client.post("messages", json=body)
    assert response.status_code == 200
    assert response.headers["content-type"].startswith("text/event-stream") is stream
    answer = anthropic_messages.parse_model_answer((), response.content)
    assert answer is not None
    return answer


def generated(*, stream: bool, listed: bool = False) -> Lead:
    """As Gemini; `listed` stands for a client that sends no ids back."""

    async def lead(client: httpx.AsyncClient, results: list[str]) -> list[str]:
        said: list[str] = []
        contents: list[dict[str, Any]] = [{"role": "user", "parts": [{"text": PROMPT}]}]
        for result in [*results, None]:
            answer = await gemini_answer(client, contents, stream=stream)
            said.append(answer.message)
            assert answer.usage is not None
            assert answer.finish == "STOP"
            for call in answer.calls:
                named = {"name": call.name} | ({} if listed else {"id": call.id})
                asked = {"functionCall": named | {"args": json.loads(call.arguments)}}
                given = {"functionResponse": named | {"response": {"output": result}}}
                contents += [
                    {"role": "model", "parts": [{"text": answer.message}, asked]},
                    {"role": "user", "parts": [given]},
                ]
        return said

    return lead


async def gemini_answer(
    client: httpx.AsyncClient, contents: list[dict[str, Any]], *, stream: bool
) -> ModelAnswer:
    method = "streamGenerateContent?alt=sse" if stream else "generateContent"
    body = {
        "systemInstruction": {"parts": [{"text": "You work in a shop."}]},
        "contents": contents,
        "tools": [{"functionDeclarations": FUNCTIONS}],
    }
    url = client.base_url.join(f"/v1beta/models/practice/verifies:{method}")
    response = await client.post(url, json=body)
    assert response.status_code == 200
    assert response.headers["content-type"].startswith("text/event-stream") is stream
    answer = gemini.parse_model_answer((), response.content)
    assert answer is not None
    return answer


def ollama(*, stream: bool, listed: bool = False) -> Lead:
    """As Ollama's own API; `listed` stands for a client that does not name the tool of a result."""

    async def lead(client: httpx.AsyncClient, results: list[str]) -> list[str]:
        said: list[str] = []
        messages: list[dict[str, Any]] = [{"role": "user", "content": PROMPT}]
        for result in [*results, None]:
            response = await client.post(
                client.base_url.join("/api/chat"),
                json={
                    "model": "practice/verifies",
                    "messages": messages,
                    "tools": OFFERED,
                    **({} if stream else {"stream": False}),
                },
            )
            assert response.status_code == 200
            assert response.headers["content-type"].startswith("application/x-ndjson") is stream
            answer = ollama_chat.parse_model_answer((), response.content)
            assert answer is not None
            assert answer.usage is not None
            said.append(answer.message)
            for call in answer.calls:
                function = {"name": call.name, "arguments": json.loads(call.arguments)}
                asked = {"role": "assistant", "content": answer.message}
                given = {"role": "tool", "content": result}
                messages += [
                    asked | {"tool_calls": [{"function": function}]},
                    given | ({} if listed else {"tool_name": call.name}),
                ]
        return said

    return lead


def cohere(*, stream: bool, listed: bool = False) -> Lead:
    """As Cohere's chat; `listed` gives results as documents."""

    async def lead(client: httpx.AsyncClient, results: list[str]) -> list[str]:
        said: list[str] = []
        messages: list[dict[str, Any]] = [{"role": "user", "content": PROMPT}]
        for result in [*results, None]:
            asked = {"model": "practice/verifies", "messages": messages, "tools": OFFERED}
            url = client.base_url.join("/v2/chat")
            response = await client.post(url, json=asked | {"stream": stream})
            assert response.status_code == 200
            answer = cohere_chat.parse_model_answer((), response.content)
            assert answer is not None
            assert answer.finish == ("TOOL_CALL" if answer.calls else "COMPLETE")
            said.append(answer.message)
            for call in answer.calls:
                function = {"name": call.name, "arguments": call.arguments}
                used = {"id": call.id, "type": "function", "function": function}
                document = [{"type": "document", "document": {"data": result}}]
                messages += [
                    {"role": "assistant", "tool_plan": answer.message, "tool_calls": [used]},
                    {
                        "role": "tool",
                        "tool_call_id": call.id,
                        "content": document if listed else result,
                    },
                ]
        return said

    return lead


def converse(*, stream: bool, listed: bool = False) -> Lead:
    """As AWS Bedrock, by its own client; `listed` gives results as JSON in a list."""

    async def lead(client: httpx.AsyncClient, results: list[str]) -> list[str]:
        made = boto3.client(
            "bedrock-runtime",
            endpoint_url=str(client.base_url.join("/")),
            region_name="us-east-1",
            aws_access_key_id="x",
            aws_secret_access_key="x",
            config=Config(proxies={}, retries={"total_max_attempts": 1}),
        )
        said: list[str] = []
        messages: list[Any] = [{"role": "user", "content": [{"text": PROMPT}]}]
        for result in [*results, None]:
            message = await asyncio.to_thread(converse_answer, made, messages, stream=stream)
            messages.append(message)
            said.append("".join(block.get("text", "") for block in message["content"]))
            for use in [block["toolUse"] for block in message["content"] if "toolUse" in block]:
                shown = [{"text": part} for part in (str(result)[:9], str(result)[9:]) if part]
                content = shown if listed else [{"text": result}]
                given = {"toolUseId": use["toolUseId"], "content": content}
                messages.append({"role": "user", "content": [{"toolResult": given}]})
        return said

    return lead


def converse_answer(client: Any, messages: list[Any], *, stream: bool) -> Any:
    """The model's message; that of a stream is put together from its events."""
    tools = [
        {
            "toolSpec": {
                "name": each["name"],
                "description": "x",
                "inputSchema": {"json": each["parameters"]},
            }
        }
        for each in FUNCTIONS
    ]
    asked = {"modelId": "practice/verifies", "messages": messages, "toolConfig": {"tools": tools}}
    if not stream:
        answer = client.converse(**asked)
        assert answer["usage"]["inputTokens"] > 0
        return answer["output"]["message"]
    blocks: dict[int, Any] = {}
    for event in client.converse_stream(**asked)["stream"]:
        match event:
            case {"contentBlockStart": {"contentBlockIndex": index, "start": start}}:
                blocks[index] = {"toolUse": start["toolUse"] | {"input": ""}}
            case {"contentBlockDelta": {"contentBlockIndex": index, "delta": {"text": text}}}:
                blocks.setdefault(index, {"text": ""})["text"] += text
            case {"contentBlockDelta": {"contentBlockIndex": index, "delta": {"toolUse": use}}}:
                blocks[index]["toolUse"]["input"] += use["input"]
    for use in [block["toolUse"] for block in blocks.values() if "toolUse" in block]:
        use["input"] = json.loads(use["input"])
    return {"role": "assistant", "content": list(blocks.values())}


def responses(*, stream: bool, listed: bool = False) -> Lead:
    async def lead(client: httpx.AsyncClient, results: list[str]) -> list[str]:
        sdk = openai.AsyncOpenAI(base_url=client.base_url, api_key="x", http_client=client)
        said: list[str] = []
        items: list[Any] = [{"role": "user", "content": PROMPT}]
        for result in [*results, None]:
            answer = await responses_answer(sdk, items, stream=stream)
            said.append(answer.output_text)
            assert answer.status == "completed"
            assert answer.usage is not None
            for item in answer.output:
                items.append(item.model_dump(exclude_none=True))
                if item.type == "function_call":
                    shown = [{"type": "input_text", "text": result}] if listed else result
                    output = {"type": "function_call_output", "call_id": item.call_id}
                    items.append(output | {"output": shown})
        return said

    return lead


async def responses_answer(sdk: openai.AsyncOpenAI, items: list[Any], *, stream: bool) -> Any:
    tools: Any = [{"type": "function", "strict": False, **each} for each in FUNCTIONS]
    asked: dict[str, Any] = {"instructions": "You work in a shop.", "input": items, "tools": tools}
    if not stream:
        return await sdk.responses.create(model="practice/verifies", **asked)
    async with sdk.responses.stream(model="practice/verifies", **asked) as events:
        async for _ in events:
            pass
        return await events.get_final_response()


@pytest.mark.thorough
@pytest.mark.gate
@pytest.mark.parametrize("listed", [False, True])
@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("dialect", [anthropic, responses, generated, ollama, cohere, converse])
def test_the_same_conversation_gets_the_same_answers_in_every_dialect(
    told: Run, dialect: Callable[..., Lead], stream: bool, listed: bool
) -> None:
    assert tuple(led(dialect(stream=stream, listed=listed), results(told))) == told.said


@pytest.mark.gate
def test_the_log_is_the_same_whatever_the_dialect(told: Run, tmp_path: Path) -> None:
    logs: list[list[dict[str, Any]]] = []
    for lead in (anthropic(stream=False), responses(stream=True), generated(stream=True)):
        log = tmp_path / f"{len(logs)}.jsonl"
        led(lead, results(told), log=log)
        logs.append([json.loads(line) for line in log.read_text().splitlines()])
    wire = {"stream": None, "request": None, "id": None}
    for one, *others in zip(*logs, strict=True):
        assert all(one | wire == other | wire for other in others)
    assert [line["step"] for line in logs[0]] == list(range(1, told.steps + 1))


def test_what_is_wrong_is_said_as_anthropic_says_it() -> None:
    async def lead(client: httpx.AsyncClient, _: list[str]) -> list[str]:
        kinds = []
        for body in ({"model": "x", "messages": []}, {"model": "naive"}, {}, {}):
            refused = await client.post("messages", json=body)
            assert refused.json()["type"] == "error"
            kinds.append(f"{refused.status_code} {refused.json()['error']['type']}")
        return kinds

    assert led(lead, [], failures={3: 529, 4: 429}) == [
        "404 not_found_error",
        "400 invalid_request_error",
        "529 overloaded_error",
        "429 rate_limit_error",
    ]


def test_what_is_wrong_is_said_as_google_says_it() -> None:
    async def lead(client: httpx.AsyncClient, _: list[str]) -> list[str]:
        kinds = []
        asked: list[tuple[str, dict[str, Any]]] = [("x", {"contents": []}), *[("naive", {})] * 2]
        for model, body in asked:
            url = client.base_url.join(f"/v1beta/models/{model}:generateContent")
            refused = await client.post(url, json=body)
            error = refused.json()["error"]
            assert error["code"] == refused.status_code
            kinds.append(f"{refused.status_code} {error['status']}")
        return kinds

    assert led(lead, [], failures={3: 429}) == [
        "404 NOT_FOUND",
        "400 INVALID_ARGUMENT",
        "429 RESOURCE_EXHAUSTED",
    ]


def test_a_conversation_that_was_never_left_here_is_not_known() -> None:
    async def lead(client: httpx.AsyncClient, _: list[str]) -> list[str]:
        body = {"model": "naive", "input": "go on", "previous_response_id": "resp_1"}
        refused = await client.post("responses", json=body)
        return [str(refused.status_code), refused.json()["error"]["message"]]

    status, message = led(lead, [])
    assert status == "400"
    assert message == "Previous response with id 'resp_1' not found."


@pytest.mark.parametrize(
    ("flag", "shown"), [(True, "error: no such order"), (None, "no such order")]
)
def test_the_model_sees_the_flag_for_errors(flag: bool | None, shown: str) -> None:
    block = {"type": "tool_result", "tool_use_id": "a", "content": "no such order"}
    told = anthropic_to_chat.convert_anthropic_messages(
        {"messages": [{"role": "user", "content": [block | {"is_error": flag}]}]}
    )
    assert told == [{"role": "tool", "tool_call_id": "a", "content": shown}]
