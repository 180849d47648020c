"""Conversations that a provider keeps, put together again from turns and answers."""

import json

from traces.dialects import stored_conversation


def turn(*items: object, **more: object) -> bytes:
    said = {"type": "response.create", "model": "m", "input": list(items), **more}
    return json.dumps(said).encode()


USER = {"role": "user", "content": "hi"}
CALL = {"type": "function_call", "call_id": "c1", "name": "f", "arguments": "{}"}
RESULT = {"type": "function_call_output", "call_id": "c1", "output": "7"}


def test_a_turn_is_asked_again_with_all_that_came_before() -> None:
    completed = json.dumps(
        {"type": "response.completed", "response": {"id": "r1", "output": [CALL]}}
    )
    found = stored_conversation.read_completed_answer(
        [b'{"type":"response.created"}', completed.encode()]
    )
    assert found is not None
    id, output = found
    assert id == "r1"
    body = turn(RESULT, previous_response_id="r1", tools=[], generate=True)
    assert stored_conversation.read_previous_id(body) == "r1"
    assert json.loads(
        stored_conversation.make_full_request(
            body, (*stored_conversation.read_input_items(turn(USER)), *output)
        )
    ) == {
        "stream": True,
        "model": "m",
        "tools": [],
        "input": [USER, CALL, RESULT],
    }


def test_items_keep_the_bytes_in_which_they_were_written() -> None:
    odd = b'{"n": 12345678901234567890123 ,"x":1e2, "t":"\\u00e9"}'
    body = b'{ "input" : [ ' + odd + b' ], "type":"response.create"}'
    assert stored_conversation.read_input_items(body) == (odd,)
    assert odd in stored_conversation.make_full_request(
        turn(USER), stored_conversation.read_input_items(body)
    )


def test_a_text_is_the_message_it_stands_for() -> None:
    [item] = stored_conversation.read_input_items(b'{"input": "hi"}')
    assert json.loads(item) == {"type": "message", "role": "user", "content": "hi"}


def test_items_told_one_by_one_are_an_answer_too() -> None:
    done = json.dumps({"type": "response.output_item.done", "item": CALL}).encode()
    completed = b'{"type":"response.completed","response":{"id":"r2","output":[]}}'
    found = stored_conversation.read_completed_answer([done, completed])
    assert found is not None
    assert [json.loads(item) for item in found[1]] == [CALL]


def test_an_answer_that_was_cut_is_none() -> None:
    assert (
        stored_conversation.read_completed_answer(
            [json.dumps({"type": "response.created"}).encode(), b"no json"]
        )
        is None
    )
