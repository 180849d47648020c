"""Answer chats with a real model: seeds, bounds, and what it answered before.

The nth answer to one conversation is drawn with a seed made of the server's seed, the conversation
and n, unless the request has a `seed`. So a server that is asked the same in the same order gives
the same tokens, and a run that is repeated is another draw. With temperature 0 all draws are equal.

Agents that ask for `NAME:arm=a` and `NAME:arm=b` are counted apart: the nth answer to a
conversation is the same draw in every arm, so that arms differ by what they do and not by luck
(common random numbers).
"""

import hashlib
import json
from collections import Counter, OrderedDict
from collections.abc import Mapping, Sequence
from copy import replace
from dataclasses import dataclass, field

from msgspec import Struct
from msgspec.structs import astuple

from scenarios.practice.conversation import find_message_calls, to_call_key
from scenarios.practice.real.call_schema import (
    build_call_schema,
    choose_tools,
    read_offered_tools,
)
from scenarios.practice.real.engine import Completion, CompletionEngine, PromptTurn, Sampling
from scenarios.practice.real.prompt import write_prompt_turns
from scenarios.practice.real.reply import Reply, read_reply
from scenarios.practice.tools.json_schema import Json, JsonRow, JsonSchema

MAX_TOKENS = 96
"""Most tokens of an answer, whatever the request says: a model may never end by itself."""
KEPT_ANSWERS = 4096
"""Answers and counts of conversations that are kept; the oldest are forgotten first."""


class RealModelName(Struct, frozen=True, kw_only=True):
    """A served name with its options, as `smollm2` or `smollm2:t=0.5,arm=retries`."""

    name: str
    temperature: float | None = None
    arm: str = ""


def parse_real_model_name(text: str) -> RealModelName | None:
    """Return the parts of a model's name; None if an option is unknown or out of range."""
    name, _, words = text.removeprefix("openai/").partition(":")
    options = dict(word.partition("=")[::2] for word in words.split(",") if word)
    if not options.keys() <= {"t", "arm"}:
        return None
    try:
        temperature = float(options["t"]) if "t" in options else None
    except ValueError:
        return None
    if temperature is not None and not 0 <= temperature <= 2:
        return None
    return RealModelName(name=name, temperature=temperature, arm=options.get("arm", ""))


@dataclass(kw_only=True)
class RealChatModel:
    """A model of one name on one engine."""

    name: str
    engine: CompletionEngine
    seed: int = 0
    temperature: float = 0.0
    """For requests that have none, by field or by name."""
    classes: Counter[str] = field(default_factory=Counter)
    """Replies by class."""
    _asked: OrderedDict[str, int] = field(default_factory=OrderedDict)
    _drawn: OrderedDict[str, Completion] = field(default_factory=OrderedDict)

    def answer(
        self, request: JsonRow, messages: Sequence[JsonRow], tools: Sequence[JsonRow]
    ) -> Reply:
        """Return the next reply of a chat. Raises ContextExceeded and InvalidModelRequest."""
        offered = read_offered_tools(tools)
        permitted, words = choose_tools(offered, request.get("tool_choice"))
        turns = write_prompt_turns(messages, offered)
        schema = build_call_schema(permitted, words=words) if offered else None
        sampling = self._choose_sampling(request, turns, schema)
        completion = self._complete(turns, schema, sampling)
        digest = _digest([list(map(dict, turns)), str(sampling.seed)])
        earlier = [
            to_call_key(name, arguments)
            for message in messages
            for _, name, arguments in find_message_calls(message)
        ]
        reply = read_reply(completion, permitted, call_id=f"call_{digest[:24]}", earlier=earlier)
        self.classes[reply.kind] += 1
        return reply

    def _choose_sampling(
        self, request: JsonRow, turns: Sequence[PromptTurn], schema: JsonSchema | None
    ) -> Sampling:
        named = parse_real_model_name(str(request.get("model")))
        temperature = request.get("temperature")
        if not isinstance(temperature, int | float) or isinstance(temperature, bool):
            temperature = self.temperature
            if named is not None and named.temperature is not None:
                temperature = named.temperature
        limits = [request.get(key) for key in ("max_tokens", "max_completion_tokens")]
        asked = [limit for limit in limits if isinstance(limit, int) and limit > 0]
        seed = request.get("seed")
        if not isinstance(seed, int) or isinstance(seed, bool):
            conversation = _digest([list(map(dict, turns)), schema, temperature])
            seed = self._draw_seed(conversation, named.arm if named is not None else "")
        return Sampling(
            seed=seed % 2**32,
            temperature=float(temperature),
            max_tokens=min([MAX_TOKENS, *asked]),
        )

    def _draw_seed(self, conversation: str, arm: str) -> int:
        nth = self._asked.pop(f"{arm} {conversation}", 0)
        self._asked[f"{arm} {conversation}"] = nth + 1
        _forget_oldest(self._asked)
        return int(_digest([self.seed, conversation, nth])[:8], 16)

    def _complete(
        self, turns: Sequence[PromptTurn], schema: JsonSchema | None, sampling: Sampling
    ) -> Completion:
        """Ask the engine, unless it gave the same draw before; greedy ones need no seed."""
        if not sampling.temperature:
            sampling = replace(sampling, seed=0)
        key = _digest([list(map(dict, turns)), schema, *astuple(sampling)])
        if key not in self._drawn:
            self._drawn[key] = self.engine.complete(turns, schema, sampling)
            _forget_oldest(self._drawn)
        return self._drawn[key]


def _forget_oldest[V](kept: OrderedDict[str, V]) -> None:
    while len(kept) > KEPT_ANSWERS:
        kept.popitem(last=False)


def _digest(value: Sequence[Json] | Mapping[str, Json] | Sequence[object]) -> str:
    text = json.dumps(value, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()
