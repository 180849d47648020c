"""Stage attempts: the facts on a tape that explain why a pipeline stage failed."""

from collections.abc import Iterable, Iterator, Mapping

from traces.bodies.content_encoding import decode_content
from traces.conversation.derived_steps import DerivedSteps
from traces.model import Exchange
from traces.pipeline.failure_causes import (
    MAX_EVIDENCE_CHARS,
    ModelCallOutcome,
    StageAttempt,
    ToolCallOutcome,
)

_READ = 65536
"""Maximum bytes of an error response that are read."""


def collect_stage_attempts(
    rows: Iterable[Mapping[str, object]],
    exchanges: Iterable[Exchange],
    derived_steps: DerivedSteps,
    *,
    is_builtin: bool,
) -> Iterator[StageAttempt]:
    """Yield one attempt per row of `stages`, with the model and tool calls of that stage."""
    model_exchanges = [x for x in exchanges if derived_steps.contexts[x.seq].kind == "model"]
    for row in rows:
        stage = str(row["stage"])
        requests = [x for x in model_exchanges if derived_steps.contexts[x.seq].stage == stage]
        replies = [
            x.seq
            for x in requests
            if x.seq in derived_steps.answers and derived_steps.answers[x.seq].message
        ]
        score, code = row.get("score"), row.get("agent_exit")
        outcome, budget = row.get("outcome"), row.get("budget")
        yield StageAttempt(
            stage=stage,
            score=score if isinstance(score, float | int) else None,
            is_builtin=is_builtin,
            outcome=str(outcome) if outcome else None,
            exit=code if isinstance(code, int) else None,
            budget=str(budget) if budget else None,
            model_calls=tuple(_to_model_call_outcome(x) for x in requests),
            tool_calls=tuple(
                ToolCallOutcome(
                    seq=use.result_seq if use.result_seq is not None else use.asked_by,
                    tool=use.tool,
                    arguments=use.arguments,
                    result=use.result or "",
                    is_error=use.is_error,
                )
                for use in derived_steps.tool_uses
                if use.stage == stage
            ),
            last_message=derived_steps.answers[replies[-1]].message if replies else "",
            last_message_seq=replies[-1] if replies else None,
        )


def _to_model_call_outcome(exchange: Exchange) -> ModelCallOutcome:
    answer = exchange.response
    failed = answer is not None and answer.status >= 400
    text = (
        (decode_content(answer.headers, answer.body) or b"")[:_READ] if answer and failed else b""
    )
    return ModelCallOutcome(
        seq=exchange.seq,
        status=answer.status if answer else None,
        error=exchange.error,
        text=text.decode("utf-8", "replace")[: 10 * MAX_EVIDENCE_CHARS],
        refused=exchange.answered_by == "refused",
    )
