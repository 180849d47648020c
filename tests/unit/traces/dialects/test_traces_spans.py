"""Where values stand in JSON, checked against what a JSON parser says they are."""

import json

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from traces.bodies import json_offsets

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
    found = json_offsets.find_json_members(text, json_offsets.find_json_root(text))
    assert {key.decode(): json.loads(text[a:b]) for key, (a, b) in found.items()} == value
    assert json_offsets.find_json_end(text, 0) == len(text)


@pytest.mark.gate
@given(items=st.lists(values | st.dictionaries(st.text("kl", max_size=2), values)), form=dumps)
@example(items=[{"k": deep(30)}, "]", [deep(12)]], form={})
def test_the_objects_of_a_list_come_in_order(items: list[object], form: dict[str, object]) -> None:
    value = {"a": "[", "messages": items, "z": [1]}
    text = json.dumps(value, **form).encode()  # type: ignore[arg-type]
    wanted = [item for item in items if isinstance(item, dict)]
    objects = list(
        json_offsets.iter_json_objects(text, json_offsets.find_json_members(text, 0)[b"messages"])
    )
    assert json_offsets.find_json_array(text, b"messages") == text.index(
        b"[", text.index(b'"messages"')
    )
    assert len(objects) == len(wanted)
    for found, item in zip(objects, wanted, strict=True):
        said = {json.loads(b'"' + k + b'"'): json.loads(text[a:b]) for k, (a, b) in found.items()}
        assert said == item


def test_an_array_is_found_by_its_key_and_only_in_the_outermost_object() -> None:
    text = b' {"n": {"m": [1]}, "m": 5, "m": [2], "m": [3]}'
    assert json_offsets.find_json_array(text, b"m") == text.index(b"[2]")
    assert json_offsets.find_json_array(b'{"n": {"m": [1]}, "m": 5}', b"m") is None
    assert json_offsets.find_json_array(b'[{"m": [1]}]', b"m") is None
