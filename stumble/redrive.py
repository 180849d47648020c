"""A tape's tool calls, sent to a real service and held against what was recorded."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from statistics import quantiles
from urllib.parse import urlsplit

from replay.drift import Drift, compare
from replay.redrive import Sender, redacted, retarget
from traces.index import READING
from traces.model import Exchange, Headers
from traces.story import over, tell
from traces.tape import Tape, Writer

type Skip = str


@dataclass(frozen=True, slots=True, kw_only=True)
class Redriven:
    """One recorded call and its answer of today."""

    recorded: Exchange
    now: Exchange
    drift: Drift | None
    """None where one of the two never got an answer."""
    attempts: int

    @property
    def broke(self) -> bool:
        """True where the answer came out otherwise in more than its values."""
        if self.drift is None:
            return (self.recorded.response is None) != (self.now.response is None)
        return self.drift.breaking


def calls(tape: Tape) -> list[Exchange]:
    """The tool calls over HTTP, each once: of several attempts the last."""
    last: dict[int, Exchange] = {}
    placed = tell(tape).placed
    for exchange in tape.exchanges:
        where = placed[exchange.seq]
        if where.kind == "tool" and exchange.transport == "http":
            first = exchange.seq if where.attempt_of is None else where.attempt_of
            last[first] = exchange
    return list(last.values())


def chosen(found: Sequence[Exchange], *, writes: bool) -> tuple[list[Exchange], Counter[Skip]]:
    """The calls that can be sent, and how many cannot be, by reason."""
    skipped = Counter[Skip]()
    send = []
    for exchange in found:
        why = _unsendable(exchange, writes=writes)
        if why is None:
            send.append(exchange)
        else:
            skipped[why] += 1
    return send, skipped


def _unsendable(exchange: Exchange, *, writes: bool) -> Skip | None:
    if exchange.answered_by not in ("live", "recorded"):
        return f"answered by {exchange.answered_by}, so there is nothing to compare with"
    if exchange.request.method not in READING and not writes:
        return "may write (--writes sends them)"
    if redacted(exchange.request):
        return "lost a secret in its URL or body to redaction"
    return None


def origins(found: Sequence[Exchange]) -> list[str]:
    """The services these calls went to."""
    parts = [urlsplit(exchange.request.url) for exchange in found]
    return sorted({f"{part.scheme}://{part.netloc}" for part in parts})


def redrive(
    found: Sequence[Exchange],
    bases: Mapping[str, str],
    sender: Sender,
    writer: Writer,
    headers: Headers,
    seen: Callable[[Redriven], None],
) -> Iterator[Redriven]:
    """Send each call to the base of its origin and write every attempt on the tape."""
    seqs = count(1)
    for recorded in found:
        parts = urlsplit(recorded.request.url)
        request = retarget(recorded.request, bases[f"{parts.scheme}://{parts.netloc}"], headers)
        attempts = []
        for exchange in sender.attempts(request, seqs):
            writer.exchange(exchange)
            attempts.append(exchange)
        result = _held(recorded, attempts[-1], len(attempts))
        seen(result)
        yield result


def _held(recorded: Exchange, now: Exchange, attempts: int) -> Redriven:
    drift = None
    if recorded.response is not None and now.response is not None:
        drift = compare(recorded.response, now.response)
    return Redriven(recorded=recorded, now=now, drift=drift, attempts=attempts)


def latency(found: Sequence[Exchange]) -> dict[str, float] | None:
    """Median and 95th percentile in milliseconds, of those that were answered; None under two."""
    took = [1000 * (over(x) - x.started) for x in found if x.response is not None]
    if len(took) < 2:
        return None
    cuts = quantiles(took, n=20, method="inclusive")
    return {"calls": len(took), "p50_ms": round(cuts[9], 1), "p95_ms": round(cuts[18], 1)}
