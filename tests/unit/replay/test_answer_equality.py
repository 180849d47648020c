"""Differences of a live answer from the recorded one: their kinds, and their proofs."""

import json
from datetime import date

import pytest

from replay.live_prefix import AnswerControls
from replay.matching.answer_equality import (
    AnswerChange,
    RunDays,
    find_answer_changes,
    has_common_value,
)
from replay.matching.rules import MatchRules, parse_match_rule
from traces.model import Chunk, Response

DAYS = RunDays(frozenset([date(2026, 11, 27)]), frozenset([date(2026, 12, 1)]))
UUID, OTHER = "3f2b8f0e-7c1d-4a53-9a64-1f0c2d3e4b5a", "9d8c7b6a-5f4e-4d3c-8b2a-190817263545"


def answer(value: object, status: int = 200) -> Response:
    data = value if isinstance(value, bytes) else json.dumps(value).encode()
    return Response(status=status, chunks=(Chunk(at=0.0, data=data),), at=0.0, ended=0.0)


def changes(was: object, now: object, *rules: str) -> tuple[AnswerChange, ...]:
    matching = MatchRules(map(parse_match_rule, rules))
    return find_answer_changes(answer(was), answer(now), matching, DAYS)


@pytest.mark.parametrize(
    ("was", "now", "kind", "proved"),
    [
        ("2026-11-27T15:35:10Z", "2026-12-01T08:00:00Z", "clock", True),
        ("2026-11-20T15:35:10Z", "2026-12-01T08:00:00Z", "clock", False),
        ("15:35:10", "08:00:00", "clock", False),
        (1795793710, 1796112000, "clock", True),
        (UUID, OTHER, "id", True),
        ("req_1f0c2d3e4b", "req_9a64aa11bc", "id", True),
        ("bk-688538", "bk-411872", "id", False),
        ("54732261", "19283746", "number", False),
        (12.5, 31.25, "number", False),
        (1250.4, 0, "number", False),
        ("open", "closed", "other", False),
        (True, False, "other", False),
        (None, "x1", "other", False),
        ("a1", 1, "other", False),
        ([1], [1, 2], "other", False),
    ],
)
def test_a_difference_has_a_kind_by_its_form(
    was: object, now: object, kind: str, proved: bool
) -> None:
    (change,) = changes({"v": was, "same": 1}, {"v": now, "same": 1})
    assert (change.kind, change.proved) == (kind, proved)


def test_values_in_a_text_are_compared_one_by_one() -> None:
    was = f"Booked bk-1 for {UUID} in 12ms"
    found = changes({"text": was}, {"text": f"Booked bk-2 for {OTHER} in 9ms"})
    assert [(each.was, each.nth, each.kind) for each in found] == [
        ("bk-1", 0, "id"),
        (UUID, 1, "id"),
        ("12ms", 2, "number"),
    ]
    (rest,) = changes({"text": was}, {"text": f"Lost bk-2 for {OTHER} in 9ms"})
    assert rest.kind == "other"


def test_a_status_is_no_value_of_a_run() -> None:
    (change,) = find_answer_changes(answer({}), answer({}, 404), MatchRules(), DAYS)
    assert (change.kind, change.where) == ("other", "status")


def test_rules_hold_for_answers_too() -> None:
    was, now = {"total": 3, "meta": {"at": "15:35:10"}}, {"total": 4, "meta": {"at": "16:00:01"}}
    assert [each.where for each in changes(was, now, "ignore:body.total")] == ["meta.at"]
    assert changes(was, now, "ignore:body.total", "clock:body.meta.at") == ()


def test_redacted_values_are_equal() -> None:
    assert changes({"token": "REDACTEDk1xxZ"}, {"token": "REDACTEDk7xxxxxZ"}) == ()


def test_an_answer_that_is_nothing_but_a_value_has_nothing_in_common() -> None:
    rules = MatchRules()
    assert not has_common_value(answer({"now": "15:35:10"}), answer({"now": "16:00:01"}), rules)
    assert not has_common_value(answer(b"15:35:10"), answer(b"16:00:01"), rules)
    one, two = ({"now": at, "zone": "UTC"} for at in ("15:35:10", "16:00:01"))
    assert has_common_value(answer(one), answer(two), rules)


def test_a_value_is_proved_by_a_third_one_of_another_run() -> None:
    """An amount that is the same in two live runs is of a changed world, and no value of a run."""
    controls = AnswerControls()
    took = [AnswerChange("number", "took", "12", now) for now in ("15", "15", "17")]
    assert [controls.is_proved(4, each) for each in took] == [False, False, True]
    total = [AnswerChange("number", "total", "1250.4", "0") for _ in range(3)]
    assert [controls.is_proved(4, each) for each in total] == [False] * 3
