"""`show --tools`: what was offered, to whom, and what changed between two recordings."""

import json
from pathlib import Path

import pytest

from tests.support.practice_shop import shop
from traces.conversation.tool_definitions import (
    ToolChange,
    collect_tool_definitions,
    compare_toolsets,
)
from traces.model import Chunk, Exchange, Request, Response

REFUND = {
    "name": "refund",
    "description": "Pay back",
    "parameters": {
        "type": "object",
        "properties": {"order": {"type": "string"}, "sum": {"type": "integer"}},
        "required": ["order", "sum"],
    },
}


def asked(path: str, body: object, answer: object = None) -> Exchange:
    said = Response(
        status=200,
        headers=(("content-type", "application/json"),),
        chunks=(Chunk(at=0.0, data=json.dumps(answer or {}).encode()),),
        ended=0.0,
    )
    request = Request(method="POST", url=f"http://h{path}", body=json.dumps(body).encode())
    return Exchange(seq=0, request=request, started=0.0, response=said)


@pytest.mark.parametrize(
    ("path", "body"),
    [
        (
            "/v1/chat/completions",
            {"messages": [], "tools": [{"type": "function", "function": REFUND}]},
        ),
        ("/v1/responses", {"input": [], "tools": [{"type": "function", **REFUND}]}),
        ("/v1/messages", {"messages": [], "tools": [REFUND | {"cache_control": {"type": "x"}}]}),
        (
            "/v1beta/models/m:generateContent",
            {"contents": [], "tools": [{"functionDeclarations": [REFUND]}]},
        ),
    ],
)
def test_definitions_are_found_in_every_dialect(path: str, body: dict[str, object]) -> None:
    (definition,) = collect_tool_definitions([asked(path, body)]).values()
    assert definition["name"] == "refund"
    assert definition["description"] == "Pay back"


def test_a_list_of_an_mcp_server_is_its_own_place() -> None:
    listing = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
    answer = {"jsonrpc": "2.0", "id": 1, "result": {"tools": [{"name": "refund"}]}}
    assert list(collect_tool_definitions([asked("/mcp", listing, answer)])) == [("h", "refund")]


def test_what_changed_is_named_by_its_path_and_order_is_no_change() -> None:
    def of(**parts: object) -> dict[tuple[str, str], dict[str, object]]:
        return {("model", "refund"): REFUND | parts, ("model", "kept"): {"name": "kept"}}

    schema = REFUND["parameters"]
    assert isinstance(schema, dict)
    turned = of(parameters=schema | {"required": ["sum", "order"]})
    assert compare_toolsets(of(), turned) == ()
    wider = schema | {"required": ["order"], "properties": {"order": {"type": "integer"}}}
    now = of(parameters=wider) | {("h", "new"): {"name": "new"}}
    del now["model", "kept"]
    changed, removed, added = compare_toolsets(of(), now)
    assert removed == ToolChange(place="model", tool="kept", how="removed")
    assert added == ToolChange(place="h", tool="new", how="added")
    assert changed.fields == (
        ("parameters.properties.order.type", '"string"', '"integer"'),
        ("parameters.properties.sum.type", '"integer"', None),
        ("parameters.required", '["order", "sum"]', '["order"]'),
    )


@pytest.mark.gate
def test_two_recordings_are_held_side_by_side(tmp_path: Path) -> None:
    with shop(tmp_path, mcp=()) as world:
        assert world.record("a.tape", "practice/retries", "--tools", "mcp").code == 0
        assert world.record("b.tape", "practice/retries").code == 0
        same = world.stumble("show", "--tools", "a.tape", "a.tape")
        assert (same.code, same.out.splitlines()[-1].partition(" (")[0]) == (0, "no tool changed")
        other = world.stumble("show", "--tools", "a.tape", "b.tape", "--json")
        assert other.code == 1, other.err
        gone = {row["tool"] for row in json.loads(other.out) if row["change"] == "removed"}
        assert "issue_refund" in gone
        listed = world.stumble("show", "--tools", "b.tape")
        assert any(line.startswith("model  issue_refund: ") for line in listed.out.splitlines())
        refused = world.stumble("show", "a.tape", "b.tape")
        assert (refused.code, "only compared with --tools" in refused.err) == (2, True)
