"""The log of decisions (`-v`, STUMBLE_LOG): what was matched, joined, answered and judged, and why.

It is a tap, put in front of the tape only if the log is on, so that it costs nothing otherwise.
Every line is redacted like a tape before it is written. STUMBLE_LOG is `stderr` or a file, to which
lines are appended.
"""

import os
import sys
from collections.abc import Iterable, Iterator
from copy import replace
from pathlib import Path

from replay.matching.diff import describe_match
from replay.player import TapePlayer
from stumble.control_characters import escape_controls
from stumble.errors import UsageError
from stumble.user_data.known_secrets import load_user_secrets
from traces.conversation.tracker import ConversationTap, ExchangeContext
from traces.model import Exchange, Outcome, Request
from traces.redaction.redactor import Redactor

LOG_VARIABLE = "STUMBLE_LOG"
TO_STDERR = ("stderr", "1")


def is_logging() -> bool:
    """Return whether decisions are logged."""
    return bool(os.environ.get(LOG_VARIABLE))


class DecisionLog:
    """Appends redacted lines to stderr or a file; each line is written at once."""

    def __init__(self, target: str) -> None:
        self._path = None if target in TO_STDERR else Path(target)
        self._redactor = Redactor(load_user_secrets())

    def describe_request(self, request: Request) -> str:
        """Return method and address of a request, without credentials in it."""
        return f"{request.method} {self._redactor.redact_request(replace(request, body=b'')).url}"

    def write(self, line: str) -> None:
        """Write one line. Raises UsageError if the file cannot be written."""
        text = f"stumble: {escape_controls(line)}\n"
        data = self._redactor.redact_bytes(text.encode("utf-8", "replace"))
        if self._path is None:
            sys.stderr.write(data.decode("utf-8", "replace"))
            return
        try:
            with self._path.open("ab") as file:
                file.write(data)
        except OSError as error:
            raise UsageError(f"{LOG_VARIABLE}={self._path}: {error.strerror}") from None


class DecisionTap:
    """Logs where each exchange was placed, what answered it, and why."""

    def __init__(self, log: DecisionLog, watch: ConversationTap, player: TapePlayer | None) -> None:
        self._log, self._watch, self._player = log, watch, player
        self._told = 0
        self._open: set[int] = set()

    def request(self, exchange: Exchange) -> Exchange:
        """Log the place of a request, and its match or the difference to the nearest one."""
        placed = self._watch.find_context(exchange)
        self._open.add(exchange.seq)
        self._log.write(f"{exchange.seq} {self._log.describe_request(exchange.request)}")
        for line in (*_describe_place(placed), *self._describe_match(exchange)):
            self._log.write(f"  {line}")
        return exchange

    def head(self, exchange: Exchange) -> None:
        """Log what answered, with the status, once."""
        if exchange.seq in self._open and exchange.response is not None:
            self._open.discard(exchange.seq)
            status = exchange.response.status
            self._log.write(f"  {exchange.seq} answered by {exchange.answered_by}, status {status}")

    def done(self, exchange: Exchange) -> None:
        """Log an exchange that ended without an answer."""
        if exchange.seq in self._open:
            self._open.discard(exchange.seq)
            self._log.write(f"  {exchange.seq} ended without an answer: {exchange.error}")

    def _describe_match(self, exchange: Exchange) -> Iterator[str]:
        if self._player is None:
            return
        match = self._player.matched.get(exchange.seq)
        if match is not None:
            yield f"matched {describe_match(self._player.redact(exchange.request), match)}"
        problems = (*self._player.diverged, *self._player.missed)
        yield from (f"not on the tape: {each}" for each in problems[self._told :])
        self._told = len(problems)


def _describe_place(placed: ExchangeContext) -> Iterator[str]:
    turn = f", turn {placed.turn}" if placed.turn else ""
    lane = "" if placed.lane is None else f", conversation {placed.lane}{turn}"
    again = "" if placed.attempt_of is None else f", another attempt of {placed.attempt_of}"
    yield f"{placed.kind}{lane}{again}"
    if placed.call is not None:
        yield f"serves the call {placed.call.tool} ({placed.call.id}), joined by {placed.join}"
    elif placed.kind == "tool":
        yield "serves no known call of a model"
    yield from (f"returns the result of {call.tool} ({call.id})" for call, _ in placed.returned)


def log_decisions(taps: Iterable[object]) -> tuple[object, ...]:
    """Return the taps, with a tap that logs after them if the log is on."""
    taps = tuple(taps)
    watch = next((tap for tap in taps if isinstance(tap, ConversationTap)), None)
    if not is_logging() or watch is None:
        return taps
    player = next((tap for tap in taps if isinstance(tap, TapePlayer)), None)
    return (*taps, DecisionTap(DecisionLog(os.environ[LOG_VARIABLE]), watch, player))


def log_verdicts(run: str, verdicts: Iterable[Outcome]) -> None:
    """Log the verdicts on a run, with their evidence and with what is unknown and why."""
    if not is_logging():
        return
    log = DecisionLog(os.environ[LOG_VARIABLE])
    for each in verdicts:
        log.write(f"run {run}, injection {each.injection_id}: {each.outcome or 'unknown'}")
        for line in each.evidence:
            log.write(f"  {line}")
        for name, why in each.reasons.items():
            log.write(f"  {name} unknown: {why}")
