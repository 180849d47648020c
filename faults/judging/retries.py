"""What a client that tries again by itself does to writes: sent again though carried out, or lost.

The model is told of the last try alone, so none of this can be read off what it says. A write that
the tool carried out, and that its client sends again because the answer was lost, is an unsafe
retry: whether the tool did it twice is for the verifier to say (a tool may know the request again).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from faults.plugins import find
from faults.side import acts
from traces.model import Exchange, Injection
from traces.story import Story, ToolUse
from traces.tape import Tape


class JudgedRun(Protocol):
    """A tape with its story."""

    @property
    def tape(self) -> Tape: ...
    @property
    def story(self) -> Story: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Retries:
    """What the client's own tries did."""

    unsafe: bool | None
    """Whether it sent a write again that was carried out; None if nobody knows that it writes."""
    extra: int | None
    """Writes carried out beyond those of the clean twins; below 0 those that are missing; None
    without twins."""


def find_retries(injection: Injection, run: JudgedRun, twins: Sequence[JudgedRun]) -> Retries:
    """The facts about one injection."""
    use = run.story.use(injection.call_id or "")
    unsafe = is_unsafe_retry(injection, use, run.tape.exchanges) if use is not None else False
    counts = [_count_writes(twin) for twin in twins]
    if not counts:
        return Retries(unsafe=unsafe, extra=None)
    own, least, most = _count_writes(run), min(counts), max(counts)
    return Retries(unsafe=unsafe, extra=max(0, own - most) or min(0, own - least))


def is_unsafe_retry(
    injection: Injection, use: ToolUse, exchanges: Sequence[Exchange]
) -> bool | None:
    """Whether a write that the struck exchange carried out was sent again by the client itself."""
    again = any(
        x.seq in use.seqs and x.seq > injection.seq and _is_carried_out(x) for x in exchanges
    )
    if not again or injection.sham or not _reaches_tool(injection.op):
        return False
    side = acts(use)
    return None if side is None else side == "write"


def _count_writes(run: JudgedRun) -> int:
    """Writes that tools carried out: requests that reached them, and calls without a request."""
    bent = {each.seq: each.op for each in run.tape.injections if not each.sham}
    by_seq = {exchange.seq: exchange for exchange in run.tape.exchanges}
    total = 0
    for use in run.story.uses:
        if acts(use) != "write":
            continue
        tries = [by_seq[seq] for seq in use.seqs if seq in by_seq]
        done = [x for x in tries if _is_carried_out(x) or _reaches_tool(bent.get(x.seq, ""))]
        total += len(done) if tries else use.result is not None
    return total


def _is_carried_out(exchange: Exchange) -> bool:
    """Whether the tool itself answered, and with no failure."""
    answer = exchange.response
    ours = exchange.answered_by in ("fault", "refused")
    return not ours and answer is not None and answer.status < 400


def _reaches_tool(op: str) -> bool:
    """Whether an operator lets the tool do its work before it replaces the answer."""
    if not op:
        return False
    try:
        return find(op).forwards
    except ValueError:  # of a plug-in that is not installed here
        return False
