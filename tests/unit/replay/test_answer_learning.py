"""Rules for live answers: learnt for values of the run that nothing uses, and for no others."""

import json

import pytest

from replay.matching.answer_equality import AnswerChange, RunDays, find_answer_changes
from replay.matching.answer_learning import AnswerPair, find_answer_differences, pair_answers
from replay.matching.rules import MatchRules
from traces.model import Chunk, Exchange, Request, Response

DAYS = RunDays(frozenset(), frozenset())


def exchange(
    body: object, *, url: str = "http://h/of", substituted: tuple[str, ...] = ()
) -> Exchange:
    text = body if isinstance(body, str) else json.dumps(body)
    answer = Response(status=200, chunks=(Chunk(at=0.0, data=text.encode()),), ended=0.0)
    request = Request(method="GET", url=url)
    return Exchange(seq=3, request=request, response=answer, substituted=substituted)


def learn(
    was: object, now: object, *, used: tuple[str, ...] = (), substituted: tuple[str, ...] = ()
) -> tuple[list[str], list[str]]:
    """Return the learnt rules, and why other differences have none."""

    def is_used(seq: int, change: AnswerChange) -> bool:
        return seq == 3 and change.was in used

    pair = AnswerPair(exchange(was), exchange(now, substituted=substituted))
    found = list(find_answer_differences(pair, MatchRules(), DAYS, is_used))
    rules = [rule for each in found for rule in each.rules]
    if rules and not substituted:
        one, two = pair.recorded.response, pair.live.response
        assert one is not None
        assert two is not None
        left = find_answer_changes(one, two, MatchRules(rules), DAYS)
        assert len(left) == sum(not each.rules for each in found)
    return list(map(str, rules)), [each.why for each in found if not each.rules]


OPEN = {"state": "open", "at": "12:01:07", "took": 0.71, "n": 4}


def test_a_time_a_duration_and_a_count_that_nothing_uses_are_learnt() -> None:
    now = OPEN | {"at": "12:05:44", "took": 0.69, "n": 5}
    assert learn(OPEN, now) == (["clock:body.at", "counter:body.took", "counter:body.n"], [])


def test_a_text_is_learnt_with_what_stands_around_it() -> None:
    rules, left = learn("3 items as of 12:01:07, all fresh", "3 items as of 12:05:44, all fresh")
    assert rules == ['clock:body "3 items as of {}, all fresh"']
    assert left == []


@pytest.mark.parametrize("field", ["at", "n"])
def test_a_value_that_is_used_later_is_not_learnt(field: str) -> None:
    now = OPEN | {field: "12:05:44" if field == "at" else 5}
    assert learn(OPEN, now, used=(str(OPEN[field]),)) == ([], ["is used by a later call or end"])


def test_an_id_that_is_used_later_is_renamed_and_needs_no_rule() -> None:
    was, now = ({"state": "open", "ref": f"bk-{id}"} for id in ("4f1c9a7e", "b27d60c3"))
    assert learn(was, now, used=("bk-4f1c9a7e",)) == ([], [])
    rules, left = learn(was, now)
    assert rules
    assert left == []


@pytest.mark.parametrize("was", [{"now": "12:01:07"}, "12:01:07"])
def test_an_answer_that_is_nothing_but_its_value_is_the_task(was: object) -> None:
    now = {"now": "12:05:44"} if isinstance(was, dict) else "12:05:44"
    assert learn(was, now) == ([], ["is all of its answer"])


@pytest.mark.parametrize(
    "now",
    [OPEN | {"state": "shut"}, {k: v for k, v in OPEN.items() if k != "at"}, OPEN | {"more": 1}],
    ids=["a word", "a field less", "a field more"],
)
def test_anything_else_is_no_value(now: object) -> None:
    rules, left = learn(OPEN, now)
    assert rules == []
    assert len(left) == 1


def test_the_tape_of_a_fork_has_the_live_values_beside_what_the_agent_saw() -> None:
    rules, left = learn(OPEN, OPEN, substituted=("at: 12:05:44", "n: 5"))
    assert rules == ["clock:body.at", "counter:body.n"]
    assert left == []
    text = {"log": "at 12:01:07, 3 left", "state": "open"}
    assert learn(text, text, substituted=("log: 12:05:44",)) == ([], [])


def test_answers_are_paired_by_their_requests_in_order() -> None:
    recorded = [exchange("a"), exchange("b"), exchange("c", url="http://h/c")]
    run = [exchange("x", url="http://h/c"), exchange("y"), exchange("z"), exchange("more")]
    pairs = pair_answers(recorded, run, lambda each: each.request.url)
    bodies = [[x.response and x.response.body for x in (p.recorded, p.live)] for p in pairs]
    assert bodies == [[b"c", b"x"], [b"a", b"y"], [b"b", b"z"]]
