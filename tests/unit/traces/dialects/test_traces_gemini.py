"""Gemini's generateContent, as the reference says it and as real clients recorded it."""

import json
from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from tests.support.request_readings import read_messages, read_tool_results, replace_call_results
from traces.conversation.derived_steps import derive_steps
from traces.dialects import find_dialect, gemini
from traces.dialects.errors import is_streaming_request
from traces.dialects.types import ModelAnswer, TokenUsage, ToolCall
from traces.model import Chunk, Exchange, Request, Response, apply_body_edits

type Part = dict[str, object]
type Said = dict[str, object]

texts = st.text(st.characters(codec="utf-8"), max_size=80)
PATH = "/v1beta/models/gemini-x:generateContent"


def asks(*calls: tuple[str, dict[str, object]], id: str | None = None) -> Said:
    named: Part = {"id": id} if id else {}
    parts = [{"functionCall": named | {"name": name, "args": args}} for name, args in calls]
    return {"role": "model", "parts": parts}


def returns(name: str, response: object, id: str | None = None) -> Part:
    named: Part = {"id": id} if id else {}
    return {"functionResponse": named | {"name": name, "response": response}}


def user(*parts: Part) -> Said:
    return {"role": "user", "parts": parts}


def body_of(contents: Sequence[Said], **more: object) -> bytes:
    return json.dumps({"contents": contents, "n": 10**22, **more}).encode()


GO = user({"text": "go"})


def test_the_path_says_that_it_is_gemini_and_whether_it_is_a_stream() -> None:
    whole = Request(method="POST", url=f"http://h{PATH}", body=body_of([GO]))
    vertex = "/v1/projects/p/locations/l/publishers/google/models/m:streamGenerateContent?alt=sse"
    streamed = Request(method="POST", url=f"http://h{vertex}", body=body_of([GO]))
    assert find_dialect(whole) is find_dialect(streamed) is gemini
    assert (is_streaming_request(whole), is_streaming_request(streamed)) == (False, True)
    counted = Request(method="POST", url="http://h/v1beta/models/m:countTokens", body=whole.body)
    assert find_dialect(counted) is None


def test_a_conversation_with_its_instruction_first() -> None:
    body = body_of(
        [GO, asks(("ls", {"path": "/"})), user(returns("ls", {"output": "a\nb"}))],
        systemInstruction={"parts": [{"text": "be brief"}]},
    )
    said = [(message.role, message.content) for message in read_messages(gemini, body)]
    assert said == [("system", "be brief"), ("user", "go"), ("assistant", ""), ("tool", "a\nb")]


def test_a_result_is_known_by_its_id() -> None:
    body = body_of([GO, asks(("ls", {}), id="c7"), user(returns("ls", {"error": "no"}, id="c7"))])
    (result,) = read_tool_results(gemini, body)
    assert (result.call_id, result.text, result.is_error) == ("c7", "no", True)


def test_what_litellm_writes_is_read_and_replaced() -> None:
    call: Said = {
        "role": "model",
        "parts": [{"function_call": {"name": "ls", "args": {"path": "/"}}}],
    }
    result: Part = {"function_response": {"name": "ls", "response": {"content": "a b"}}}
    body = body_of([GO, call, user(result)], system_instruction={"parts": [{"text": "be brief"}]})
    said = [(message.role, message.content) for message in read_messages(gemini, body)]
    assert said == [("system", "be brief"), ("user", "go"), ("assistant", ""), ("tool", "a b")]
    asked = gemini.parse_model_answer(
        (), json.dumps({"candidates": [{"content": asks(("ls", {"path": "/"}))}]}).encode()
    )
    assert asked is not None
    (found,) = read_tool_results(gemini, body)
    assert (found.call_id, found.text, found.is_error) == (asked.calls[0].id, "a b", None)
    mutated = json.loads(
        apply_body_edits(body, replace_call_results(gemini, body, found.call_id, "a c"))
    )
    assert mutated["contents"][2]["parts"][0]["function_response"]["response"] == {"content": "a c"}


def test_a_result_may_have_the_role_function_and_an_error_that_is_none() -> None:
    said: Said = {"role": "function", "parts": [returns("ls", {"output": "a", "error": None})]}
    (result,) = read_tool_results(gemini, body_of([GO, asks(("ls", {})), said]))
    assert (result.is_error, json.loads(result.text)["output"]) == (False, "a")


def test_without_ids_a_result_belongs_to_the_next_call_of_that_name() -> None:
    again = asks(("get", {"a": 1}))
    body = body_of(
        [
            GO,
            asks(("get", {"a": 1}), ("put", {}), ("get", {"a": 2})),
            user(
                *(returns(n, {"output": t}) for n, t in (("put", "p"), ("get", "1"), ("get", "2")))
            ),
            again,
            user(returns("get", {"output": "3"})),
        ]
    )
    put, first, second, third = read_tool_results(gemini, body)
    asked = gemini.parse_model_answer((), json.dumps({"candidates": [{"content": again}]}).encode())
    assert asked is not None
    assert asked.calls[0].id == first.call_id
    assert third.call_id == f"{first.call_id}#2"
    assert len({put.call_id, first.call_id, second.call_id}) == 3
    assert [found.text for found in (put, first, second, third)] == ["p", "1", "2", "3"]


def test_a_story_joins_calls_that_have_no_ids() -> None:
    told: list[Said] = [GO]
    seen = list[Exchange]()
    for turn, text in enumerate(("one", "two", "three")):
        call = {"candidates": [{"content": asks(("get", {"a": 1})), "finishReason": "STOP"}]}
        request = Request(method="POST", url=f"http://h{PATH}", body=body_of(told))
        seen.append(_heard(turn, request, json.dumps(call).encode()))
        told = [*told, asks(("get", {"a": 1})), user(returns("get", {"output": text}))]
    request = Request(method="POST", url=f"http://h{PATH}", body=body_of(told))
    done = {"candidates": [{"content": {"parts": [{"text": "ok"}]}, "finishReason": "STOP"}]}
    seen.append(_heard(3, request, json.dumps(done).encode()))
    uses = derive_steps(seen).tool_uses
    assert [use.result for use in uses] == ["one", "two", "three"]
    assert len({use.call_id for use in uses}) == 3


@given(texts, texts)
def test_a_replaced_result_touches_no_other_byte(was: str, now: str) -> None:
    body = body_of([GO, asks(("get", {})), user(returns("get", {"output": was}), {"text": "and"})])
    (result,) = read_tool_results(gemini, body)
    assert apply_body_edits(body, replace_call_results(gemini, body, result.call_id, was)) == body
    mutated = apply_body_edits(body, replace_call_results(gemini, body, result.call_id, now))
    assert read_tool_results(gemini, mutated)[0].text == now
    (back,) = read_tool_results(gemini, mutated)
    assert (
        apply_body_edits(mutated, replace_call_results(gemini, mutated, back.call_id, was)) == body
    )


def test_what_is_no_lone_text_is_replaced_as_a_whole() -> None:
    body = body_of([GO, asks(("get", {})), user(returns("get", {"order": "o1", "sum": 5}))])
    (result,) = read_tool_results(gemini, body)
    assert json.loads(result.text) == {"order": "o1", "sum": 5}
    one = apply_body_edits(
        body, replace_call_results(gemini, body, result.call_id, '{"order": "o1", "sum": 7}')
    )
    assert json.loads(read_tool_results(gemini, one)[0].text) == {"order": "o1", "sum": 7}
    two = apply_body_edits(body, replace_call_results(gemini, body, result.call_id, "gone"))
    assert read_tool_results(gemini, two)[0].text == "gone"


def test_a_result_is_marked_as_an_error() -> None:
    body = body_of([GO, asks(("get", {})), user(returns("get", {"output": "x"}))])
    (result,) = read_tool_results(gemini, body)
    assert result.is_error is None
    (failed,) = read_tool_results(
        gemini, apply_body_edits(body, gemini.mark_result_failed(body, result))
    )
    assert failed.is_error is True
    assert gemini.mark_result_failed(body, failed) == ()


def test_thinking_is_counted_once_and_is_not_what_was_said() -> None:
    value = {
        "candidates": [
            {
                "content": {"parts": [{"text": "hm", "thought": True}, {"text": "yes"}]},
                "finishReason": "STOP",
            }
        ],
        "usageMetadata": {
            "promptTokenCount": 118,
            "cachedContentTokenCount": 100,
            "candidatesTokenCount": 17,
            "thoughtsTokenCount": 69,
            "totalTokenCount": 204,
        },
        "modelVersion": "gemini-3-flash",
    }
    answer = gemini.parse_model_answer((), json.dumps(value).encode())
    assert answer == ModelAnswer(
        message="yes",
        model="gemini-3-flash",
        finish="STOP",
        usage=TokenUsage(
            prompt_tokens=118, cached_tokens=100, completion_tokens=86, reasoning_tokens=69
        ),
    )


def test_a_stream_may_be_events_or_a_list_and_may_break_off() -> None:
    answer = ModelAnswer(
        message="a longer text that comes in pieces",
        calls=(ToolCall(id="c1", name="get", arguments='{"a": 10000000000000000000000}'),),
        model="m",
        finish="STOP",
    )
    headers, chunks = gemini.write_model_answer(answer, stream=True, id="x", created=0)
    whole = b"".join(chunk.data for chunk in chunks)
    found = gemini.parse_model_answer(headers, whole)
    assert found is not None
    assert (found.message, found.calls, found.finish) == (answer.message, answer.calls, "STOP")
    events = [chunk.data.removeprefix(b"data: ").strip() for chunk in chunks]
    listed = gemini.parse_model_answer((), b"[" + b",\r\n".join(events) + b"]")
    assert listed == found
    cut = gemini.parse_model_answer((), (b"[" + b",\r\n".join(events))[:-30])
    assert cut is not None
    assert (cut.message, cut.calls, cut.finish) == (answer.message, (), None)


def test_a_prompt_that_is_blocked_is_a_refusal() -> None:
    answer = gemini.parse_model_answer((), b'{"promptFeedback": {"blockReason": "SAFETY"}}')
    assert answer is not None
    assert (answer.refused, answer.finish) == (True, "SAFETY")
    assert gemini.parse_model_answer((), b'{"error": {"code": 429}}') is None


def _heard(seq: int, request: Request, body: bytes) -> Exchange:
    at = float(seq)
    answer = Response(
        status=200,
        headers=(("content-type", "application/json"),),
        chunks=(Chunk(at=at, data=body),),
        at=at,
        ended=at,
    )
    return Exchange(seq=seq, request=request, started=at, response=answer)
