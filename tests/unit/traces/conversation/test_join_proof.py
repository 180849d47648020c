"""What the client asks for itself while a call is open does not become the call's."""

import pytest

from tests.unit.traces.conversation.test_traces_conversation import GO, Play, result
from traces.conversation.join_proof import extract_answer_values, has_answer_value, has_call_values
from traces.dialects.types import ToolCall
from traces.model import Request

SHELL = ToolCall(id="c1", name="run_commands", arguments='{"commands": ["printf MARK_4217"]}')
LIST = ToolCall(id="c1", name="overview", arguments="{}")


def play(call: ToolCall, answer: bytes, text: str, status: int = 200) -> Play:
    """A call, one request while it is open, and its result."""
    told = (done := Play()).model(GO, call)
    done.tool("health", said=answer, status=status)
    done.model([*told, result("c1", text)], text="done")
    return done


def test_a_poll_of_the_client_is_not_the_shells() -> None:
    (use,) = play(SHELL, b'{"ok":true,"pid":31185}', "MARK_4217").story().tool_uses
    assert (use.place, use.join, use.seqs, use.server) == ("local", None, (), None)


def test_a_download_that_fails_does_not_fail_the_call() -> None:
    (use,) = play(SHELL, b"Bad Gateway from upstream", "MARK_4217", 502).story().tool_uses
    assert use.is_error is None
    assert use.place == "local"


def test_the_exchange_itself_names_no_call_either() -> None:
    placed = play(SHELL, b"{}", "MARK_4217").story().contexts[1]
    assert (placed.kind, placed.call, placed.join) == ("tool", None, None)


@pytest.mark.parametrize(
    ("answer", "text", "status"),
    [
        (b'{"total": 1284.37, "open": true}', "the total is 1284.37 GBP", 200),
        (b'{"rows": [{"name": "Widget"}]}', "- Widget", 200),
        (b"first line\nsecond line of it\n", "> second line of it", 200),
        (b"", "Error: the server said 503", 503),
    ],
)
def test_a_request_whose_answer_is_in_the_result_is_the_calls(
    answer: bytes, text: str, status: int
) -> None:
    (use,) = play(LIST, answer, text, status).story().tool_uses
    assert (use.place, use.join, use.seqs) == ("http", "window", (1,))


def test_a_word_that_is_part_of_another_is_not_shown() -> None:
    assert not has_answer_value(("31185",), "in 1311850 steps")
    assert has_answer_value(("31185",), "pid=31185, up")


@pytest.mark.parametrize(
    ("tool", "arguments", "url", "body"),
    [
        ("get_order", '{"id": 7}', "http://shop/orders/7", b""),
        ("listInvoices", "{}", "http://shop/v2/invoice", b""),
        ("lookup", '{"sku": "A-77"}', "http://shop/x?sku=A%2D77", b""),
        ("bash", '{"command": "python fetch.py east-12"}', "http://x/", b"area=east-12"),
        ("bash", '{"command": "curl http://shop.test/a"}', "http://shop.test/a", b""),
    ],
)
def test_a_request_carries_its_call(tool: str, arguments: str, url: str, body: bytes) -> None:
    assert has_call_values(tool, arguments, Request(method="POST", url=url, body=body))


@pytest.mark.parametrize(
    ("tool", "arguments", "url"),
    [
        ("run_commands", '{"query": "printf MARK_REAL_4217"}', "http://127.0.0.1:25463/health"),
        ("shell", '{"cmd": "ls -la"}', "https://public.blob.test/encodings/o200k_base.tiktoken"),
        ("http_get", '{"n": 1}', "http://a.test/1"),
    ],
)
def test_a_request_of_the_client_carries_no_call(tool: str, arguments: str, url: str) -> None:
    assert not has_call_values(tool, arguments, Request(method="GET", url=url, body=b""))


def test_values_are_those_of_the_answer_and_not_its_keys() -> None:
    played = Play()
    played.tool("x", said=b'{"success": true, "result": {"amount": 129, "currency": "GBP"}}')
    assert extract_answer_values(played.exchanges[0]) == ("129",)


def test_no_answer_has_no_values() -> None:
    played = Play()
    played.tool("x", said=b"")
    assert extract_answer_values(played.exchanges[0]) == ()
