"""The live answers before a fork: a tap that shows the agent the recorded ones.

Tools answer from a fresh world there, the model from the recording. A live answer may differ from
the recorded one in values of the run: then the agent gets the recorded answer, and

- a value that nothing later uses is left at that (when it was answered, a duration, a count),
- an id that is used later is renamed: live requests get the live id, live answers the recorded one.

A time of today and a random id are known by their form. For any other value a control decides: it
has to differ from the live value of another run of the same fork too. What differs otherwise, and a
time that is used later, stops the run before the fault, with the rule that would let it pass.

The tap stands before the injector, so that a fault is injected into what the agent would get.
"""

import time
from collections.abc import Callable, Iterator
from copy import replace
from typing import Protocol

from msgspec import Struct, field

from replay.matching.answer_equality import (
    AnswerChange,
    RunDays,
    find_answer_changes,
    has_common_value,
    read_answer,
)
from replay.matching.rules import MatchRules
from replay.matching.typed_values import list_days_on_earth
from replay.value_renaming import ValueRenaming, is_id_name, replace_body
from traces.bodies.content_encoding import decode_content_or_raw
from traces.dialects import mcp
from traces.model import Exchange, Response, find_header
from traces.redaction.placeholder import PLACEHOLDER

MIN_RENAMED_LENGTH = 6
"""Characters of an unused value that is renamed in later requests nevertheless."""


class ValueUses(Protocol):
    """Where a recording uses the values of its answers."""

    def is_used(self, seq: int, change: AnswerChange) -> bool:
        """Return whether a later call, write or end of the recording uses the recorded value."""
        ...

    def is_given_before(self, seq: int, value: str) -> bool:
        """Return whether an earlier exchange, or the command, has the value."""
        ...


class AnswerControls(Struct):
    """The live values of all runs of one fork: a value that differs in each run is of the run."""

    uses: ValueUses | None = None
    """None takes every value for used."""
    _values: dict[tuple[int, str, int], set[str]] = field(default_factory=dict)

    def is_proved(self, seq: int, change: AnswerChange) -> bool:
        """Return whether another run had a third value, and note the value of this one."""
        seen = self._values.setdefault((seq, change.where, change.nth), set())
        others = seen - {change.was, change.now}
        seen.add(change.now)
        return bool(others)


class LivePrefix:
    """Compares live answers with recorded ones, and shows the agent what it may see."""

    def __init__(
        self,
        controls: AnswerControls,
        *,
        rules: MatchRules,
        recorded_at: float,
        redact: Callable[[Exchange], Exchange],
        stop: Callable[[str], object],
    ) -> None:
        """`redact` redacts an answer as on a tape; `stop` gets why a run left the recording."""
        self._uses, self._controls, self._rules = controls.uses, controls, rules
        self._redact, self._stop = redact, stop
        self._days = RunDays(list_days_on_earth(recorded_at), list_days_on_earth(time.time()))
        self.renaming = ValueRenaming()
        self.renamed: dict[str, str] = {}
        """The recorded values in live requests, and the live values that were sent."""
        self.substituted = 0
        """How many values of live answers were shown as recorded."""
        self._expected: dict[int, Exchange] = {}
        self._live: set[int] = set()

    def expect(self, seq: int, recorded: Exchange) -> None:
        """Compare the live answer to a request with a recorded one."""
        self._expected[seq] = recorded

    def send(self, exchange: Exchange) -> Exchange:
        """Return a live request as it goes out, with the live ids."""
        self._live.add(exchange.seq)
        sent = self.renaming.to_live(exchange) if self.renaming else exchange
        self.renamed |= zip(sent.renamed[::2], sent.renamed[1::2], strict=True)
        return sent

    def holds(self, exchange: Exchange) -> bool:
        """Return whether a live answer is needed complete."""
        seq = exchange.seq
        return seq in self._expected or (seq in self._live and bool(self.renaming))

    def response(self, exchange: Exchange) -> Exchange:
        """Return what the agent gets: the recorded answer, or the live one with recorded ids.

        A request that got no answer stays expected: `take_expected` returns it.
        """
        answer = exchange.response
        if exchange.answered_by != "live" or answer is None:
            return exchange
        recorded = self._expected.pop(exchange.seq, None)
        if recorded is not None:
            return self._show_recorded(exchange, recorded)
        if exchange.seq in self._live and self.renaming:
            return replace(exchange, response=self.renaming.to_recorded(answer))
        return exchange

    def take_expected(self, seq: int) -> Exchange | None:
        """Return the recorded exchange of a request whose answer never was complete."""
        self._live.discard(seq)
        return self._expected.pop(seq, None)

    def _show_recorded(self, exchange: Exchange, recorded: Exchange) -> Exchange:
        assert exchange.response is not None
        sessions = [
            find_header(answer.headers, "mcp-session-id")
            for answer in (recorded.response, exchange.response)
            if answer is not None
        ]
        match sessions:  # the server assigns one in each run, and the client sends it back
            case [str(was), str(now)] if was != now:
                self.renaming.add(was, now)
        live = replace(exchange, response=self.renaming.to_recorded(exchange.response))
        is_answered = all(map(mcp.has_mcp_response, (recorded, exchange)))  # whatever came after
        is_cut = (recorded.error is None) != (exchange.error is None) and not is_answered
        if recorded.response is None or is_cut:
            self._stop(describe_missing_answer(recorded, exchange))
            return live
        old, new = read_answer(recorded), read_answer(self._redact(live))
        changes = find_answer_changes(old, new, self._rules, self._days)
        if exchange.error is not None or (not changes and old.body == new.body):
            return live
        for why in tuple(self._judge_changes(recorded.seq, changes, old, new))[:1]:
            request = exchange.request
            self._stop(f"live answer to {request.method} {request.url} {why}")
        shown = show_recorded_answer(recorded, live)
        if shown is None:
            return live
        self.substituted += len(changes)
        texts = tuple(f"{change.where}: {change.now}" for change in changes)
        return replace(live, response=shown, substituted=texts)

    def _judge_changes(
        self, seq: int, changes: tuple[AnswerChange, ...], old: Response, new: Response
    ) -> Iterator[str]:
        """Yield why an answer may not differ as it does, and rename its ids if it may.

        A change that is not proved yet stops the run too, but its later answers are evidence: so
        its ids are renamed, and another run has a control for all of its values.
        """
        unproved = [each for each in changes if not self._is_proved(seq, each)]
        refused = [why for change in changes for why in self._refuse(seq, change)]
        is_clock = any(change.kind == "clock" for change in changes)
        if not refused and is_clock and not has_common_value(old, new, self._rules):
            refused = [f"{_describe(changes[0])}: the answer is nothing but the time"]
        if not refused:
            refused = [why for change in changes for why in self._rename(seq, change)]
        yield from refused
        for change in unproved:
            yield f"{_describe(change)}: no other run shows that it changes{_name_rule(change)}"

    def _is_proved(self, seq: int, change: AnswerChange) -> bool:
        return self._controls.is_proved(seq, change) or change.proved or change.kind == "other"

    def _refuse(self, seq: int, change: AnswerChange) -> Iterator[str]:
        """Yield why a value may not differ, whatever it is in other runs."""
        if change.kind == "other":
            yield f"{_describe(change)}: no value of a run{_name_rule(change)}"
        elif not _is_id(change) and self._is_used(seq, change):
            yield f"{_describe(change)}: a later call or end uses it{_name_rule(change)}"

    def _is_used(self, seq: int, change: AnswerChange) -> bool:
        return self._uses is None or self._uses.is_used(seq, change)

    def _rename(self, seq: int, change: AnswerChange) -> Iterator[str]:
        """Rename an id in later requests; yield why that is not possible."""
        is_used = _is_id(change) and self._is_used(seq, change)
        if not is_used and len(change.was) < MIN_RENAMED_LENGTH:
            return
        if self._uses is not None and self._uses.is_given_before(seq, change.was):
            if is_used:
                yield f"{_describe(change)}: an earlier message has it too{_name_rule(change)}"
        elif not self.renaming.add(change.was, change.now) and is_used:
            yield f"{_describe(change)}: one of the two stands for another value already"


def show_recorded_answer(recorded: Exchange, live: Exchange) -> Response | None:
    """Return the live answer with the recorded body; None if a secret in it is not known here."""
    old, new = recorded.response, live.response
    assert old is not None
    assert new is not None
    body = decode_content_or_raw(old.headers, old.body)
    for tag in {match[0] for match in PLACEHOLDER.finditer(body)}:
        secret = _find_secret(tag, body, decode_content_or_raw(new.headers, new.body))
        if secret is None:
            return None
        body = body.replace(tag, secret)
    return replace_body(new, body)


def _find_secret(tag: bytes, recorded: bytes, live: bytes) -> bytes | None:
    """Return the text of a live answer between what stands around a placeholder."""
    start = recorded.index(tag)
    before = recorded[max(0, start - 16) : start]
    after = recorded[start + len(tag) : start + len(tag) + 1]
    at = live.find(before)
    if at < 0 or live.count(before) > 1 or not before:
        return None
    stop = live.find(after, at + len(before)) if after else len(live)
    return live[at + len(before) : stop] if stop >= 0 else None


def _is_id(change: AnswerChange) -> bool:
    return change.kind == "id" or (
        change.kind == "number" and change.was.isdecimal() and is_id_name(change.name)
    )


def _describe(change: AnswerChange) -> str:
    return f"was {change.was[:80]!r} at {change.where}, is {change.now[:80]!r}"


def _name_rule(change: AnswerChange) -> str:
    if change.where == "status":
        return ""
    where = "body" if change.where == "body" else f"body.{change.where}"
    return f"; to let it pass: --match 'ignore:{where}'"


def describe_missing_answer(recorded: Exchange, live: Exchange) -> str:
    """Describe two exchanges of which one has no answer."""
    request = live.request
    return (
        f"live answer to {request.method} {request.url} was {_name_answer(recorded)}, "
        f"is {_name_answer(live)}"
    )


def _name_answer(exchange: Exchange) -> str:
    return exchange.error or (str(exchange.response.status) if exchange.response else "no answer")
