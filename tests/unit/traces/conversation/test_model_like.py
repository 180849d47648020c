"""Requests to models that no dialect reads are of kind model, and nothing else becomes one."""

import json

import pytest

from traces.conversation.classify import classify_request
from traces.conversation.model_like import UNKNOWN_API, find_model_api
from traces.model import Request

SAID = [{"role": "user", "content": "hi"}]
BEDROCK = "https://bedrock-runtime.us-east-1.amazonaws.com/model"


def post(url: str, body: object) -> Request:
    return Request(method="POST", url=url, body=json.dumps(body).encode())


@pytest.mark.parametrize(
    ("url", "body", "api"),
    [
        (f"{BEDROCK}/us.amazon.nova-lite-v1%3A0/converse", {"messages": SAID}, "Converse"),
        (f"{BEDROCK}/us.amazon.nova-lite-v1:0/converse-stream", {"messages": SAID}, "Converse"),
        (f"{BEDROCK}/meta.llama3/invoke", {"prompt": "hi"}, "InvokeModel"),
        ("http://localhost:11434/api/generate", {"model": "m", "prompt": "hi"}, "Ollama"),
        ("http://localhost:11434/api/embed", {"model": "m", "input": "hi"}, "Ollama"),
        ("https://api.openai.com/v1/completions", {"model": "m", "prompt": "hi"}, "completions"),
        (
            "https://x.azure.com/deployments/d/completions?v=1",
            {"prompt": "hi"},
            "completions",
        ),
        ("https://api.openai.com/v1/embeddings", {"model": "m", "input": ["hi"]}, "embeddings"),
        ("https://api.cohere.com/v1/chat", {"model": "command", "message": "hi"}, "Cohere"),
        ("https://api.cohere.com/v2/embed", {"model": "e", "texts": ["hi"]}, "Cohere"),
        ("https://x/v1/projects/p/models/m:rawPredict", {"instances": []}, "Vertex"),
        ("https://new.example/talk", {"model": "m", "turns": SAID}, UNKNOWN_API),
    ],
)
def test_a_model_api_without_a_dialect_is_model_traffic(url: str, body: object, api: str) -> None:
    request = post(url, body)
    assert classify_request(request) == "model"
    assert api in (find_model_api(request) or "")


@pytest.mark.parametrize(
    ("url", "body"),
    [
        ("https://shop.example/orders", {"id": 1}),
        ("https://shop.example/api/generate", {"kind": "invoice"}),
        ("https://search.example/completions", {"q": "sho"}),
        ("https://maps.example/embeddings", [1, 2]),
        ("https://crm.example/users", {"users": [{"role": "admin", "content": "x"}]}),
        ("https://crm.example/users", {"model": "A4", "users": [{"role": "admin", "name": "x"}]}),
        ("https://slack.example/api/chat", {"text": "hi", "channel": "c"}),
    ],
)
def test_a_tool_with_a_similar_path_or_field_stays_a_tool(url: str, body: object) -> None:
    assert classify_request(post(url, body)) == "tool"
