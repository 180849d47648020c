"""Where values stand in JSON, checked against what a JSON parser says they are."""

import json

from hypothesis import example, given
from hypothesis import strategies as st

from traces import spans

values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text('a\\"{}[],: \n\xe9', max_size=8),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text('ab\\"{', max_size=3), inner)
    ),
    max_leaves=30,
)
dumps = st.sampled_from([{}, {"indent": 2}, {"separators": (",", ":")}, {"ensure_ascii": False}])


def deep(levels: int) -> object:
    return {"down": [deep(levels - 1)], "x": "]}"} if levels else "bottom"


@given(value=st.dictionaries(st.text("kl", max_size=2), values), form=dumps)
@example(value={"k": deep(30), "l": [deep(30), 1]}, form={})
def test_every_member_stands_where_it_is_said_to(
    value: dict[str, object], form: dict[str, object]
) -> None:
    text = json.dumps(value, **form).encode()  # type: ignore[arg-type]
    found = spans.members(text, spans.root(text))
    assert {key.decode(): json.loads(text[a:b]) for key, (a, b) in found.items()} == value
    assert spans.end(text, 0) == len(text)


@given(items=st.lists(values | st.dictionaries(st.text("kl", max_size=2), values)), form=dumps)
@example(items=[{"k": deep(30)}, "]", [deep(12)]], form={})
def test_the_objects_of_a_list_come_in_order(items: list[object], form: dict[str, object]) -> None:
    value = {"a": "[", "messages": items, "z": [1]}
    text = json.dumps(value, **form).encode()  # type: ignore[arg-type]
    wanted = [item for item in items if isinstance(item, dict)]
    objects = list(spans.objects(text, spans.members(text, 0)[b"messages"]))
    assert spans.listed(text, b"messages") == objects
    assert len(objects) == len(wanted)
    for found, item in zip(objects, wanted, strict=True):
        said = {json.loads(b'"' + k + b'"'): json.loads(text[a:b]) for k, (a, b) in found.items()}
        assert said == item


def test_of_a_list_said_twice_the_last_one_holds_as_in_any_parser() -> None:
    text = b'{"m": [{"a": 1}], "m": [{"b": 2}, 3], "n": {"m": [{"c": 4}]}}'
    assert [list(each) for each in spans.listed(text, b"m")] == [[b"b"]]
    assert spans.listed(b'{"m": [{"a": 1}], "m": 5}', b"m") == []
