"""A fault in one part of a result leaves every other byte as it was."""

import json
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from faults import OPERATORS
from faults.body import NoSite, text, with_text
from faults.part import span, within
from faults.query import paths
from traces.model import Chunk, Exchange, Request, Response

RESULT = '{"id": "ord-1",  "lines":[{"n": 12345, "say": "a \\"b\\" é"}, {"n":67890}], "n": 11111}'


def said(body: str) -> Exchange:
    return Exchange(
        seq=0,
        request=Request(method="POST", url="http://shop/get_order"),
        response=Response(status=200, chunks=(Chunk(at=0.0, data=body.encode()),)),
    )


def bent(path: str, name: str, seed: int = 0, **params) -> str:
    operator = OPERATORS[name]
    rng = Random(seed)
    return text(within(path, said(RESULT), rng, lambda part: operator(part, rng, params)))


@pytest.mark.parametrize("seed", range(8))
def test_only_a_value_at_the_path_is_bent(seed: int) -> None:
    after = bent("$.lines[*].n", "digit", seed)
    before, now = json.loads(RESULT), json.loads(after)
    changed = [i for i in range(2) if before["lines"][i]["n"] != now["lines"][i]["n"]]
    assert len(changed) == 1
    assert sum(a != b for a, b in zip(RESULT, after, strict=True)) == 1
    assert now["n"] == before["n"]


def test_a_text_is_bent_without_its_quotes_and_put_back_with_them() -> None:
    after = bent("$.lines[0].say", "truncate", keep=0.5)
    assert json.loads(after)["lines"][0]["say"] == 'a "'
    assert after.startswith('{"id": "ord-1",  "lines":[{"n": 12345, ')


def test_a_path_that_leads_nowhere_is_no_site() -> None:
    for path in ("$.total", "$.lines[5]"):
        with pytest.raises(NoSite, match="has nothing at"):
            bent(path, "digit")
    with pytest.raises(NoSite, match="has nothing at"):
        within("$.n", said("not json"), Random(0), lambda part: part)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=12,
)


@given(JSON, st.booleans(), st.sampled_from([None, 2]))
def test_every_place_that_a_path_finds_is_where_its_value_stands(
    value: object, ascii: bool, indent: int | None
) -> None:
    data = json.dumps(value, ensure_ascii=ascii, indent=indent)
    try:
        raw = data.encode()
    except UnicodeEncodeError:
        return
    for place in paths("$..*", data):
        here = value
        for step in place:
            here = here[step]  # type: ignore[index]
        start, stop = span(raw, place)
        assert json.loads(raw[start:stop]) == here
        assert raw[:start] + raw[start:stop] + raw[stop:] == raw


def test_nothing_changes_where_nothing_is_bent() -> None:
    for path in ("$", "$.lines", "$.lines[0].n", "$.id"):
        assert text(within(path, said(RESULT), Random(0), lambda part: part)) == RESULT
    assert with_text(said(RESULT), RESULT) == said(RESULT)
