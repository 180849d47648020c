"""The responses lens reads and writes, and touches no byte it was not asked to touch."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.request_readings import read_messages, read_tool_results, replace_call_results
from tests.support.stores.third_party_recordings import (
    cassettes,
    flows,
)
from traces.conversation.derived_steps import derive_steps
from traces.dialects import find_dialect, openai_responses
from traces.dialects.types import ModelAnswer, TokenUsage, ToolCall
from traces.model import Headers, Request, apply_body_edits

type Item = dict[str, object]

texts = st.text(st.characters(codec="utf-8"), max_size=80)


def request(body: bytes, url: str = "http://h/v1/responses") -> Request:
    return Request(method="POST", url=url, body=body)


def output(key: str, said: object, kind: str = "function_call") -> Item:
    return {"type": f"{kind}_output", "call_id": key, "output": said}


def body_with(*items: Item, ascii: bool = True, indent: int | None = None) -> bytes:
    value = {"model": "m", "input": [{"role": "user", "content": "go"}, *items], "n": 10**22}
    return json.dumps(value, ensure_ascii=ascii, indent=indent).encode()


@pytest.mark.parametrize(
    "url", ["http://h/v1/responses", "https://h/openai/responses?api-version=2026"]
)
def test_the_path_and_the_body_decide(url: str) -> None:
    assert find_dialect(request(b'{"model": "m", "input": "hi"}', url)) is openai_responses
    assert find_dialect(request(b'{"answers": 3}', url)) is None
    assert find_dialect(Request(method="GET", url=url)) is None
    assert find_dialect(request(b'{"input": "hi"}', "http://h/v1/responses/resp_1/cancel")) is None


def test_instructions_and_a_plain_text_are_messages() -> None:
    body = b'{"instructions": "be brief", "input": "hi"}'
    said = [(message.role, message.content) for message in read_messages(openai_responses, body)]
    assert said == [("system", "be brief"), ("user", "hi")]


def test_items_are_messages() -> None:
    call: Item = {"type": "function_call", "call_id": "a", "name": "look", "arguments": "{}"}
    body = body_with({"type": "reasoning", "id": "r"}, call, output("a", "seen"))
    said = [(message.role, message.content) for message in read_messages(openai_responses, body)]
    assert said == [("user", "go"), ("assistant", ""), ("assistant", ""), ("tool", "seen")]


parts = st.lists(
    st.one_of(
        st.builds(lambda text: {"type": "input_text", "text": text}, texts),
        st.just({"type": "input_image", "image_url": "u"}),
    ),
    max_size=3,
)
kinds = st.sampled_from(["function_call", "custom_tool_call", "local_shell_call"])


@given(st.lists(st.tuples(texts | parts, kinds), max_size=4), st.booleans())
def test_law_a_result_replaced_by_its_own_text_changes_no_byte(
    said: list[tuple[object, str]], ascii: bool
) -> None:
    items = [output(f"c{number}", content, kind) for number, (content, kind) in enumerate(said)]
    body = body_with(*items, ascii=ascii, indent=None if ascii else 1)
    found = read_tool_results(openai_responses, body)
    assert len(found) == len(items)
    for each in found:
        assert replace_call_results(openai_responses, body, each.call_id, each.text) == ()


@given(texts | parts, texts, kinds, st.booleans())
def test_a_replaced_result_reads_back_and_the_rest_stands_as_it_stood(
    was: object, now: str, kind: str, ascii: bool
) -> None:
    body = body_with(output("a", was, kind), output("b", "keep"), ascii=ascii)
    after = apply_body_edits(body, replace_call_results(openai_responses, body, "a", now))

    assert [found.text for found in read_tool_results(openai_responses, after)] == [now, "keep"]
    at = body.index(b'"call_id": "a"')
    assert after[:at] == body[:at]
    assert after.endswith(body[body.index(b'"call_id": "b"') :])
    assert isinstance(json.loads(after)["input"][1]["output"], type(was))


def test_the_output_of_a_shell_is_what_it_printed_and_complained() -> None:
    ran: Item = {"stdout": "one\n", "stderr": "oh\n", "outcome": {"type": "exit", "exit_code": 0}}
    body = body_with(output("a", [ran], "shell_call"))
    assert read_tool_results(openai_responses, body)[0].text == "one\noh\n"

    after = json.loads(
        apply_body_edits(body, replace_call_results(openai_responses, body, "a", "two\n"))
    )
    assert after["input"][1]["output"] == [{**ran, "stdout": "two\n", "stderr": ""}]


@pytest.mark.parametrize(("status", "flag"), [("failed", True), ("completed", False)])
def test_only_a_patch_has_a_flag_for_errors(status: str, flag: bool) -> None:
    patch = output("a", "no", "apply_patch_call") | {"status": status}
    plain = output("b", "no") | {"status": status}
    flags = [
        found.is_error for found in read_tool_results(openai_responses, body_with(patch, plain))
    ]
    assert flags == [flag, None]


calls = st.lists(
    st.builds(
        ToolCall,
        id=st.text("abc123", min_size=1, max_size=6),
        name=st.text("abc_", min_size=1, max_size=8),
        arguments=texts,
    ),
    max_size=3,
).map(tuple)


@given(texts, calls, st.booleans(), st.sampled_from(["completed", "max_output_tokens"]))
def test_what_is_written_reads_back_streamed_or_whole(
    message: str, calls: tuple[ToolCall, ...], stream: bool, finish: str
) -> None:
    usage = TokenUsage(prompt_tokens=9, cached_tokens=4, completion_tokens=3, reasoning_tokens=1)
    answer = ModelAnswer(message=message, calls=calls, model="m", finish=finish, usage=usage)
    assert read(*written(answer, stream=stream)) == answer


def written(answer: ModelAnswer, *, stream: bool) -> tuple[Headers, bytes]:
    headers, chunks = openai_responses.write_model_answer(
        answer, stream=stream, id="resp_1", created=1
    )
    return headers, b"".join(chunk.data for chunk in chunks)


def read(headers: Headers, body: bytes) -> ModelAnswer | None:
    return openai_responses.parse_model_answer(headers, body)


def test_a_cut_or_failed_stream_gives_what_came_and_no_finish() -> None:
    call = ToolCall(id="t", name="look", arguments='{"where": "everywhere and nowhere"}')
    headers, whole = written(ModelAnswer(message="I look.", calls=(call,), model="m"), stream=True)
    cut = whole[: whole.index(b"event: response.function_call_arguments.done")]
    began = cut[: cut.index(b"event: response.output_text.done")]
    failed = b'data: {"type":"response.failed","response":{"status":"failed","model":"m"}}\n\n'
    error = b'data: {"type":"error","code":"server_error"}\n\n'

    for stream in (cut, cut + failed, cut + error):
        assert read(headers, stream) == ModelAnswer(message="I look.", calls=(call,), model="m")
    assert read(headers, began) == ModelAnswer(message="I look.", model="m")
    assert read(headers, failed) is None
    assert read(headers, error) is None


def test_what_the_agent_is_asked_for_are_calls_and_what_the_provider_did_are_none() -> None:
    shell: Item = {"type": "shell_call", "call_id": "kept", "action": {"commands": ["ls"]}}
    items: list[Item] = [
        {"type": "web_search_call", "id": "w"},
        {"type": "mcp_call", "id": "m", "name": "x", "arguments": "{}"},
        shell,
        output("kept", [], "shell_call"),
        shell | {"call_id": "s"},
        {"type": "custom_tool_call", "call_id": "c", "name": "patch", "input": "*** begin"},
        {"type": "local_shell_call", "call_id": "l", "action": {"command": ["ls"]}},
        {"type": "function_call", "call_id": "f", "name": "look", "arguments": '{ "a":1}'},
    ]
    answer = read((), json.dumps({"status": "completed", "output": items}).encode())
    assert answer is not None
    assert [(call.id, call.name, call.arguments) for call in answer.calls] == [
        ("s", "shell", '{"commands":["ls"]}'),
        ("c", "patch", "*** begin"),
        ("l", "local_shell", '{"command":["ls"]}'),
        ("f", "look", '{ "a":1}'),
    ]


@pytest.mark.gate
def test_real_recordings_are_read(shared: Path) -> None:
    """Every answer that other projects recorded is understood, streamed or whole."""
    seen = streamed = calls = results = 0
    for path, exchange in cassettes(shared, "*/openai_*/*.yaml", "langchain/*openai*"):
        answer = exchange.response
        if answer is None or answer.status != 200 or not is_response(exchange.request, answer.body):
            continue
        said = read(answer.headers, answer.body)
        assert said is not None, path.name
        assert None not in (said.model, said.finish, said.usage), path.name
        seen, calls = seen + 1, calls + len(said.calls)
        streamed += answer.body.startswith(b"event:")
        body = exchange.request.body
        for found in read_tool_results(openai_responses, body):
            assert replace_call_results(openai_responses, body, found.call_id, found.text) == ()
            results += 1
    assert (seen, streamed, calls, results) == (176, 83, 56, 56)


def is_response(request: Request, body: bytes) -> bool:
    """Some recorders took the URL away; then the answer says what it is."""
    if request.url.startswith("http"):
        return find_dialect(request) is openai_responses
    return body.startswith(b"event: response.") or b'"object": "response"' in body[:200]


def test_what_codex_did_is_told(shared: Path) -> None:
    """What it asks of the network for itself is not taken for what its tool did."""
    derived_steps = derive_steps(flows(shared, "codex.fwd.rest"))
    first, second, final = derived_steps.agent_steps
    assert {step.lane for step in derived_steps.steps} == {0}
    assert [step.source for step in derived_steps.steps[:4]] == ["system", "system", "user", "user"]
    assert final.message == "FINAL saw SECOND_REAL_42"
    assert [use.call_id for use in derived_steps.tool_uses] == [*first.calls, *second.calls]
    assert [str(use.result).split()[-1] for use in derived_steps.tool_uses] == [
        "MARK_REAL_42",
        "SECOND_REAL_42",
    ]
    assert [(use.tool, use.place) for use in derived_steps.tool_uses] == [
        ("exec_command", "local")
    ] * 2
