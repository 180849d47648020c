"""A request read by its messages has the same key as another iff, read whole, it has."""

import json

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from replay.matching.canonical_key import CanonicalKeys, MatchKey
from replay.matching.rules import MatchRules, parse_match_rule
from traces.bodies.canonical_json import dump_canonical_json, parse_exact_json
from traces.conversation.volatile_fields import RemovedValues
from traces.dialects import find_dialect
from traces.model import Request

type Json = dict[str, object]

CHAT, CLAUDE, CODEX = (
    f"https://h/v1/{path}" for path in ("chat/completions", "messages", "responses")
)
RULES = (
    MatchRules(),
    MatchRules(
        [parse_match_rule("ignore:body.messages.*.name"), parse_match_rule("ignore:body.run")]
    ),
    MatchRules(
        [parse_match_rule("ignore:body.messages"), parse_match_rule("ignore:body.input.*.call_id")]
    ),
    MatchRules([parse_match_rule("exact:body.messages.*.content.*.cache_control")]),
)


def whole(request: Request, rules: MatchRules) -> tuple[bytes, list[bytes]]:
    """All of what a request says, parsed and written in one piece, and what moves in it."""
    taken = RemovedValues()
    said = dump_canonical_json(
        rules.normalize_body(find_dialect(request), parse_exact_json(request.body), taken)
    )
    return said, sorted(taken.moved_values)


def key(found: MatchKey | None) -> bytes | None:
    return None if found is None else found.key


def url_of(body: Json) -> str:
    return CODEX if "input" in body else CLAUDE if "max_tokens" in body else CHAT


def asked(body: Json, **form: object) -> Request:
    text = json.dumps(body, **form)  # type: ignore[arg-type]
    return Request(method="POST", url=url_of(body), body=text.encode())


ids = st.sampled_from("ab")
texts = st.sampled_from(
    ["", "x", "\U0001f600", "\ud800", "REDACTEDo1xxZ", "REDACTEDo2Z", "Wall time: 1 seconds\n"]
)
mark: Json = {"cache_control": {"type": "ephemeral"}}
block = st.builds(
    lambda text, more: {"type": "text", "text": text} | more,
    texts,
    marks := st.sampled_from([{}, mark]),
)
result = st.builds(
    lambda id, text, more: {"type": "tool_result", "tool_use_id": id, "content": text} | more,
    ids,
    texts,
    marks,
)
numbers = st.sampled_from([1, 10**22, 10**22 + 1, 1.5, -0.0])
said = st.builds(lambda text, name: {"role": "user", "content": text, "name": name}, texts, numbers)
blocks = st.builds(
    lambda content: {"role": "user", "content": content}, st.lists(block | result, max_size=3)
)
tool = st.builds(lambda id, text: {"role": "tool", "tool_call_id": id, "content": text}, ids, texts)
output = st.builds(
    lambda id, text: {"type": "function_call_output", "call_id": id, "output": text}, ids, texts
)
messages = st.lists(said | blocks | tool | st.none(), max_size=4)
bodies = st.one_of(
    st.builds(lambda m: {"model": "m", "messages": m}, messages),
    st.builds(lambda m, run: {"run": run, "messages": m, "max_tokens": 9}, messages, numbers),
    st.builds(lambda i, key: {"input": i, "prompt_cache_key": key}, st.lists(output | said), ids),
)
forms = st.sampled_from([{}, {"indent": 1}, {"sort_keys": True}, {"ensure_ascii": False}])


@st.composite
def pairs(draw: st.DrawFn) -> tuple[Json, Json]:
    """Two bodies that are as a rule nearly the same."""
    one = draw(bodies)
    match draw(st.sampled_from(["same", "turned", "less", "another"])):
        case "turned":
            return one, {k: v[::-1] if isinstance(v, list) else v for k, v in one.items()}
        case "less":
            return one, {k: v[:-1] if isinstance(v, list) else v for k, v in one.items()}
        case "another":
            return one, draw(bodies)
    return one, one


MARKED = {"role": "user", "content": [{"type": "text", "text": "", **mark}]}
OUTPUTS = [{"type": "function_call_output", "call_id": id, "output": id} for id in "ba"]
RESULTS = [{"role": "tool", "tool_call_id": id, "content": id} for id in "ab"]


@given(pairs(), forms, st.sampled_from(RULES))
@example(({"messages": RESULTS}, {"messages": RESULTS[::-1]}), {}, RULES[0])
@example(({"messages": RESULTS}, {"messages": RESULTS[1:]}), {}, RULES[2])
@example(({"messages": [], "max_tokens": 1}, {"max_tokens": 1}), {}, RULES[2])
@example(({"input": OUTPUTS}, {"input": OUTPUTS[::-1]}), {}, RULES[2])
@example(({"messages": [MARKED], "max_tokens": 1}, {"messages": [], "max_tokens": 1}), {}, RULES[2])
def test_two_requests_say_the_same_as_they_would_read_whole(
    bodies: tuple[Json, Json], form: dict[str, object], rules: MatchRules
) -> None:
    form = form if "\\ud800" not in json.dumps(bodies) else {}
    one, two = (asked(body, **given) for body, given in zip(bodies, ({}, form), strict=True))
    known = CanonicalKeys(rules)
    same = whole(one, rules) == whole(two, rules) and url_of(bodies[0]) == url_of(bodies[1])
    assert (key(known(one)) == key(known(two))) is same
    for request in (one, two, one):
        assert known(request) == CanonicalKeys(rules)(request)


def test_of_a_longer_conversation_only_what_is_new_is_looked_at() -> None:
    seen: list[object] = []

    class Counting(MatchRules):
        def normalize_body(self, dialect: object, value: object, taken: object = None) -> object:
            seen.append(value)
            return value

    known = CanonicalKeys(Counting())
    messages = [{"role": "user", "content": f"{number}"} for number in range(20)]
    for length in (19, 20, 20):
        known(asked({"messages": messages[:length]}))
    assert len(seen) == 21


def put(body: bytes) -> Request:
    """A body whose encoding we cannot undo, at a URL of which a part is passed over."""
    headers = (("content-encoding", "aws-chunked"),)
    return Request(method="PUT", url="http://h/p?sig=1", headers=headers, body=body)


def test_bodies_that_cannot_be_decoded_are_not_all_the_same() -> None:
    known = CanonicalKeys(MatchRules([parse_match_rule("ignore:query.sig")]))
    assert known(put(b"one")) == known(put(b"one"))
    assert known(put(b"one")) != known(put(b"two"))


@pytest.mark.parametrize("url", [CHAT, "https://h/tool"])
def test_json_too_deep_to_be_read_is_told_by_its_bytes(url: str) -> None:
    deep = b"[" * 200_000 + b"]" * 200_000
    body = b'{"messages":[%b]}' % deep
    assert CanonicalKeys(MatchRules())(Request(method="POST", url=url, body=body)) is None


@pytest.mark.parametrize("url", [CHAT, "https://h/tool"])
def test_what_is_no_number_is_not_nothing(url: str) -> None:
    odd = ("NaN", "Infinity", "-Infinity", "null")
    texts = [f'{{"messages":[{{"n":{each}}}],"n":{each}}}' for each in odd]
    keys = {
        CanonicalKeys(MatchRules())(Request(method="POST", url=url, body=t.encode())) for t in texts
    }
    assert None not in keys
    assert len(keys) == len(odd)
