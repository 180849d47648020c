"""The answers of a scripted agent's model: its script, replayed over the conversation so far."""

import json
import textwrap
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from tests.support.scripted import phrasing
from tests.support.scripted.data import ScriptedAgent


@dataclass(frozen=True, slots=True)
class ModelCall:
    """One tool call, with its text and reasoning."""

    tool: str
    arguments: Mapping[str, Any]
    say: str = ""
    think: str = ""


@dataclass(frozen=True, slots=True)
class ModelTurn:
    """One answer of the model."""

    text: str
    think: str = ""
    calls: tuple[ModelCall, ...] = ()


@dataclass(frozen=True, slots=True)
class ToolReply:
    """The result of a call as the model received it."""

    text: str
    fields: Mapping[str, Any] = field(default_factory=dict)

    @property
    def failed(self) -> bool:
        return self.text.startswith(("HTTP ", "Error", "error")) or "error" in self.fields

    @property
    def number(self) -> float | None:
        """The first amount in the result."""
        return next(_amounts(self.fields), None)

    def get(self, name: str, default: Any = None) -> Any:
        return self.fields.get(name, default)

    def __getitem__(self, name: str) -> Any:
        return self.fields[name]


def _amounts(value: Any) -> Iterator[float]:
    match value:
        case dict():
            for item in value.values():
                yield from _amounts(item)
        case float():
            yield value
        case str() if value.replace(".", "", 1).isdigit() and "." in value:
            yield float(value)


def read_reply(text: str) -> ToolReply:
    try:
        fields = json.loads(text)
    except ValueError:
        fields = {}
    return ToolReply(text, fields if isinstance(fields, dict) else {})


def answer(
    agent: ScriptedAgent, script: str, tools: Sequence[str], coin: object, told: Sequence[str]
) -> ModelTurn:
    """Return the next turn of a script after these replies."""
    running = _compiled(script, tuple(tools))(coin)
    try:
        step = next(running)
        for text in told:
            step = running.send(read_reply(text))
    except StopIteration as end:
        return ModelTurn(str(end.value))
    return ModelTurn(step.say, step.think, (step,))


type Running = Generator[ModelCall, ToolReply, str]


@lru_cache(maxsize=512)
def _compiled(script: str, tools: tuple[str, ...]) -> Callable[[object], Running]:
    names: dict[str, Any] = {name: _caller(name) for name in (*tools, "delegate")}
    names |= {**phrasing.NAMES, "json": json.dumps}
    exec(f"def script(coin):\n{textwrap.indent(script, '    ')}", names)  # noqa: S102
    made: Callable[[object], Running] = names["script"]
    return made


def _caller(tool: str) -> Callable[..., ModelCall]:
    def call(say: str = "", think: str = "", **arguments: Any) -> ModelCall:
        return ModelCall(tool, arguments, say, think)

    return call
