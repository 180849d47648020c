"""Two answers to the same request: what a client would feel of the difference."""

import json

from hypothesis import given
from hypothesis import strategies as st

from replay.response_drift import compare_responses, infer_response_schema
from traces.model import Chunk, Response

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


def answer(value: object, status: int = 200) -> Response:
    data = value if isinstance(value, bytes) else json.dumps(value).encode()
    return Response(status=status, chunks=(Chunk(at=0.0, data=data),), ended=0.0)


@given(JSON)
def test_an_answer_has_not_drifted_from_itself(value: object) -> None:
    drift = compare_responses(answer(value), answer(value))
    assert not drift.is_breaking
    assert drift.values == ()


@given(JSON, JSON)
def test_what_one_side_adds_the_other_removes(one: object, other: object) -> None:
    there, back = (
        compare_responses(answer(one), answer(other)),
        compare_responses(answer(other), answer(one)),
    )
    assert there.added == back.removed
    assert there.removed == back.added
    assert len(there.retyped) == len(back.retyped)
    assert there.is_breaking == back.is_breaking


def test_fields_come_go_and_change_their_type() -> None:
    was = {"id": 7, "total": "12.50", "lines": [{"sku": "a", "n": 1}], "note": "x"}
    now = {
        "id": 7,
        "total": 12.5,
        "lines": [{"sku": "a", "n": 2}, {"sku": "b", "n": 1}],
        "tax": {"eu": 1},
    }
    drift = compare_responses(answer(was), answer(now))
    assert drift.added == ("tax",)
    assert drift.removed == ("note",)
    assert drift.retyped == ("total: string -> number",)
    assert ("lines[0].n", "1", "2") in drift.values
    assert drift.is_breaking


def test_a_longer_list_is_no_other_schema_and_an_empty_one_says_nothing() -> None:
    full: object = {"rows": [{"id": 1, "tags": ["a"]}]}
    empty: object = {"rows": []}
    assert not compare_responses(answer(full), answer(empty)).is_breaking
    assert not compare_responses(answer(empty), answer(full)).is_breaking
    assert compare_responses(answer({"rows": None}), answer(full)).is_breaking


def test_a_page_of_html_where_json_was_is_a_retyped_body() -> None:
    drift = compare_responses(answer({"id": 1}), answer(b"<html>maintenance</html>"))
    assert drift.retyped == ("body: JSON -> no JSON",)
    assert drift.values == ()


def test_a_status_is_drift_although_the_body_is_the_same() -> None:
    assert compare_responses(answer({}), answer({}, 404)).status == (200, 404)


def test_texts_that_are_no_json_have_one_value_and_no_schema() -> None:
    drift = compare_responses(answer(b"one"), answer(b"two"))
    assert not drift.is_breaking
    assert drift.values == (("body", "one", "two"),)
    assert infer_response_schema(answer(b"one")) is None
