"""Consumption: whether the agent's next model request contains the effect of a fault.

Only a consumed injection tests the agent: it never saw a fault that an SDK's own retry absorbed.
True, False with a reason, or None if undecidable.
"""

from collections.abc import Mapping, Sequence
from typing import Literal

from msgspec import Struct

from faults.judging.client_retries import is_unsafe_retry
from faults.judging.value_tokens import extract_field_pairs, extract_tokens
from faults.readable_response import decode_readable_body
from traces.conversation.derived_steps import DerivedSteps, ToolUse, is_error_text
from traces.conversation.tracker import is_failed_attempt
from traces.dialects import mcp
from traces.model import Exchange, Injection

SENT_AGAIN = "the client sent a write again that had been carried out"


class ConsumptionVerdict(Struct, frozen=True):
    """The verdict, the model request that decides it, and why."""

    consumed: bool | None
    seq: int | None
    why: str
    attempts: str | None = None
    """Attempts of a model's turn, as `attempts 3: 429, 4: 200`; None for a tool call."""


def decide_consumption(
    injection: Injection, derived_steps: DerivedSteps, exchanges: Sequence[Exchange]
) -> ConsumptionVerdict:
    """Return whether this injection reached the model, by the rules of its family."""
    if injection.place == "model-boundary":
        return _decide_at_boundary(injection, derived_steps, exchanges)
    if injection.place == "model":
        return _decide_at_model(injection, derived_steps, exchanges)
    use = derived_steps.find_use(injection.call_id) if injection.call_id else None
    if use is None:
        return ConsumptionVerdict(None, None, "undecidable")
    if use.result is None or use.result_seq is None:
        return ConsumptionVerdict(False, None, "ended_before")
    verdict = _decide_in_result(injection, use, use.result, exchanges)
    if verdict.why == "absorbed" and is_unsafe_retry(injection, use, exchanges):
        # The model never saw it, but its client acted on it: the consequences are the agent's.
        return ConsumptionVerdict(True, use.result_seq, SENT_AGAIN)
    if verdict.consumed is None and injection.place == "mcp" and is_error_text(use.result):
        # A client that validates results against outputSchema refuses invalid ones.
        return ConsumptionVerdict(False, use.result_seq, "absorbed")
    if verdict.consumed and not any(verdict.seq in turn.seqs for turn in derived_steps.agent_steps):
        # The agent took no step with it, so it could not react.
        return ConsumptionVerdict(False, None, "ended_before")
    return verdict


def _decide_at_boundary(
    injection: Injection, derived_steps: DerivedSteps, exchanges: Sequence[Exchange]
) -> ConsumptionVerdict:
    """Decide by the forwarded bytes; they count once a model answered them."""
    injected_data = {edit.data for edit in injection.edits}
    for exchange in exchanges:
        is_model_request = (
            exchange.seq in derived_steps.contexts
            and derived_steps.contexts[exchange.seq].kind == "model"
        )
        is_injected = injection.sham or any(edit.data in injected_data for edit in exchange.edits)
        is_later = exchange.seq >= injection.seq and is_model_request and is_injected
        if is_later and _has_model_answered(exchange, derived_steps):
            return ConsumptionVerdict(True, exchange.seq, "the model was sent the new result")
    return ConsumptionVerdict(False, None, "ended_before")


def _has_model_answered(exchange: Exchange, derived_steps: DerivedSteps) -> bool:
    """Return whether an answer came without an error, or enough of it before the client left.

    A client may leave once it has the finish, or a call, which it then makes.
    """
    response, answer = exchange.response, derived_steps.answers.get(exchange.seq)
    if response is None or response.status >= 400:
        return False
    if answer is None or not _has_client_left(exchange):
        return exchange.error is None
    uses = [derived_steps.find_use(call.id) for call in answer.calls if call.id]
    return answer.finish is not None or any(use and use.result is not None for use in uses)


def _decide_at_model(
    injection: Injection, derived_steps: DerivedSteps, exchanges: Sequence[Exchange]
) -> ConsumptionVerdict:
    """Decide by the bytes sent to the agent's client; a retried response is absorbed."""
    first_attempt = derived_steps.contexts[injection.seq].attempt_of
    first = injection.seq if first_attempt is None else first_attempt
    tries = [x for x in exchanges if first in (x.seq, derived_steps.contexts[x.seq].attempt_of)]
    last = tries[-1]
    attempts = "attempts " + ", ".join(f"{x.seq}: {_describe_attempt_status(x)}" for x in tries)
    if last.seq == injection.seq:
        received = _decode_lossy(decode_readable_body(last.response))
        complete = received == _decode_lossy(injection.mutated) and not _has_client_left(last)
        if (
            complete or injection.op == "hang"
        ):  # keep-alive bytes are no response, however many arrived
            return ConsumptionVerdict(True, last.seq, "the agent got the new answer", attempts)
        why = "ended_before" if _has_client_left(last) else "undecidable"
        return ConsumptionVerdict(
            False if _has_client_left(last) else None, last.seq, why, attempts
        )
    if last.answered_by == "fault":
        return ConsumptionVerdict(True, last.seq, "the last attempt was struck too", attempts)
    answer = derived_steps.answers.get(last.seq)
    if answer is None or answer.finish is None or _has_failed(last):
        return ConsumptionVerdict(None, last.seq, "undecidable", attempts)
    return ConsumptionVerdict(False, last.seq, "absorbed", attempts)


def _has_failed(attempt: Exchange) -> bool:
    """Return whether an attempt whose answer came to its finish failed nevertheless.

    A client may leave as soon as it has read the finish, before the stream ends: Codex does, if the
    end of the stream comes a moment later.
    """
    answer = attempt.response
    left = answer is not None and answer.status < 400 and _has_client_left(attempt)
    return is_failed_attempt(attempt) and not left


def _has_client_left(exchange: Exchange) -> bool:
    """Return whether the client closed the connection before the response was complete."""
    return (exchange.error or "").startswith("cancelled")


def _describe_attempt_status(exchange: Exchange) -> str:
    answer = exchange.response
    if answer is None:
        return (exchange.error or "no answer").partition(":")[0]
    return str(answer.status) + (" cut" if exchange.error else "")


type ConsumptionProof = Literal["introduced", "gone", "other", "late", "same"]
"""Evidence searched for in the result: introduced values, absence of removed ones, any difference
from the clean result, a delay, or the unchanged clean result."""

_PROOF: Mapping[str, ConsumptionProof] = {
    "delay": "late",
    "empty": "gone",
    "drop_rows": "gone",
    "silent_noop": "same",
    "lost_ack": "other",
}
_BY_FAMILY: Mapping[str, ConsumptionProof] = {
    "T": "other",
    "E": "other",
    "S": "introduced",
    "V": "introduced",
    "X": "other",
    "sham": "same",
}


def select_consumption_proof(injection: Injection) -> ConsumptionProof:
    """Return the proof of consumption: of a known operator, else of its family."""
    return _PROOF.get(injection.op) or _BY_FAMILY.get(injection.family, "introduced")


def _decide_in_result(
    injection: Injection, use: ToolUse, result: str, exchanges: Sequence[Exchange]
) -> ConsumptionVerdict:
    original, mutated = _decode_lossy(injection.original), _decode_lossy(injection.mutated)
    match select_consumption_proof(injection):
        case "same":
            expected = mutated if injection.family == "X" else original
            same = (
                expected is None
                or expected in result
                or bool(extract_tokens(expected) & extract_tokens(result))
            )
            return _to_consumption_verdict(same, use, _KEPT[injection.family == "X"], "absorbed")
        case "other":
            if _has_later_success(injection, use, exchanges):
                return ConsumptionVerdict(False, use.result_seq, "absorbed")
            return _to_consumption_verdict(
                result != original, use, "the error is the result", "absorbed"
            )
        case "late":
            late = _has_injected_delay(injection, use, exchanges)
            return _to_consumption_verdict(late, use, "the result came late", "absorbed")
        case "gone":
            return _decide_by_absence(original, mutated, use, result)
        case _:
            return _decide_by_presence(original, mutated, use, result)


_KEPT = {False: "the clean result is there", True: "the false acknowledgement is there"}


def _decide_by_absence(
    original: str | None, mutated: str | None, use: ToolUse, result: str
) -> ConsumptionVerdict:
    """Consumed if no removed value is in the result."""
    if original is None or mutated is None:
        return ConsumptionVerdict(None, use.result_seq, "undecidable")
    if mutated.strip() and mutated.strip() == result.strip():
        return ConsumptionVerdict(True, use.result_seq, "the corrupted value reached the model")
    lost = (
        (extract_tokens(original) | extract_field_pairs(original))
        - extract_tokens(mutated)
        - extract_field_pairs(mutated)
    )
    if not lost:
        return ConsumptionVerdict(None, use.result_seq, "undecidable")
    still = sorted(lost & (extract_tokens(result) | extract_field_pairs(result)))
    if not still:
        return ConsumptionVerdict(
            True, use.result_seq, "nothing that was left out is in the result"
        )
    # Added text of a client may share a few tokens; a result with all of them is the clean one.
    all_left = len(still) == len(lost)
    why = "absorbed" if all_left else "undecidable"
    return ConsumptionVerdict(False if all_left else None, use.result_seq, why)


def _decide_by_presence(
    original: str | None, mutated: str | None, use: ToolUse, result: str
) -> ConsumptionVerdict:
    if original is None or mutated is None:
        return ConsumptionVerdict(None, use.result_seq, "undecidable")
    if mutated.strip() and mutated.strip() in result and original not in result:
        return ConsumptionVerdict(True, use.result_seq, "the corrupted value reached the model")
    tokens, pairs = extract_tokens(result), extract_field_pairs(result)
    if shared := sorted((extract_tokens(mutated) - extract_tokens(original)) & tokens):
        return ConsumptionVerdict(True, use.result_seq, f"introduced {shared[0]} is in the result")
    # Swapped fields and an inverted boolean introduce no token of their own.
    introduced, removed = (
        extract_field_pairs(mutated) - extract_field_pairs(original),
        extract_field_pairs(original) - extract_field_pairs(mutated),
    )
    if found := sorted(introduced & pairs):
        return ConsumptionVerdict(True, use.result_seq, f"introduced {found[0]} is in the result")
    clean = (extract_tokens(original) <= tokens and original in result) or bool(
        removed and removed <= pairs
    )
    return ConsumptionVerdict(
        False if clean else None, use.result_seq, "absorbed" if clean else "undecidable"
    )


def _to_consumption_verdict(
    fact: bool | None, use: ToolUse, yes: str, no: str
) -> ConsumptionVerdict:
    why = "undecidable" if fact is None else yes if fact else no
    return ConsumptionVerdict(fact, use.result_seq, why)


def _has_later_success(injection: Injection, use: ToolUse, exchanges: Sequence[Exchange]) -> bool:
    return any(
        exchange.seq in use.seqs and exchange.seq > injection.seq and _is_tool_success(exchange)
        for exchange in exchanges
    )


def _is_tool_success(exchange: Exchange) -> bool:
    """Return whether a tool returned a result; over MCP a response 200 may contain an error."""
    answer = exchange.response
    if answer is None or answer.status >= 400:
        return False
    reply = (
        mcp.parse_mcp_reply(answer.headers, answer.body)
        if mcp.read_client_message(exchange.request)
        else None
    )
    return exchange.error is None if reply is None else reply.is_error is False


def _has_injected_delay(
    injection: Injection, use: ToolUse, exchanges: Sequence[Exchange]
) -> bool | None:
    """Return whether the target exchange took the injected time and was the last of its call."""
    target = next((x for x in exchanges if x.seq == injection.seq), None)
    ms = injection.params.get("ms", 1000)
    if target is None or not isinstance(ms, int | float):
        return None
    if use.seqs and use.seqs[-1] != injection.seq:
        return False
    if target.response is None:
        return True if _has_client_left(target) else None  # the client's time-out was shorter
    jitter = injection.params.get("jitter_ms", 0)
    early = 4 if injection.params.get("dist") == "normal" else 1
    minimum = (ms - early * (jitter if isinstance(jitter, int | float) else 0)) / 1000
    return target.response.at - target.started >= max(0.0, minimum) * 0.99


def _decode_lossy(data: bytes | None) -> str | None:
    return None if data is None else data.decode("utf-8", "replace")
