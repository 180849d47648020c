"""The agent's own day in its first request is another one on another day."""

import json
import time
from collections.abc import Callable
from datetime import UTC, datetime
from functools import partial

import pytest

from replay.matching.clock_rules import find_clock_rules
from replay.matching.index import RecordingIndex
from replay.matching.rules import MatchRules
from traces.model import Chunk, Exchange, Request, Response, Trajectory

MONTHS_AGO = time.time() - 77 * 86400
FORMS: tuple[Callable[[datetime], str], ...] = (
    lambda at: f"{at:%Y-%m-%d}",
    lambda at: f"{at:%A, %B %d, %Y}",
    lambda at: f"{at:%a %b %d %Y}",
    lambda at: f"{at:%d %B %Y}",
    lambda at: f"{at:%m/%d/%Y}",
    lambda at: f"{at:%Y-%m-%d} ({at:%A})",
    lambda at: f"{at:%d.%m.%Y}, {at:%a}",
    lambda at: f"{at:%Y-%m-%dT%H:%M:%S.%f}Z",
    lambda at: f"{at.timestamp():.3f}",
)


def asked(text: str, *more: str, role: str = "user") -> Request:
    said = [{"role": "system", "content": text}, *({"role": role, "content": m} for m in more)]
    body = json.dumps({"model": "m", "messages": said}).encode()
    return Request(method="POST", url="http://m/v1/chat/completions", body=body)


def is_answered(
    was: Request, now: Request, *, at: float = MONTHS_AGO, command: tuple[str, ...] = ()
) -> bool:
    answer = Response(status=200, chunks=(Chunk(at=0.0, data=b"ok"),), at=0.0, ended=0.0)
    recorded = (Exchange(seq=0, request=was, response=answer, started=0.0),)
    run = Trajectory(id="r", recorded_at=at, command=command)
    rules = MatchRules().with_clock(partial(find_clock_rules, recorded, run))
    return RecordingIndex(recorded, rules, recorded_at=at).find(now) is not None


def said(form: Callable[[datetime], str], at: float) -> Request:
    return asked(f"You are polite. Today is {form(datetime.fromtimestamp(at, UTC))} here.")


@pytest.mark.parametrize("form", FORMS)
def test_the_day_of_the_recording_is_today_in_a_replay(form: Callable[[datetime], str]) -> None:
    now = time.time()
    assert is_answered(said(form, MONTHS_AGO), said(form, now))
    assert not is_answered(said(form, MONTHS_AGO), said(form, now - 9 * 86400)), "not today"
    assert not is_answered(said(form, MONTHS_AGO - 9 * 86400), said(form, now)), "not that day"
    assert not is_answered(said(form, MONTHS_AGO), said(form, now), at=now - 5 * 86400)


def test_the_weekday_beside_a_date_is_that_of_the_date() -> None:
    was, now = (datetime.fromtimestamp(at, UTC) for at in (MONTHS_AGO, time.time()))
    tomorrow = datetime.fromtimestamp(time.time() + 86400, UTC)
    recorded = asked(f"Today is {was:%Y-%m-%d} ({was:%A}).")
    assert is_answered(recorded, asked(f"Today is {now:%Y-%m-%d} ({now:%A})."))
    for other in (f"{now:%Y-%m-%d} ({tomorrow:%A})", f"{now:%Y-%m-%d} (whenever)"):
        assert not is_answered(recorded, asked(f"Today is {other}.")), other


def test_another_word_beside_the_day_is_a_difference() -> None:
    was, now = said(FORMS[0], MONTHS_AGO), said(FORMS[0], time.time())
    rude = Request(method="POST", url=now.url, body=now.body.replace(b"polite", b"rude"))
    assert not is_answered(was, rude)


def test_a_day_of_the_command_is_no_clock() -> None:
    was, now = said(FORMS[0], MONTHS_AGO), said(FORMS[0], time.time())
    day = FORMS[0](datetime.fromtimestamp(MONTHS_AGO, UTC))
    assert not is_answered(was, now, command=("book", f"for {day}"))


def test_a_day_after_an_answer_may_come_from_it() -> None:
    days = [FORMS[0](datetime.fromtimestamp(at, UTC)) for at in (MONTHS_AGO, time.time())]
    was, now = (asked("go", f"it is {day}", role="assistant") for day in days)
    assert not is_answered(was, now)


def test_what_is_asked_of_a_tool_is_no_clock() -> None:
    days = [FORMS[0](datetime.fromtimestamp(at, UTC)) for at in (MONTHS_AGO, time.time())]
    was, now = (
        Request(method="POST", url="http://shop/book", body=json.dumps({"on": day}).encode())
        for day in days
    )
    assert not is_answered(was, now)


def moved(at: float, *, first: bool, word: str = "Today") -> Request:
    """Return a request whose system text is a list of parts in the first turn, a string later."""
    text = f"{word} is {datetime.fromtimestamp(at, UTC):%Y-%m-%d}."
    content: object = [{"type": "text", "text": text}] if first else text
    said = [{"role": "user", "content": "begin"}, {"role": "system", "content": content}]
    later = [] if first else [{"role": "assistant", "content": "well"}]
    body = json.dumps({"model": "m", "messages": [*said, *later]}).encode()
    return Request(method="POST", url="http://m/v1/chat/completions", body=body)


def test_a_text_that_a_client_moves_has_the_day_there_too() -> None:
    answer = Response(status=200, chunks=(Chunk(at=0.0, data=b"ok"),), at=0.0, ended=0.0)
    turns = (moved(MONTHS_AGO, first=True), moved(MONTHS_AGO, first=False))
    recorded = tuple(
        Exchange(seq=n, request=each, response=answer, started=float(n))
        for n, each in enumerate(turns)
    )
    run = Trajectory(id="r", recorded_at=MONTHS_AGO)
    rules = MatchRules().with_clock(partial(find_clock_rules, recorded, run))
    index = RecordingIndex(recorded, rules, recorded_at=MONTHS_AGO)
    now = time.time()
    assert index.find(moved(now, first=True)) is not None
    assert index.find(moved(now, first=False)) is not None
    assert index.find(moved(now - 9 * 86400, first=False)) is None, "not today"
    assert index.find(moved(now, first=False, word="Due")) is None


def answered(number: int, request: Request) -> Exchange:
    answer = Response(status=200, chunks=(Chunk(at=0.0, data=b"ok"),), at=0.0, ended=0.0)
    return Exchange(seq=number, request=request, response=answer, started=float(number))


def test_a_day_in_a_later_text_alone_is_no_clock() -> None:
    recorded = (answered(0, asked("begin")), answered(1, moved(MONTHS_AGO, first=False)))
    assert find_clock_rules(recorded, Trajectory(id="r", recorded_at=MONTHS_AGO)) == ()


def test_a_day_before_words_that_the_model_never_said_is_a_clock() -> None:
    """As qwen-code 0.15 begins: its context, words of the model made up by it, then the task."""
    day = FORMS[1](datetime.fromtimestamp(MONTHS_AGO, UTC))
    run = Trajectory(id="r", recorded_at=MONTHS_AGO)

    def begin(context: str, answer: str) -> Request:
        said = [{"role": "user", "content": context}, {"role": "assistant", "content": answer}]
        body = {"model": "m", "messages": [*said, {"role": "user", "content": "do it"}]}
        return Request(
            method="POST", url="http://m/v1/chat/completions", body=json.dumps(body).encode()
        )

    (rule,) = find_clock_rules((answered(0, begin(f"Today is {day}.", "Got it.")),), run)
    assert (rule.kind, rule.where) == ("day", "messages.*.content")
    assert find_clock_rules((answered(0, begin("Hello", f"Today is {day}.")),), run) == ()
