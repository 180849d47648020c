"""An in-process loop that drives the practice model without a network, and the real programs."""

import json
import re
import sqlite3
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

from scenarios.practice import order_book, scripted_model, world
from scenarios.practice.tasks.plan import PracticeTask
from scenarios.practice.tools import registry
from scenarios.practice.tools.json_schema import Json, JsonRow
from scenarios.world import Verdict
from traces.dialects.types import ToolCall

ROOT = Path(__file__).resolve().parents[3]

type Really = Callable[[], tuple[int, dict[str, Json]]]
"""Makes the call in the shop."""
type Bend = Callable[[str, int, Really], str | None]
"""(tool, number of its calls so far, the real call) -> the text of the result, or None."""

type Bent = Callable[[Really], str]
"""Returns the text of a result."""

OFFERED: tuple[JsonRow, ...] = tuple(
    {"type": "function", "function": {"name": tool.name, "parameters": tool.parameters}}
    for tool in registry.SHOP_TOOLS.values()
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """The result of a task."""

    final: str
    steps: int
    noticed: tuple[str, ...]
    said: tuple[str, ...]
    calls: tuple[str, ...]
    verdict: Verdict
    messages: tuple[JsonRow, ...]


def straight(tool: str, nth: int, really: Really) -> None:
    """Change no result."""


def run(
    folder: Path, task: PracticeTask, skill: str, mutate: Bend = straight, most: int = 90
) -> Run:
    """Drive the model through a task on a fresh shop, replacing results with `bend`."""
    found = scripted_model.parse_model_skill(skill)
    assert found is not None
    path = folder / "shop.db"
    world.set_up_order_book(path, task)
    messages: list[JsonRow] = [{"role": "user", "content": task.prompt}]
    noticed: list[str] = []
    said: list[str] = []
    calls: list[str] = []
    with closing(order_book.connect_order_book(path)) as shop:
        for _ in range(most):
            answer, seen = scripted_model.compute_next_answer(messages, OFFERED, found)
            noticed += seen
            said.append(answer.message)
            if not answer.calls:
                break
            messages.append(asked(answer.message, answer.calls))
            for call in answer.calls:
                calls.append(call.name)
                text = told(shop, call.name, call.arguments, Counter(calls)[call.name], mutate)
                messages.append({"role": "tool", "tool_call_id": call.id, "content": text})
    return Run(
        final=said[-1],
        steps=len(said),
        noticed=tuple(noticed),
        said=tuple(said),
        calls=tuple(calls),
        verdict=world.verify_order_book(path, task),
        messages=tuple(messages),
    )


def asked(text: str, calls: Sequence[ToolCall]) -> JsonRow:
    """Return the assistant's message as an agent sends it back."""
    made: list[Json] = [
        {
            "id": call.id,
            "type": "function",
            "function": {"name": call.name, "arguments": call.arguments},
        }
        for call in calls
    ]
    return {"role": "assistant", "content": text, "tool_calls": made}


def told(shop: sqlite3.Connection, name: str, arguments: str, nth: int, mutate: Bend) -> str:
    """Return a call's result in the agent's words, as over HTTP."""

    def really() -> tuple[int, dict[str, Json]]:
        return registry.call_shop_tool(shop, name, json.loads(arguments))

    text = mutate(name, nth, really)
    if text is not None:
        return text
    status, result = really()
    return json.dumps(result) if status == 200 else f"HTTP {status}: {json.dumps(result)}"


def once(tool: str, mutated: Bent, nth: int = 1) -> Bend:
    """Change the nth call of a tool."""
    return lambda name, count, really: mutated(really) if (name, count) == (tool, nth) else None


def always(tool: str, mutated: Bent) -> Bend:
    """Change every call of a tool."""
    return lambda name, _, really: mutated(really) if name == tool else None


def refused(_: Really) -> str:
    """Return an error, without an effect."""
    return 'HTTP 503: {"error":"upstream connect error"}'


def lost(really: Really) -> str:
    """Have the effect, but lose its acknowledgement."""
    really()
    return "error: ReadTimeout: timed out"


def cut(really: Really) -> str:
    """Return the first half of the result."""
    text = json.dumps(really()[1])
    return text[: len(text) // 2]


def saying(text: str) -> Bent:
    """Return this text, without an effect."""
    return lambda _: text


def wrong(field: str) -> Bent:
    """Replace one field of the result by another plausible value."""

    def bent(really: Really) -> str:
        return json.dumps(_other(really()[1], field))

    return bent


def _other(value: Json, field: str) -> Json:
    if isinstance(value, list):
        return [_other(item, field) for item in value]
    if isinstance(value, dict):
        return {
            key: _plausible(inner) if key == field else _other(inner, field)
            for key, inner in value.items()
        }
    return value


def _plausible(value: Json) -> Json:
    match value:
        case int():
            return value + 4321 if value > 999 else value + 1
        case float():
            return round(value + 90.27, 2)
        case str():
            return re.sub(r"\d(?=\D*$)", lambda digit: str((int(digit[0]) + 1) % 10), value)
        case _:
            return value


@contextmanager
def program(module: str, *arguments: str | Path) -> Iterator[subprocess.Popen[str]]:
    """A program of the practice world; it ends when its stdin does."""
    command = (sys.executable, "-m", f"scenarios.practice.{module}", *arguments)
    pipe = subprocess.PIPE
    with subprocess.Popen(command, cwd=ROOT, text=True, stdin=pipe, stdout=pipe) as process:
        try:
            yield process
        finally:
            process.kill()


def port(process: subprocess.Popen[str]) -> int:
    """Return the port that a server prints."""
    assert process.stdout is not None
    word, number = process.stdout.readline().split()
    assert word == "listening"
    return int(number)


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Both servers, running, and the shop's file."""

    shop: Path
    log: Path
    env: dict[str, str]


@contextmanager
def place(folder: Path) -> Iterator[Place]:
    """Start the complete practice world, as the programs a user would start."""
    shop, log = folder / "shop.db", folder / "model.jsonl"
    with (
        program("tool_server", "--db", shop, "--task", "refund-1") as tool_server,
        program("model_server", "--log", log) as provider,
    ):
        env = {
            "OPENAI_BASE_URL": f"http://127.0.0.1:{port(provider)}/v1",
            "TOOLS_URL": f"http://127.0.0.1:{port(tool_server)}",
            "NO_PROXY": "127.0.0.1",
        }
        yield Place(shop=shop, log=log, env=env)
