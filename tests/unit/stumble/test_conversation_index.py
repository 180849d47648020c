"""A daemon tells conversations apart by what they say, and guesses nothing."""

import json
from collections.abc import Sequence
from pathlib import Path

import pytest

from scenarios.toml_reader import ScenarioError
from stumble.daemon.conversation_index import ConversationIndex, ConversationState, ReadRequest
from stumble.daemon.rules import ConversationFacts, DaemonRules, read_rules, should_keep
from traces.dialects.types import ModelAnswer, ToolCall
from traces.model import Request

READER = ConversationIndex()
USER = {"role": "user", "content": "Pay the invoice"}


def chat(messages: Sequence[object]) -> ReadRequest:
    body = json.dumps({"model": "m", "messages": messages}).encode()
    headers = (("content-type", "application/json"),)
    url = "https://api.openai.com/v1/chat/completions"
    return READER.read(Request(method="POST", url=url, headers=headers, body=body), body)


def asks(id: str, account: str) -> ModelAnswer:
    call = ToolCall(id=id, name="pay", arguments=json.dumps({"account": account}))
    return ModelAnswer(calls=(call,), finish="tool_calls")


def returns(id: str) -> list[object]:
    call = {"id": id, "type": "function", "function": {"name": "pay", "arguments": "{}"}}
    return [
        USER,
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": id, "content": "ok"},
    ]


def begin(index: ConversationIndex, connection: int = 0) -> ConversationState:
    assert index.find_for_model(chat([USER]), connection) is None
    state = index.add()
    index.note_request(state, chat([USER]), connection)
    return state


def pay(account: str) -> Request:
    body = json.dumps({"account": account}).encode()
    return Request(method="POST", url="http://bank.test/v1/transfers", body=body)


def test_agents_with_one_prompt_are_told_apart_by_their_calls() -> None:
    index = ConversationIndex()
    states = [begin(index, n) for n in range(3)]
    for n, state in enumerate(states):
        index.note_answer(state, asks(f"call_{n}", f"acct-{n}"), failed=False)
    for n in (2, 0, 1):  # on whichever connection
        assert index.find_for_model(chat(returns(f"call_{n}")), 7) is states[n]
        index.note_request(states[n], chat(returns(f"call_{n}")), 7)


def test_the_same_messages_again_are_a_retry_after_a_failure_alone() -> None:
    index = ConversationIndex()
    state = begin(index)
    index.note_answer(state, None, failed=True)
    assert index.find_for_model(chat([USER]), 5) is state
    index.note_request(state, chat([USER]), 5)
    index.note_answer(state, ModelAnswer(message="done", finish="stop"), failed=False)
    assert index.find_for_model(chat([USER]), 5) is None


def test_a_tool_that_two_conversations_may_have_called_is_nobodys() -> None:
    index = ConversationIndex()
    one, other = begin(index, 1), begin(index, 2)
    index.note_answer(one, asks("a", "acct-7731"), failed=False)
    index.note_answer(other, asks("b", "acct-9902"), failed=False)
    assert index.find_for_tool(pay("acct-9902"), 9) is other
    assert index.find_for_tool(pay("acct-1111"), 9) is None
    index.note_answer(one, asks("c", "acct-9902"), failed=False)
    assert index.find_for_tool(pay("acct-9902"), 9) is None
    assert index.find_for_tool(pay("acct-9902"), 2) is other  # on its own connection
    named = Request(method="POST", url="http://x.test", headers=(("x-tool-call-id", "c"),))
    assert index.find_for_tool(named, 9) is one


def test_the_only_open_call_is_not_that_of_another_agent_with_the_same_tool() -> None:
    index = ConversationIndex()
    state = begin(index)
    index.note_answer(state, asks("a", "acct-7731"), failed=False)
    body = b'{"account": "%b"}'
    own, others = (
        Request(method="POST", url="http://tools.lab/pay", body=body % account)
        for account in (b"acct-7731", b"acct-9902")
    )
    assert index.find_for_tool(own, 9) is state
    assert index.find_for_tool(others, 9) is None


def test_what_is_over_is_forgotten() -> None:
    index = ConversationIndex()
    state = begin(index)
    index.note_answer(state, asks("a", "acct-7731"), failed=False)
    index.remove(state)
    assert index.find_for_model(chat(returns("a")), 0) is None
    assert index.find_for_tool(pay("acct-7731"), 0) is None
    assert (index._states, index._by_prefix) == ({}, {})


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("sample = 1.5", "sample"),
        ("sample = 'much'", "sample"),
        ("idle_seconds = -1", "idle_seconds"),
        ("slow_seconds = nan", "slow_seconds"),
        ("by = 'header:'", "by"),
        ("always = ['eror']", "always"),
        ("sampel = 1", "sampel"),
        ("= 1", "line 1"),
    ],
)
def test_a_wrong_file_is_refused_with_its_key(tmp_path: Path, text: str, why: str) -> None:
    path = tmp_path / "rules.toml"
    path.write_text(text)
    with pytest.raises(ScenarioError, match=why):
        read_rules(path)


def test_sampling_keeps_its_share_and_always_what_it_has_to() -> None:
    rules = DaemonRules(sample=0.1, always=("error", "slow", "tool:pay*"), slow=5)
    kept = [should_keep(rules, f"id-{n}", ConversationFacts()) for n in range(10_000)]
    assert 900 < sum(kept) < 1_100
    dropped = f"id-{kept.index(False)}"
    for facts in (
        ConversationFacts(failed=True),
        ConversationFacts(longest=5.0),
        ConversationFacts(tools={"pay_all"}),
    ):
        assert should_keep(rules, dropped, facts)
    assert not should_keep(rules, dropped, ConversationFacts(longest=4.9, tools={"read"}))


def test_what_is_read_and_kept_of_long_conversations_is_what_is_new() -> None:
    index, states = ConversationIndex(), list[ConversationState]()
    histories = [[{"role": "user", "content": f"task {n} " + "x" * 9000}] for n in range(5)]
    for step in range(30):
        for n, history in enumerate(histories):
            history.append({"role": "user", "content": f"part {step}"})
            body = json.dumps({"model": "m", "messages": history}).encode()
            url = "https://api.openai.com/v1/chat/completions"
            read = index.read(Request(method="POST", url=url, body=body), body)
            found = index.find_for_model(read, n)
            assert (found is None) == (step == 0)
            states += [index.add()] if found is None else []
            assert found in (None, states[n])
            index.note_request(states[n], read, n)
            index.note_answer(states[n], ModelAnswer(message="go on", finish="stop"), failed=False)
    for state in states:
        index.remove(state)
    assert not index._states
    assert not index._by_prefix
    assert not index._lengths
