"""What a provider ran, why answers ended and which calls were cut off are columns of the store."""

import json

import pytest

from traces.dialects.types import HostedCall
from traces.importers.shared.conversation import (
    ConversationMessage,
    ImportedConversation,
    add_conversation,
)
from traces.importers.shared.conversation_rows import ConversationRows
from traces.importers.shared.finish_reason import find_finish_reason
from traces.store.hosted_calls import dump_hosted_calls, load_hosted_calls
from traces.store.schema import MAX_TEXT_BYTES

CALL = HostedCall(tool="web_search", arguments='{"q":"é"}', result="\ud83d", is_error=False)


def test_the_column_reads_back() -> None:
    assert load_hosted_calls(dump_hosted_calls([CALL, CALL])) == (CALL, CALL)
    assert dump_hosted_calls([]) is None
    assert load_hosted_calls(None) == ()


def test_a_long_result_is_shortened_and_stays_json() -> None:
    column = dump_hosted_calls([HostedCall(tool="t", arguments="{}", result='"' * 100_000)])
    assert column is not None
    assert len(json.loads(column)[0]["result"]) == MAX_TEXT_BYTES


def test_an_imported_answer_keeps_its_reason_its_hosted_calls_and_its_media() -> None:
    rows = ConversationRows()
    answer = ConversationMessage(
        role="assistant", text="x", finish="length", hosted=(CALL,), media=("image",)
    )
    talk = ImportedConversation(source="s", messages=(answer,), facts={}, key=1)
    assert add_conversation(rows, talk) == []
    tables = rows.to_tables()
    (step,) = tables["steps"].to_pylist()
    (message,) = tables["messages"].to_pylist()
    assert step["finish_reason"] == "length"
    assert json.loads(step["hosted"])[0]["tool"] == "web_search"
    assert message["media"] == step["media"] == ["image"]


@pytest.mark.parametrize(
    ("response", "reason"),
    [
        ({"choices": [{"finish_reason": "stop"}]}, "stop"),
        ({"choices": [{"stop_reason": "max_tokens"}]}, "max_tokens"),
        ({"stop_reason": "end_turn"}, "end_turn"),
        ({"object": "response", "status": "completed"}, "completed"),
        (
            {
                "object": "response",
                "status": "incomplete",
                "incomplete_details": {"reason": "max_output_tokens"},
            },
            "max_output_tokens",
        ),
        ({"status": "running"}, None),
        ({"choices": [{"finish_reason": None}]}, None),
    ],
)
def test_the_reason_of_a_kept_response(response: dict[str, object], reason: str | None) -> None:
    assert find_finish_reason(response) == reason
