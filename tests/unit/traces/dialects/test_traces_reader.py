"""What was read before makes reading faster, and never says anything else."""

import json
from typing import Any

from hypothesis import example, given
from hypothesis import strategies as st

from traces.bodies.incremental_json import IncrementalListReader, ParsedListBody

type Said = ParsedListBody[object, object]


def reader(most: int = 1 << 20) -> IncrementalListReader[object, object]:
    return IncrementalListReader("messages", json.loads, json.loads, most)


def read(body: bytes, by: IncrementalListReader[object, object] | None = None) -> Said | None:
    try:
        return (by or reader()).read(body)
    except ValueError:
        return None


def plainly(body: bytes) -> tuple[object, list[object]] | None:
    """What a JSON parser says: all but the list, and the list."""
    try:
        value = json.loads(body)
    except ValueError:
        return None
    if not isinstance(value, dict) or not isinstance(value.get("messages"), list):
        return value, []
    return {**value, "messages": []}, value["messages"]


texts = st.text('a\\"{}[],: \n\xe9\U0001f600', max_size=6)
messages = st.fixed_dictionaries({"role": st.sampled_from("uat"), "content": texts})
odd: st.SearchStrategy[object] = (
    st.none() | st.integers(0, 999) | texts | st.lists(messages, max_size=2) | st.just({})
)
items = messages | messages | messages | odd
forms = st.sampled_from(
    list[dict[str, Any]]([{}, {"indent": 1}, {"separators": (",", ":")}, {"ensure_ascii": False}])
)
before = st.dictionaries(st.sampled_from(["model", "tools"]), odd, max_size=2)
after = st.dictionaries(st.sampled_from(["system", "stream", "tools"]), odd, max_size=2)


@st.composite
def runs(draw: st.DrawFn) -> list[bytes]:
    """Requests of an agent: each holds the last one, with items changed, left out and put in."""
    said, out = draw(st.lists(items, max_size=6)), list[bytes]()
    form, head, tail = draw(forms), draw(before), draw(after)
    for _ in range(draw(st.integers(1, 6))):
        match draw(st.sampled_from(["again", "grow", "mark", "insert", "compact", "about", "cut"])):
            case "grow":
                said = [*said, *draw(st.lists(items, max_size=3))]
            case "mark" if said:
                place = draw(st.integers(0, len(said) - 1))
                said = [*said[:place], draw(items), *said[place + 1 :]]
            case "insert":
                place = draw(st.integers(0, len(said)))
                said = [*said[:place], draw(items), *said[place:]]
            case "compact":
                said = [draw(items), *said[draw(st.integers(0, len(said))) :]]
            case "about":
                form, head, tail = draw(forms), draw(before), draw(after)
            case "cut" if out:
                out.append(out[-1][: draw(st.integers(0, len(out[-1])))])
        out.append(json.dumps({**head, "messages": said, **tail}, **form).encode())
    return out


TWICE = b'{"messages": [1, {"a": 2}], "n": {"messages": [3]}, "messages": [{"a": 4}]}'
SPOILT = b'{"messages": [1, {"a": 2}], "messages": 5}'


@given(runs(), st.sampled_from([0, 40, 1 << 20]))
@example([TWICE, SPOILT, TWICE, SPOILT], 40)
@example([b'{"messages": [7, 12]}', b'{"messages": [7, 123]}', b'{"messages": [7, 1]}'], 40)
@example([b'{"messages": [{}]}', b'{"messages": [{} {}]}', b'{"messages": [{},]}'], 40)
@example([b'{"messages":[{}]        }', b'{"messages":[{},1,', b'{"messages":[{}]        }'], 40)
@example([b'{"messages":[{}]}', b'{"messages": [{}]}', b'{"messages" :[{}] }'], 40)
@example([b'[{"messages":[{}]}]', b'"messages"', b"", b'{"messages":[', b'{"messages":[]'], 40)
def test_what_is_said_does_not_depend_on_what_was_read_before(bodies: list[bytes], m: int) -> None:
    known = reader(m)
    for body in bodies:
        said = read(body, known)
        assert said == read(body)
        wanted = plainly(body)
        assert (said and (said.rest, list(said.items))) == wanted
        places = zip(said.starts, said.stops, strict=True) if said else ()
        assert [json.loads(body[start:stop]) for start, stop in places] == (wanted or [0, []])[1]


def test_only_what_is_new_is_read() -> None:
    parsed = list[bytes]()

    def item(text: bytes) -> object:
        parsed.append(text)
        return json.loads(text)

    said = [{"role": "user", "content": f"{number}"} for number in range(50)]
    grown = [{"role": "system", "content": "be brief"}, *said[:48], said[48] | {"mark": 1}, {}]
    known = IncrementalListReader("messages", item, json.loads)
    for messages in (said, grown, grown):
        known.read(json.dumps({"messages": messages}).encode())
    assert [json.loads(text) for text in parsed] == [*said, grown[0], grown[-2], {}]


def test_what_is_remembered_has_a_bound() -> None:
    known = reader(most=1000)
    for number in range(100):
        body = json.dumps({"messages": [{"n": number * 50 + each} for each in range(50)]}).encode()
        known.read(body)
        assert sum(len(past.body) for past in known._past) <= 1000


def test_no_more_than_the_last_few_bodies_are_looked_into() -> None:
    parsed = list[bytes]()

    def item(text: bytes) -> object:
        parsed.append(text)
        return json.loads(text)

    known, first = IncrementalListReader("messages", item, json.loads), b'{"messages": ["first"]}'
    for number in range(16):
        known.read(first)
        known.read(b'{"messages": [%d]}' % number)
    assert parsed.count(b'"first"') == 1
    for number in range(16, 32):
        known.read(b'{"messages": [%d]}' % number)
    known.read(first)
    assert parsed.count(b'"first"') == 2
