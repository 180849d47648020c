"""Words of the main path: what is worth running next, and what differs."""

from pathlib import Path

import pytest

from replay.matching.rule_learning import RequestDifference
from stumble.drift.volatile_rules import LearnedRules
from stumble.runs.environment.upstream_trust import UpstreamTrust
from stumble.runs.next_command import suggest_next_command
from tests.support.strict_replay import asked
from traces.conversation.derived_steps import derive_steps
from traces.dialects import openai_chat
from traces.dialects.types import ModelAnswer, ToolCall
from traces.model import Exchange, Response

URL = "http://a.example/v1/chat/completions"
CALL = ToolCall(id="c1", name="read it", arguments="{}")


def exchange(seq: int, messages: str, answer: ModelAnswer) -> Exchange:
    headers, chunks = openai_chat.write_model_answer(answer, stream=False, id="x", created=1)
    body = '{"model": "m", "messages": [' + messages + "]}"
    response = Response(status=200, headers=headers, chunks=chunks, at=seq, ended=seq)
    return Exchange(seq=seq, request=asked("POST", URL, body), started=seq, response=response)


def suggest(result: str | None, **world: str) -> str:
    user = '{"role": "user", "content": "go"}'
    first = exchange(0, user, ModelAnswer(calls=(CALL,) if result is not None else ()))
    exchanges = [first]
    if result is not None:
        told = f'{{"role": "tool", "tool_call_id": "c1", "content": "{result}"}}'
        call = (
            '{"role": "assistant", "tool_calls": [{"id": "c1", "type": "function", "function": '
            '{"name": "read it", "arguments": "{}"}}]}'
        )
        exchanges.append(exchange(1, f"{user}, {call}, {told}", ModelAnswer(message="done")))
    told_steps = derive_steps(exchanges)
    return suggest_next_command(Path("my a.tape"), told_steps, command=("x",), world=world)


@pytest.mark.parametrize(
    ("result", "wanted"),
    [
        ("it is 4217", "stumble fork 'my a.tape' --fault digit --where 'tool=read it'"),
        ("MARK_4217", "stumble fork 'my a.tape' --fault http_status:code=503 "
         "--where 'tool=read it'"),
        (None, "stumble replay 'my a.tape'"),
    ],
)  # fmt: skip
def test_the_next_command_fits_what_was_recorded(result: str | None, wanted: str) -> None:
    assert suggest(result) == wanted


def test_the_next_command_has_the_world_of_the_recording() -> None:
    assert suggest("4217", verify="./check it").endswith("--verify './check it'")


def test_without_steps_the_next_command_is_doctor() -> None:
    line = suggest_next_command(Path("a"), derive_steps(()), command=("./a b", "-p"))
    assert line == "stumble doctor -- './a b' -p"


def test_what_is_not_accepted_shows_the_first_difference() -> None:
    same = "# Environment You have been invoked in the following environment: " * 3
    left = RequestDifference(where="body.x", was=f"{same}one", now=f"{same}two", rules=())
    _, was, now = LearnedRules(left=(left,)).to_lines()
    assert was.endswith("one")
    assert now.endswith("two")
    assert len(was) < 200


def test_more_authorities_are_ours_alone(tmp_path: Path) -> None:
    bundle, own = tmp_path / "bundle.pem", tmp_path / "own.pem"
    bundle.write_text("usual\n")
    own.write_text("own\n")
    trust = UpstreamTrust(insecure=frozenset({"a.example"}), ca=own, client_cert=own)
    route = trust.make_route({"b": ("127.0.0.1", 1)}, bundle, tmp_path)
    assert route.ca_file is not None
    assert route.ca_file.read_text().split() == ["usual", "own"]
    assert bundle.read_text() == "usual\n"
    assert (set(route.insecure), route.client_cert) == ({"a.example"}, own)
    assert UpstreamTrust().make_route({}, bundle, tmp_path).ca_file == bundle
