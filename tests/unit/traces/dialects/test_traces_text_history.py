"""A shell agent without tools: its history is read as calls and results, byte by byte."""

import gzip
import json
from collections.abc import Sequence
from itertools import count
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.request_readings import read_messages, read_tool_results, replace_call_results
from traces.conversation.derived_steps import DerivedSteps, derive_steps
from traces.dialects import find_dialect, mini_swe_agent, openai_chat
from traces.dialects.types import ModelAnswer, ToolCall
from traces.model import Exchange, Request, Response, apply_body_edits

type Said = dict[str, object]

texts = st.text(st.characters(codec="utf-8"), max_size=80)
FORM: Said = {"role": "system", "content": "Answer with one block:\n```bash\nyour_command\n```"}
GO: Said = {"role": "user", "content": "go"}


def asks(command: str, tag: str = "bash") -> Said:
    return {"role": "assistant", "content": f"THOUGHT: why not\n\n```{tag}\n{command}\n```"}


def saw(text: str) -> Said:
    return {"role": "user", "content": text}


def body_of(messages: Sequence[Said], *, ascii: bool = True, **more: object) -> bytes:
    value = {"model": "m", "messages": messages, "n": 10**22, **more}
    return json.dumps(value, ensure_ascii=ascii).encode()


def request(body: bytes) -> Request:
    return Request(method="POST", url="http://h/v1/chat/completions", body=body)


def test_a_form_that_is_shown_or_was_followed_makes_a_text_history() -> None:
    followed = [GO, asks("ls"), saw("<returncode>0</returncode>\n<output>\n</output>")]
    assert find_dialect(request(body_of([FORM, GO]))) is mini_swe_agent
    assert find_dialect(request(body_of(followed))) is mini_swe_agent


def test_a_chat_about_bash_and_an_agent_with_tools_are_none() -> None:
    chat = [GO, asks("ls"), saw("thank you")]
    assert find_dialect(request(body_of(chat))) is openai_chat
    assert find_dialect(request(body_of([FORM, GO], tools=[{"type": "function"}]))) is openai_chat


@pytest.mark.parametrize("tag", ["bash", "mswea_bash_command"])
def test_an_answer_with_one_block_is_a_call(tag: str) -> None:
    text = str(asks("ls && pwd", tag)["content"])
    answer = said(text)
    (call,) = answer.calls
    assert answer.message == text
    assert (call.name, json.loads(call.arguments)) == ("bash", {"command": "ls && pwd"})


def said(text: str) -> ModelAnswer:
    written = openai_chat.write_model_answer(
        ModelAnswer(message=text), stream=False, id="x", created=1
    )
    answer = mini_swe_agent.parse_model_answer(written[0], written[1][0].data)
    assert answer is not None
    return answer


@pytest.mark.parametrize("text", ["no block", f"{asks('a')['content']}\n{asks('b')['content']}"])
def test_an_answer_with_no_block_or_two_is_none(text: str) -> None:
    assert said(text).calls == ()
    refused = body_of([FORM, GO, {"role": "assistant", "content": text}, saw("ONE action!")])
    assert read_tool_results(mini_swe_agent, refused) == ()
    assert [message.role for message in read_messages(mini_swe_agent, refused)][-1] == "user"


@pytest.mark.parametrize(
    ("text", "flag"),
    [
        ("<returncode>0</returncode>\n<output>\nfine</output>", False),
        ("<returncode>-9</returncode>\n<output>\n</output>", True),
        ("The last command <command>sleep 99</command> timed out", None),
    ],
)
def test_what_follows_a_call_is_its_result(text: str, flag: bool | None) -> None:
    body = body_of([FORM, GO, asks("ls"), saw(text)])
    (found,) = read_tool_results(mini_swe_agent, body)
    assert found.call_id == said(str(asks("ls")["content"])).calls[0].id
    assert (found.text, found.is_error) == (text, flag)
    assert json.loads(body[found.start : found.stop])["content"] == text
    assert [message.role for message in read_messages(mini_swe_agent, body)][-1] == "tool"


turns = st.lists(st.tuples(st.sampled_from(["ls", "pwd"]), texts), max_size=4)


@given(turns, st.booleans())
def test_law_a_result_replaced_by_its_own_text_changes_no_byte(
    turns: list[tuple[str, str]], ascii: bool
) -> None:
    history = [each for command, text in turns for each in (asks(command), saw(text))]
    body = body_of([FORM, GO, *history], ascii=ascii)
    found = read_tool_results(mini_swe_agent, body)
    assert [each.text for each in found] == [text for _, text in turns]
    for each in found:
        assert replace_call_results(mini_swe_agent, body, each.call_id, each.text) == ()


@given(turns.filter(bool), texts, st.booleans())
def test_a_replaced_result_reads_back_and_no_other_changes(
    turns: list[tuple[str, str]], now: str, ascii: bool
) -> None:
    history = [each for command, text in turns for each in (asks(command), saw(text))]
    body = body_of([FORM, GO, *history], ascii=ascii)
    last = read_tool_results(mini_swe_agent, body)[-1]
    after = apply_body_edits(body, replace_call_results(mini_swe_agent, body, last.call_id, now))

    wanted = [text for _, text in turns[:-1]] + [now]
    assert [each.text for each in read_tool_results(mini_swe_agent, after)] == wanted
    assert after[: last.start] == body[: last.start]
    assert after.endswith(body[last.stop :])


def test_a_call_is_written_as_a_block_and_reads_back() -> None:
    call = ToolCall(id="any", name="bash", arguments='{"command": "ls"}')
    for stream in (True, False):
        headers, chunks = mini_swe_agent.write_model_answer(
            ModelAnswer(message="I look.", calls=(call,)), stream=stream, id="x", created=1
        )
        answer = mini_swe_agent.parse_model_answer(
            headers, b"".join(chunk.data for chunk in chunks)
        )
        assert answer is not None
        assert answer.message == "I look.\n\n```bash\nls\n```"
        assert [json.loads(made.arguments) for made in answer.calls] == [{"command": "ls"}]


def test_an_answer_cut_off_is_no_call_yet() -> None:
    whole = ModelAnswer(message=str(asks("ls")["content"]) + "\nand then some more text follows")
    headers, chunks = mini_swe_agent.write_model_answer(whole, stream=True, id="x", created=1)
    cut = mini_swe_agent.parse_model_answer(headers, b"".join(chunk.data for chunk in chunks[:-2]))
    assert cut is not None
    assert (cut.calls, cut.finish) == ((), None)


def performed(messages: Sequence[Said]) -> DerivedSteps:
    """The story of an agent whose whole history is this."""
    seqs, exchanges = count(), []
    for end, message in enumerate(messages):
        if message["role"] != "assistant":
            continue
        seq = next(seqs)
        answer = ModelAnswer(message=str(message["content"]))
        headers, chunks = openai_chat.write_model_answer(answer, stream=False, id="x", created=0)
        response = Response(status=200, headers=headers, chunks=chunks, at=seq, ended=seq)
        asked = [{key: each[key] for key in ("role", "content")} for each in messages[:end]]
        exchanges.append(
            Exchange(seq=seq, request=request(body_of(asked)), response=response, started=seq)
        )
    return derive_steps(exchanges)


def test_the_same_text_again_is_another_call() -> None:
    told = performed(
        [FORM, GO, asks("ls"), saw("one"), asks("ls"), saw("two"), asks("ls"), saw("three")]
    )
    first, second, third = told.tool_uses
    assert (second.call_id, third.call_id) == (f"{first.call_id}#2", f"{first.call_id}#3")
    assert [use.result for use in told.tool_uses] == ["one", "two", None]
    assert [use.ordinal for use in told.tool_uses] == [0, 1, 2]


@pytest.mark.gate
@pytest.mark.parametrize("name", ["django__django-16560", "sympy__sympy-13091"])
def test_real_histories_are_told(shared: Path, name: str) -> None:
    """Every command that was run has its result; a user told the model what was refused."""
    path = shared / "coding" / f"{name}.traj.json.gz"
    history = json.loads(gzip.decompress(path.read_bytes()))["messages"]
    if history[-1]["role"] == "user":
        history = history[:-1]  # The patch, which no model was shown.
    told = performed(history)

    *run, submitted = told.tool_uses
    assert len(told.agent_steps) == sum(message["role"] == "assistant" for message in history)
    assert {step.lane for step in told.steps} == {0}
    assert all(use.result for use in run)
    assert (submitted.result, "COMPLETE_TASK" in submitted.arguments) == (None, True)
    refused = [step for step in told.steps[2:] if step.source == "user"]
    assert len(told.tool_uses) + len(refused) == len(told.agent_steps)


@pytest.mark.gate
def test_five_hundred_real_histories_are_read(shared: Path) -> None:
    calls = repeated = failed = 0
    path = shared / "coding" / "mini_swe_gemini3pro_500.jsonl.gz"
    for line in gzip.decompress(path.read_bytes()).splitlines():
        body = body_of(json.loads(line)["messages"])
        assert find_dialect(request(body)) is mini_swe_agent
        found = read_tool_results(mini_swe_agent, body)
        assert len({each.call_id for each in found}) == len(found)
        last = found[-1]
        assert replace_call_results(mini_swe_agent, body, last.call_id, last.text) == ()
        calls, repeated = calls + len(found), repeated + sum("#" in f.call_id for f in found)
        failed += sum(each.is_error is True for each in found)
    assert calls == 19_479
    assert repeated == 235
    assert 0 < failed < calls
