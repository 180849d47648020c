"""Tool calls of a tape, sent to a live service and compared with the recorded answers."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import count
from statistics import quantiles
from urllib.parse import urlsplit

from msgspec import Struct

from replay.redrive import RequestSender, is_redacted_request, retarget_request
from replay.response_drift import ResponseDrift, compare_responses
from traces.conversation.derived_steps import derive_tape_steps, find_answer_end
from traces.model import Exchange, Headers
from traces.store.rows import READ_METHODS
from traces.tape.reader import Tape
from traces.tape.writer import TapeWriter

type SkipReason = str


class RedrivenCall(Struct, frozen=True, kw_only=True):
    """One recorded call and its answer of today."""

    recorded: Exchange
    now: Exchange
    drift: ResponseDrift | None
    """None if one of the two has no answer."""
    attempts: int

    @property
    def is_broken(self) -> bool:
        """Whether the answers differ in more than their values."""
        if self.drift is None:
            return (self.recorded.response is None) != (self.now.response is None)
        return self.drift.is_breaking


def collect_http_tool_calls(tape: Tape) -> list[Exchange]:
    """Collect the tool calls over HTTP; of several attempts the last."""
    last: dict[int, Exchange] = {}
    contexts = derive_tape_steps(tape).contexts
    for exchange in tape.exchanges:
        context = contexts[exchange.seq]
        if context.kind == "tool" and exchange.transport == "http":
            first = exchange.seq if context.attempt_of is None else context.attempt_of
            last[first] = exchange
    return list(last.values())


def select_sendable_calls(
    found: Sequence[Exchange], *, writes: bool
) -> tuple[list[Exchange], Counter[SkipReason]]:
    """Return the calls that can be sent, and the number of others by reason."""
    skipped = Counter[SkipReason]()
    send = []
    for exchange in found:
        why = _explain_unsendable(exchange, writes=writes)
        if why is None:
            send.append(exchange)
        else:
            skipped[why] += 1
    return send, skipped


def _explain_unsendable(exchange: Exchange, *, writes: bool) -> SkipReason | None:
    if exchange.answered_by not in ("live", "recorded"):
        return f"answered by {exchange.answered_by}, so there is nothing to compare with"
    if exchange.request.method not in READ_METHODS and not writes:
        return "may write (--writes sends them)"
    if is_redacted_request(exchange.request):
        return "lost a secret in its URL or body to redaction"
    return None


def list_call_origins(found: Sequence[Exchange]) -> list[str]:
    """Return the origins of these calls, sorted."""
    parts = [urlsplit(exchange.request.url) for exchange in found]
    return sorted({f"{part.scheme}://{part.netloc}" for part in parts})


def redrive_calls(
    found: Sequence[Exchange],
    bases: Mapping[str, str],
    sender: RequestSender,
    writer: TapeWriter,
    headers: Headers,
    seen: Callable[[RedrivenCall], None],
) -> Iterator[RedrivenCall]:
    """Send each call to the base of its origin and write every attempt on the tape."""
    seqs = count(1)
    for recorded in found:
        parts = urlsplit(recorded.request.url)
        request = retarget_request(
            recorded.request, bases[f"{parts.scheme}://{parts.netloc}"], headers
        )
        attempts = []
        for exchange in sender.send_with_retries(request, seqs):
            writer.write_exchange(exchange)
            attempts.append(exchange)
        result = _compare_answers(recorded, attempts[-1], len(attempts))
        seen(result)
        yield result


def _compare_answers(recorded: Exchange, now: Exchange, attempts: int) -> RedrivenCall:
    drift = None
    if recorded.response is not None and now.response is not None:
        drift = compare_responses(recorded.response, now.response)
    return RedrivenCall(recorded=recorded, now=now, drift=drift, attempts=attempts)


def measure_latency(found: Sequence[Exchange]) -> dict[str, float] | None:
    """Return median and 95th percentile in ms of the answered calls; None below two calls."""
    durations = [1000 * (find_answer_end(x) - x.started) for x in found if x.response is not None]
    if len(durations) < 2:
        return None
    cuts = quantiles(durations, n=20, method="inclusive")
    return {"calls": len(durations), "p50_ms": round(cuts[9], 1), "p95_ms": round(cuts[18], 1)}
