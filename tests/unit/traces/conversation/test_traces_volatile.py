"""What two runs of an agent may differ in, and what they may not."""

import json
from typing import Any

import pytest

from replay.matching.index import compute_canonical_key
from replay.matching.rules import MatchRules
from traces.model import Request

CLAUDE = "https://api.anthropic.com/v1/messages"
CODEX = "https://api.openai.com/v1/responses"
CHAT = "https://api.openai.com/v1/chat/completions"
IDS = {
    "a": "3f2b8f0e-7c1d-4a53-9a64-1f0c2d3e4b5a",
    "b": "9d8c7b6a-5f4e-4d3c-8b2a-190817263545",
    "1": "01a2042d-77d0-78a2-bb4f-48b993032c39",
    "2": "01a20435-4f95-7df2-b33e-d82b148d2088",
}
"""Ids as clients draw them: what looks otherwise was chosen, and counts."""


def asked(url: str, body: dict[str, Any]) -> bytes | None:
    return compute_canonical_key(Request(method="POST", url=url, body=json.dumps(body).encode()))


def claude(
    *, session: str = "a", check: str = "735a5", day: str = "2026-11-21", said: str = "hello"
) -> dict[str, Any]:
    reminder = f"<system-reminder>\n# currentDate\nToday's date is {day}.\n</system-reminder>"
    billing = f"x-anthropic-billing-header: cc_version=2.1.197.e6a; cch={check};"
    text = [{"type": "text", "text": reminder}, {"type": "text", "text": said}]
    return {
        "model": "m",
        "max_tokens": 9,
        "metadata": {"user_id": json.dumps({"session_id": IDS.get(session, session)})},
        "system": [{"type": "text", "text": billing}],
        "messages": [{"role": "user", "content": text}],
    }


def codex(
    *,
    thread: str = "1",
    chunk: str = "b320d2",
    wall: str = "0.0000",
    out: str = "x\n",
    code: int = 0,
) -> dict[str, Any]:
    shown = f"Chunk ID: {chunk}\nWall time: {wall} seconds\nProcess exited with code {code}\n"
    item = f"msg_{thread * 8}-b80c-5dec-ad9b-6eb62248450c"
    said = [{"type": "input_text", "text": "go"}]
    id = IDS[thread]
    turn = {"turn_id": id, "create_time": 1795366419.25 + int(thread)}
    return {
        "model": "m",
        "prompt_cache_key": id,
        "client_metadata": {"thread_id": id, "start": f"179536641871{thread}"},
        "input": [
            {
                "type": "message",
                "role": "user",
                "id": item,
                "content": said,
                "internal_chat_message_metadata_passthrough": turn,
            },
            {"type": "function_call", "id": "fc_1", "call_id": "c", "name": "n", "arguments": "{}"},
            {"type": "function_call_output", "call_id": "c", "output": f"{shown}Output:\n{out}"},
        ],
    }


@pytest.mark.parametrize("change", [{"session": "b"}, {"check": "07210"}, {"day": "2026-11-22"}])
def test_another_session_of_claude_code_asks_the_same(change: dict[str, Any]) -> None:
    assert asked(CLAUDE, claude(**change)) == asked(CLAUDE, claude())


def test_what_is_said_to_claude_is_not_volatile() -> None:
    assert asked(CLAUDE, claude(said="Hello")) != asked(CLAUDE, claude())
    date = "Today's date is 2026-11-21"
    assert asked(CLAUDE, claude(said=date)) != asked(CLAUDE, claude(said=date.replace("21", "22")))


@pytest.mark.parametrize("change", [{"thread": "2"}, {"chunk": "3d9ef3"}, {"wall": "0.0512"}])
def test_another_thread_of_codex_asks_the_same(change: dict[str, Any]) -> None:
    assert asked(CODEX, codex(**change)) == asked(CODEX, codex())


@pytest.mark.parametrize("change", [{"out": "y\n"}, {"code": 1}, {"out": "Wall time: 1 seconds\n"}])
def test_what_a_command_printed_is_not_volatile(change: dict[str, Any]) -> None:
    assert asked(CODEX, codex(**change)) != asked(CODEX, codex())


def test_ids_that_the_model_gave_are_not_volatile() -> None:
    one, two = codex(), codex()
    two["input"][1]["id"] = "fc_2"
    assert asked(CODEX, one) != asked(CODEX, two)


def test_the_list_is_for_model_traffic_only() -> None:
    one, two = claude(), claude(session="b")
    assert asked("https://shop/v1/orders", one) != asked("https://shop/v1/orders", two)


def anthropic(results: list[Any]) -> bytes | None:
    messages = [{"role": "user", "content": results}]
    return asked(CLAUDE, {"model": "m", "max_tokens": 9, "messages": messages})


def chat(results: list[Any]) -> bytes | None:
    return asked(CHAT, {"model": "m", "messages": results})


def responses(results: list[Any]) -> bytes | None:
    return asked(CODEX, {"model": "m", "input": results})


def in_anthropic(id: str, text: str) -> Any:
    return {"type": "tool_result", "tool_use_id": id, "content": text}


def in_chat(id: str, text: str) -> Any:
    return {"role": "tool", "tool_call_id": id, "content": text}


def in_responses(id: str, text: str) -> Any:
    return {"type": "function_call_output", "call_id": id, "output": text}


@pytest.mark.parametrize(
    ("ask", "write"),
    [(anthropic, in_anthropic), (chat, in_chat), (responses, in_responses)],
    ids=["anthropic", "chat", "responses"],
)
def test_results_of_calls_made_together_come_in_any_order(ask: Any, write: Any) -> None:
    first = ask([write("a", "1"), write("b", "2")])
    assert first is not None
    assert ask([write("b", "2"), write("a", "1")]) == first
    assert ask([write("a", "2"), write("b", "1")]) != first, "each result keeps its call"
    assert ask([write("a", "1"), write("a", "2")]) != ask([write("a", "2"), write("a", "1")])


def test_a_cache_mark_on_the_last_result_says_nothing() -> None:
    def marked(first: str, last: str) -> bytes | None:
        mark = {"cache_control": {"type": "ephemeral"}}
        return anthropic([in_anthropic(first, first), in_anthropic(last, last) | mark])

    assert marked("a", "b") == marked("b", "a")


NOTE = "\n\n<system-note>\n<left>149 tokens</left>\n</system-note>"


@pytest.mark.parametrize("notes", [NOTE, NOTE + "\n\n<time>9:30</time>\n"])
def test_a_note_on_the_last_result_follows_whichever_is_last(notes: str) -> None:
    def noted(first: str, last: str, note: str = notes) -> bytes | None:
        return anthropic([in_anthropic(first, first), in_anthropic(last, last + note)])

    assert noted("a", "b") == noted("b", "a")
    assert noted("a", "b") != noted("b", "a", "")
    assert noted("a", "b") != noted("b", "a", notes.replace("149", "150"))
    assert noted("a", "b") != anthropic([in_anthropic("a", "a" + notes), in_anthropic("b", "b")])


def test_what_a_result_itself_ends_with_stays_with_it() -> None:
    def shown(*texts: str) -> bytes | None:
        return anthropic([in_anthropic(text[0], text) for text in texts])

    assert shown("a<x>1</x>", "b") != shown("b<x>1</x>", "a")
    assert shown("a", "b\n\n<x>1</y>") != shown("b", "a\n\n<x>1</y>")
    assert shown("a" + NOTE) != shown("a")


def helper(name: str, took: int, said: str) -> bytes | None:
    note = f"agentId: {name} (use SendMessage with to: '{name}', summary: '<recap>')\n"
    usage = f"<usage>subagent_tokens: 6044\ntool_uses: 1\nduration_ms: {took}</usage>"
    texts = [{"type": "text", "text": text} for text in (said, note + usage)]
    return anthropic([{"type": "tool_result", "tool_use_id": "a", "content": texts}])


def test_a_helper_of_claude_code_has_another_name_and_takes_its_time() -> None:
    assert helper("a369154b", 1301, "done") == helper("aeebc8a5", 877, "done")
    assert helper("a369154b", 1301, "done") != helper("a369154b", 1301, "not done")


def test_messages_keep_their_order() -> None:
    user, system = {"role": "user", "content": "1"}, {"role": "user", "content": "2"}
    assert chat([user, system]) != chat([system, user])
    one, two = in_chat("a", "1"), in_chat("b", "2")
    assert chat([one, user, two]) != chat([two, user, one]), "these were not given together"


def opencode(day: str) -> dict[str, Any]:
    env = f"You are opencode.\n<env>\n  Platform: linux\n  Today's date: {day}\n</env>\nSkills"
    system = [{"type": "text", "text": env}]
    messages = [{"role": "user", "content": "go"}]
    return {"model": "m", "max_tokens": 9, "system": system, "messages": messages}


def drawn(id: str, other: str, first: str = "1") -> dict[str, Any]:
    """Two calls that came without ids, to which pydantic-ai gives some."""
    ids = [f"pyd_ai_{each * 32}" for each in (id, other)]
    calls = [{"id": each, "type": "function", "function": {"name": "n"}} for each in ids]
    results = [in_chat(each, text) for each, text in zip(ids, (first, "2"), strict=True)]
    return {"model": "m", "messages": [{"role": "assistant", "tool_calls": calls}, *results]}


GO = {"model": "m", "messages": [{"role": "user", "content": "go"}]}
LATER: list[tuple[str, dict[str, Any], dict[str, Any]]] = [
    (CLAUDE, opencode("Sat Nov 21 2026"), opencode("Sun Nov 22 2026")),
    (CHAT, GO | {"prompt_cache_key": IDS["a"]}, GO | {"prompt_cache_key": IDS["b"]}),
    (CHAT, GO | {"metadata": {"sessionId": IDS["a"]}}, GO | {"metadata": {"sessionId": IDS["b"]}}),
    (CHAT, drawn("a", "b"), drawn("d", "c")),
]


@pytest.mark.parametrize(("url", "one", "two"), LATER, ids=["opencode", "openhands", "qwen", "py"])
def test_what_came_onto_the_list_later_holds_for_later_tapes(
    url: str, one: dict[str, Any], two: dict[str, Any]
) -> None:
    was, now = (
        Request(method="POST", url=url, body=json.dumps(each).encode()) for each in (one, two)
    )
    assert compute_canonical_key(was) == compute_canonical_key(now)
    assert compute_canonical_key(was, MatchRules(volatile=1)) != compute_canonical_key(
        now, MatchRules(volatile=1)
    )


CHOSEN: list[tuple[str, dict[str, Any], dict[str, Any]]] = [
    (CLAUDE, claude(session="customer-1"), claude(session="customer-2")),
    (CHAT, GO | {"prompt_cache_key": "customer-1"}, GO | {"prompt_cache_key": "customer-2"}),
    (CHAT, GO | {"metadata": {"sessionId": "1"}}, GO | {"metadata": {"sessionId": "2"}}),
    (CODEX, codex() | {"client_metadata": {"k": "1"}}, codex() | {"client_metadata": {"k": "2"}}),
    (CODEX, codex() | {"client_metadata": {"k": "1"}}, codex() | {"client_metadata": {"j": "1"}}),
]


@pytest.mark.parametrize(("url", "one", "two"), CHOSEN)
def test_a_value_that_was_not_drawn_counts_from_the_fourth_version_on(
    url: str, one: dict[str, Any], two: dict[str, Any]
) -> None:
    was, now = (
        Request(method="POST", url=url, body=json.dumps(each).encode()) for each in (one, two)
    )
    assert compute_canonical_key(was) != compute_canonical_key(now)
    assert compute_canonical_key(was, MatchRules(volatile=3)) == compute_canonical_key(
        now, MatchRules(volatile=3)
    )


def test_these_clients_mark_as_many_blocks_for_the_cache() -> None:
    mark = {"cache_control": {"type": "ephemeral"}}
    blocks = [in_anthropic("a", "1"), in_anthropic("b", "2")]
    moved = [blocks[0] | mark, blocks[1]], [blocks[0], blocks[1] | mark]
    assert anthropic(moved[0]) == anthropic(moved[1])
    assert anthropic(moved[0]) != anthropic(blocks)
    assert anthropic(moved[0]) != anthropic([each | mark for each in blocks])


def test_what_these_clients_were_told_is_not_volatile() -> None:
    assert asked(CHAT, drawn("a", "b")) != asked(CHAT, drawn("a", "b", first="3"))
    one = GO | {"metadata": {"sessionId": IDS["a"], "task": "1"}}
    two = GO | {"metadata": {"sessionId": IDS["a"], "task": "2"}}
    assert asked(CHAT, one) != asked(CHAT, two)
