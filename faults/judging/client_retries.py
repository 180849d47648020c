"""Client retries of writes: writes repeated although executed, and lost writes.

The model sees only the last attempt, so its messages do not show any of this. A write that the tool
executed, and that its client repeats because the response was lost, is an unsafe retry: whether the
tool executed it twice is for the verifier to decide (a tool may deduplicate requests).
"""

from collections.abc import Sequence
from typing import Protocol

from msgspec import Struct

from faults.plugins import find_operator
from faults.targeting.read_or_write import classify_call_side
from traces.conversation.derived_steps import DerivedSteps, ToolUse
from traces.model import Exchange, Injection
from traces.tape.reader import Tape


class JudgedRun(Protocol):
    """A tape with its derived steps."""

    @property
    def tape(self) -> Tape: ...
    @property
    def story(self) -> DerivedSteps: ...


class RetryFindings(Struct, frozen=True, kw_only=True):
    """The effects of the client's own retries."""

    unsafe: bool | None
    """Whether the client repeated an executed write; None if the side of the call is unknown."""
    extra: int | None
    """Executed writes beyond those of the clean twins; negative if some are missing; None without
    twins."""


def find_retries(injection: Injection, run: JudgedRun, twins: Sequence[JudgedRun]) -> RetryFindings:
    """Return the retry findings of one injection."""
    use = run.story.find_use(injection.call_id or "")
    unsafe = is_unsafe_retry(injection, use, run.tape.exchanges) if use is not None else False
    counts = [_count_writes(twin) for twin in twins]
    if not counts:
        return RetryFindings(unsafe=unsafe, extra=None)
    own, minimum, most = _count_writes(run), min(counts), max(counts)
    return RetryFindings(unsafe=unsafe, extra=max(0, own - most) or min(0, own - minimum))


def is_unsafe_retry(
    injection: Injection, use: ToolUse, exchanges: Sequence[Exchange]
) -> bool | None:
    """Return whether the client itself repeated a write that the target exchange executed."""
    repeated = any(
        x.seq in use.seqs and x.seq > injection.seq and _is_carried_out(x) for x in exchanges
    )
    if not repeated or injection.sham or not reaches_tool(injection.op):
        return False
    side = classify_call_side(use)
    return None if side is None else side == "write"


def _count_writes(run: JudgedRun) -> int:
    """Count executed writes: requests that reached the tools, and calls without a request."""
    operators = {each.seq: each.op for each in run.tape.injections if not each.sham}
    by_seq = {exchange.seq: exchange for exchange in run.tape.exchanges}
    total = 0
    for use in run.story.tool_uses:
        if classify_call_side(use) != "write":
            continue
        tries = [by_seq[seq] for seq in use.seqs if seq in by_seq]
        done = [x for x in tries if _is_carried_out(x) or reaches_tool(operators.get(x.seq, ""))]
        total += len(done) if tries else use.result is not None
    return total


def _is_carried_out(exchange: Exchange) -> bool:
    """Return whether the tool itself answered, without a failure."""
    answer = exchange.response
    fabricated = exchange.answered_by in ("fault", "refused")
    return not fabricated and answer is not None and answer.status < 400


def reaches_tool(op: str) -> bool:
    """Return whether an operator lets the tool execute the request before it changes the answer."""
    if not op:
        return False
    try:
        return find_operator(op).forwards
    except ValueError:  # an operator of a plug-in that is not installed here
        return False
