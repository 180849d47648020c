"""Where a recording uses the values of its answers, by the tokens that taint analysis compares."""

import re
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from functools import cached_property
from math import inf
from typing import NamedTuple

from faults.judging.identifiers import is_specific_token
from faults.judging.value_tokens import extract_tokens
from replay.matching.answer_equality import AnswerChange
from replay.value_renaming import find_renaming_edits, is_id_name
from traces.bodies.content_encoding import decode_content_or_raw
from traces.conversation.derived_steps import DerivedSteps
from traces.model import Exchange, Request
from traces.tape.reader import Tape
from traces.value_names import compile_values, rename_url

_EPOCH = re.compile(r"1[5-9]\d{8}(?:\d{3}|\d{6}|\d{9})?(?:\.\d+)?")
_TIME_OF_DAY = re.compile(r"(?<![\d:+-])(\d{1,2})[:h](\d\d)(?!\d)")
"""A time of day, but not an offset from UTC, nor the seconds."""


class _TimedText(NamedTuple):
    """A text of the recording that can use a value, and when it was sent, in seconds."""

    at: float
    text: str


class RecordedUses:
    """The texts of a recording that use values: of the model, of calls, and of the verified end."""

    def __init__(self, recording: Tape, steps: DerivedSteps) -> None:
        self._recording, self._steps = recording, steps
        self._earlier_tokens: dict[int, frozenset[str]] = {}

    def is_used(self, seq: int, change: AnswerChange) -> bool:
        """Return whether a later text has the recorded value: as it is, or as a time of day."""
        was, later = change.was, tuple(self._iter_later_texts(seq))
        if change.kind == "id" or is_id_name(change.name):
            return self._is_named_later(seq, was, later)
        tokens = extract_tokens(was) - extract_tokens(change.now) - self._get_earlier_tokens(seq)
        specific = {each for each in tokens if is_specific_token(each)}
        return any(not specific.isdisjoint(extract_tokens(each.text)) for each in later) or (
            change.kind == "clock" and self._is_minute_used(seq, was, later)
        )

    def is_given_before(self, seq: int, value: str) -> bool:
        """Return whether an earlier message, answer or the command has the value as a word."""
        word = compile_values([value])
        return any(word.search(text) for text in self._iter_earlier_texts(seq))

    def _is_named_later(self, seq: int, value: str, later: tuple[_TimedText, ...]) -> bool:
        if not value.isdecimal():
            word = compile_values([value])
            return any(word.search(each.text) for each in later)
        return any(_has_numbered_id(x.request, value) for x in self._iter_later_calls(seq))

    def _is_minute_used(self, seq: int, was: str, later: tuple[_TimedText, ...]) -> bool:
        """Return whether a later text has this time of day, as a person tells it.

        One that an earlier message or another answer gave is none of this value.
        """
        if _EPOCH.fullmatch(was):
            was = datetime.fromtimestamp(int(was[:10]), UTC).isoformat()
        clocks, zone = tuple(_iter_times_of_day(was)), time.localtime().tm_gmtoff // 3600
        earlier = "\n".join(self._iter_earlier_texts(seq))
        return any(
            any(is_same_time_of_day(clock, told, zone) for clock in clocks)
            and found[0] not in earlier
            and not self._gave(seq, each.at, found[0])
            for each in later
            for found in _TIME_OF_DAY.finditer(each.text)
            for told in _iter_times_of_day(found[0])
        )

    def _gave(self, seq: int, at: float, text: str) -> bool:
        """Return whether another tool's answer had a text by then."""
        others = (x for x in self._recording.exchanges if x.seq != seq and x.started < at)
        return any(self._is_tool(x) and text in _read_answer(x) for x in others)

    def _iter_later_texts(self, seq: int) -> Iterator[_TimedText]:
        start, starts = self._starts[seq], self._starts
        for step in self._steps.agent_steps:
            if step.seqs and starts[step.seqs[-1]] > start:
                yield _TimedText(starts[step.seqs[-1]], step.message)
        for use in self._steps.tool_uses:
            if starts[use.asked_by] > start:
                yield _TimedText(starts[use.asked_by], use.arguments)
        for exchange in self._iter_later_calls(seq):
            yield _TimedText(exchange.started, exchange.request.url)
            yield _TimedText(exchange.started, _read_body(exchange.request))
        if (ending := self._recording.ending) is not None:
            yield _TimedText(inf, ending.detail or "")
            yield _TimedText(inf, ending.state_text)

    def _iter_earlier_texts(self, seq: int) -> Iterator[str]:
        at = self._starts[seq]
        yield from self._recording.trajectory.command
        for exchange in self._recording.exchanges:
            if exchange.started <= at:
                yield exchange.request.url
                yield _read_body(exchange.request)
            if exchange.started < at:
                yield _read_answer(exchange)

    def _get_earlier_tokens(self, seq: int) -> frozenset[str]:
        if seq not in self._earlier_tokens:
            found = map(extract_tokens, self._iter_earlier_texts(seq))
            self._earlier_tokens[seq] = frozenset[str]().union(*found)
        return self._earlier_tokens[seq]

    def _iter_later_calls(self, seq: int) -> Iterator[Exchange]:
        at = self._starts[seq]
        return (x for x in self._recording.exchanges if x.started > at and self._is_tool(x))

    def _is_tool(self, exchange: Exchange) -> bool:
        return self._steps.contexts[exchange.seq].kind == "tool"

    @cached_property
    def _starts(self) -> dict[int, float]:
        return {each.seq: each.started for each in self._recording.exchanges}


def is_same_time_of_day(clock: tuple[int, int], told: tuple[int, int], zone: int) -> bool:
    """Return whether a text may have its hour and minute from a clock.

    People plan in round minutes, and a clock shows one of them by chance in a fifth of all
    recordings. Those count if the hour is the clock's too, or its hour in the time zone of this
    machine, in hours from UTC; of any other minute the hour may be that of any zone.
    """
    if clock[1] != told[1]:
        return False
    return bool(told[1] % 5) or (told[0] - clock[0]) % 12 in {0, zone % 12}


def _iter_times_of_day(text: str) -> Iterator[tuple[int, int]]:
    return ((int(each[1]), int(each[2])) for each in _TIME_OF_DAY.finditer(text))


def _has_numbered_id(request: Request, value: str) -> bool:
    names = {value: "\0"}
    return rename_url(request.url, names) != request.url or bool(
        find_renaming_edits(request.body, names)
    )


def _read_body(request: Request) -> str:
    return decode_content_or_raw(request.headers, request.body).decode("utf-8", "replace")


def _read_answer(exchange: Exchange) -> str:
    answer = exchange.response
    if answer is None:
        return ""
    return decode_content_or_raw(answer.headers, answer.body).decode("utf-8", "replace")
