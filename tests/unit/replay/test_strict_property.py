"""No request that says something else than the recorded one gets its answer.

Of each property some cases are tried in `make test`, thousands in the gate, and 100,000 in
`make test-all`. `CASES` is how many, and `SEED` which ones.
"""

import json
import os
from pathlib import Path
from random import Random

import pytest

from tests.support.agents_at_once import find_mixed_answers
from tests.support.identity_property import (
    IDENTITY_CHANGES,
    all_bases,
    find_swapped_answers,
    find_wrong_answers,
    is_allowed,
    mutate,
)
from tests.support.request_mutations import (
    CHANGES,
    changed,
    same,
    tree,
)
from tests.support.strict_property import KEY, is_same, requests, wrong_answers
from tests.support.strict_replay import (
    StrictReplay,
    asked,
    recorded,
    secrets_of,
)
from tests.support.tiers import TIER
from traces.model import Request

CASES = int(os.environ.get("CASES", {"test": 500, "gate": 3000}.get(TIER, 100_000)))
SEED = int(os.environ.get("SEED", "99"))


@pytest.mark.timeout(60 + CASES // 20)
def test_no_changed_request_gets_the_recorded_answer(tmp_path: Path) -> None:
    assert list(wrong_answers(tmp_path, CASES, SEED)) == []


@pytest.mark.timeout(60 + CASES // 20)
def test_a_request_gets_another_answer_only_if_a_printed_rule_allows_it(tmp_path: Path) -> None:
    assert list(find_wrong_answers(tmp_path, CASES, SEED)) == []


@pytest.mark.timeout(60 + CASES // 20)
def test_requests_that_differ_get_their_own_answers_in_any_order(tmp_path: Path) -> None:
    assert list(find_swapped_answers(tmp_path, CASES, SEED)) == []


@pytest.mark.timeout(60 + CASES // 20)
def test_no_agent_gets_the_answers_of_two(tmp_path: Path) -> None:
    assert list(find_mixed_answers(CASES, SEED)) == []


def test_each_request_gets_its_own_answer_also_with_other_spacing(tmp_path: Path) -> None:
    bases, secrets = requests(), secrets_of(SHOP_KEY=KEY)
    tape = recorded(tmp_path / "a.tape", bases, secrets)
    assert KEY not in str(tape.exchanges)
    for form in (lambda request: request, spaced):
        replay = StrictReplay(tape, secrets)
        assert [replay.ask(form(each)) for each in bases] == list(range(len(bases)))


def spaced(request: Request) -> Request:
    if tree(request.body) is None or not request.body.startswith(b"{"):
        return request
    text = json.dumps(json.loads(request.body), indent=2, sort_keys=True, ensure_ascii=False)
    return asked(request.method, request.url, text, request.headers)


@pytest.mark.parametrize(
    ("one", "two", "alike"),
    [
        ('{"a":1,"b":[2]}', '{ "b" : [ 2 ],\n"a":1}', True),
        ('{"a":"\\u00e9\\n\\/"}', '{"a":"é\\u000a/"}', True),
        ('{"a":1}', '{"a":1.0}', False),
        ('{"a":1,"a":2}', '{"a":2}', False),
        ('{"a":[1,2]}', '{"a":[2,1]}', False),
        ('{"a":1}', '{"a":1}}', False),
        ("{a}", "{ a}", False),
        ('"a b"', '"a  b"', False),
    ],
)
def test_the_tests_know_what_says_the_same(one: str, two: str, alike: bool) -> None:
    url = "http://h/"
    assert same(asked("POST", url, one), asked("POST", url, two)) is alike


def test_most_changes_say_something_else() -> None:
    chance, bases = Random(1), requests()
    others = sum(not is_same(base, changed(chance, base)) for base in bases for _ in range(20))
    assert others > 300
    for change in CHANGES:
        assert any(not is_same(base, change(chance, base)) for base in bases), change


def test_most_changes_of_identity_are_allowed_by_no_row() -> None:
    chance, bases = Random(1), all_bases()
    others = sum(not is_allowed(base, mutate(chance, base), bases) for base in bases * 20)
    assert others > 15 * len(bases)
    for change in IDENTITY_CHANGES:
        assert any(not is_allowed(base, change(chance, base), bases) for base in bases), change
