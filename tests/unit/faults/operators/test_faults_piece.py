"""A fault in one part of a result leaves every other byte as it was."""

import json
from collections.abc import Mapping

import pytest

from faults import OPERATORS
from faults.operator_examples import make_example_exchange
from faults.operators.omission.json_path import transform_at_path
from faults.response_body import NoInjectionSite, decode_response_text
from faults.seeded_random import make_rng
from traces.model import Scalar

RESULT = '{"id": "ord-1",  "lines":[{"n": 12345, "say": "a \\"b\\" é"}, {"n":67890}], "n": 11111}'


def struck(name: str, params: Mapping[str, Scalar], seed: int = 0) -> str:
    return decode_response_text(
        OPERATORS[name](make_example_exchange(RESULT), make_rng(f"{seed}"), params)
    )


@pytest.mark.parametrize("seed", range(8))
def test_only_a_value_at_the_path_is_bent(seed: int) -> None:
    after = struck("digit", {"path": "$.lines[*].n"}, seed)
    before, now = json.loads(RESULT), json.loads(after)
    changed = [i for i in range(2) if before["lines"][i]["n"] != now["lines"][i]["n"]]
    assert len(changed) == 1
    assert sum(a != b for a, b in zip(RESULT, after, strict=True)) == 1
    assert now["n"] == before["n"]


@pytest.mark.parametrize(
    ("name", "path", "params", "becomes"),
    [
        ("truncate", "$.lines[0].say", {}, RESULT.replace('a \\"b\\" é', 'a \\"')),
        ("truncate", "$.lines", {"at": "item", "keep": 0.8}, RESULT.replace(', {"n":67890}', "")),
        ("truncate", "$.lines[1]", {}, RESULT.replace('{"n":67890}', '{"n":')),
        ("garble", "$.lines[0].say", {"how": "mojibake"}, RESULT.replace("é", "Ã©")),
        ("empty", "$.lines[0].say", {}, RESULT.replace('a \\"b\\" é', "")),
    ],
)
def test_what_is_lost_or_damaged_is_that_part_alone(
    name: str, path: str, params: Mapping[str, Scalar], becomes: str
) -> None:
    assert struck(name, {**params, "path": path}) == becomes != RESULT


def test_a_damaged_part_stays_within_its_quotes() -> None:
    after = json.loads(struck("garble", {"path": "$.id", "how": "bitflip", "share": 1}))
    assert after == json.loads(RESULT) | {"id": "nse-0"}


def test_a_value_in_json_that_stands_in_a_text_is_found_too() -> None:
    outer = json.dumps({"content": [{"type": "text", "text": RESULT}]})
    after = transform_at_path(outer, "$.content[0].text.lines[0].say", lambda said: said.upper())
    inner = json.loads(json.loads(after)["content"][0]["text"])
    assert inner == json.loads(RESULT.replace('a \\"b\\" é', 'A \\"B\\" É'))


@pytest.mark.parametrize("path", ["$.total", "$.lines[5]"])
@pytest.mark.parametrize("name", ["digit", "truncate", "garble", "empty"])
def test_a_path_that_leads_nowhere_is_no_site(name: str, path: str) -> None:
    with pytest.raises(NoInjectionSite, match="leads nowhere in the result"):
        struck(name, {"path": path})
    with pytest.raises(NoInjectionSite, match="leads nowhere in a plain text"):
        transform_at_path("not json", path, lambda said: said)


def test_nothing_changes_where_nothing_is_bent() -> None:
    for path in ("", "$", "$.lines", "$.lines[0].n", "$.id"):
        assert transform_at_path(RESULT, path, lambda said: said) == RESULT
