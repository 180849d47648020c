"""Failure causes of a pipeline stage: the first of seven for which there is evidence.

infrastructure  the grader failed, the agent could not be started, or a file was missing that no
                tool call of the agent had named
context         the last model request was refused as too long
provider        the last model request failed otherwise: a status of 400 or more, no response; or
                the built-in agent sent none and ended as if its provider had refused it
budget          calls, tokens, dollars or time were used up
tooling         the last tool call failed, or the submitted program did, or it scored less than the
                one that the agent was given
planning        the agent ended by itself, without any action or announcing unfinished work
reasoning       it did its work, and the result is wrong

A stage without an answered model request inherits the failure of the stage before it if that was
context, provider or budget. The evidence is English words and exit codes; with other ones, a stage
gets a later cause of the list.
"""

import json
import re
from collections.abc import Iterable, Mapping
from copy import replace
from typing import Literal

from msgspec import Struct

type FailureCause = Literal[
    "infrastructure", "context", "provider", "budget", "tooling", "planning", "reasoning"
]
FAILURE_CAUSES: tuple[FailureCause, ...] = (
    "infrastructure",
    "context",
    "provider",
    "budget",
    "tooling",
    "planning",
    "reasoning",
)
LASTING_CAUSES: frozenset[FailureCause] = frozenset(("context", "provider", "budget"))
"""Causes that do not disappear by themselves before the next stage."""

PASSING_SCORE = 60.0
"""Minimum score of a passed stage."""

MAX_EVIDENCE_CHARS = 300
"""Maximum characters of a text stored as evidence."""
NOT_STARTED_EXITS = (126, 127)
PROVIDER_EXIT = 5
"""Of the built-in agent, whose client can fail before it sends a request: without a key."""
OUTAGE_STATUSES = frozenset((None, 401, 402, 403, 408, 429))
"""No answer, no right to one, or too many requests; from 500 on the provider failed."""
TIMEOUT_EXIT = 124

_TOO_LONG = re.compile(
    r"(?i)input length|context.?(length|window)|maximum context|prompt is too long"
    r"|too many (input )?tokens|input token count|exceeds? the (maximum|model'?s)[^.]{0,40}tokens"
    r"|reduce the length of the (messages|prompt)"
)
_MISSING = re.compile(r"fatal error: '?([^\s:']+)'?:? (?:No such file|file not found)")
_BROKEN = re.compile(
    r"(?im)^\s*(error\b|.*\berror:|traceback \(most recent|.*: command not found|make: \*\*\*"
    r"|(missing|invalid|unexpected|required)\b.*\b(parameter|argument))"
    r"|\bexit(ed)?( code| status|:)?( with)? [1-9]|returncode\D{0,4}[1-9]"
)
_LEFT = re.compile(
    r"(?i)\b(skip(ping|ped)?|move on|moving on|not (yet )?implement|unimplemented|incomplete"
    r"|partial(ly)?|left (undone|for later)|remaining work|next step would|give up|giving up"
    r"|unable to|could not (finish|complete)|cannot (finish|complete)|ran out of time)\b"
)


class ModelCallOutcome(Struct, frozen=True, kw_only=True):
    """One model request and its result; `text` is the body of an error response."""

    seq: int
    status: int | None = None
    error: str | None = None
    text: str = ""
    refused: bool = False
    """Whether the proxy refused it because a budget was used up."""

    @property
    def has_failed(self) -> bool:
        return self.error is not None or self.status is None or self.status >= 400


class ToolCallOutcome(Struct, frozen=True, kw_only=True):
    """One tool call and its result."""

    seq: int
    tool: str
    arguments: str = ""
    result: str = ""
    is_error: bool | None = None


class StageAttempt(Struct, frozen=True, kw_only=True):
    """The events of one stage; lists are in order of time."""

    stage: str
    score: float | None
    is_builtin: bool = False
    """Whether the agent is stumble's own, whose exit codes are known."""
    outcome: str | None = None
    exit: int | None = None
    budget: str | None = None
    model_calls: tuple[ModelCallOutcome, ...] = ()
    tool_calls: tuple[ToolCallOutcome, ...] = ()
    last_message: str = ""
    """The model's last text."""
    last_message_seq: int | None = None


class StageFailure(Struct, frozen=True, kw_only=True):
    """A cause with its evidence: exchange and text, or the stage from which it persists."""

    cause: FailureCause
    text: str
    seq: int | None = None
    since_stage: str | None = None
    outage: bool = False
    """Whether no request of the agent can have caused it: the stage says nothing of the agent."""

    @property
    def evidence(self) -> str:
        """As JSON, without unknown fields."""
        fields = {
            "seq": self.seq,
            "text": self.text[:MAX_EVIDENCE_CHARS],
            "since": self.since_stage,
        }
        return json.dumps({name: value for name, value in fields.items() if value is not None})


def find_failure_causes(
    attempts: Iterable[StageAttempt], passed: float
) -> Mapping[str, StageFailure]:
    """Map each stage with a score under `passed`, or without one, to its failure cause.

    A stage without any trace of the agent has no cause unless other evidence shows one. Only the
    built-in agent, or one that got no answer in the whole run, has outages: any other could send a
    request that fails, and so choose to have no score.
    """
    attempts = list(attempts)
    failures: dict[str, StageFailure] = {}
    previous: StageFailure | None = None
    answered = any(not call.has_failed for each in attempts for call in each.model_calls)
    for attempt in attempts:
        fails = attempt.score is None or attempt.score < passed
        failure = _find_stage_failure(attempt, previous) if fails else None
        if failure is not None:
            failure = replace(
                failure, outage=failure.outage and (attempt.is_builtin or not answered)
            )
            failures[attempt.stage] = failure
        previous = failure and (
            failure if failure.since_stage else _carry_failure(failure, attempt.stage)
        )
    return failures


def classify_provider_error(text: str) -> StageFailure:
    """Classify a provider error that ended a run, by its text alone."""
    cause: FailureCause = "context" if _TOO_LONG.search(text) else "provider"
    return StageFailure(cause=cause, text=text)


def spread_final_failure(
    ended: StageFailure, at: str, scores: Mapping[str, float | None]
) -> Mapping[str, StageFailure]:
    """Map failed stages to causes if only the end of a run is known: that stage and all later ones.

    Failed stages before it have no known cause.
    """
    return {
        stage: ended if stage == at else _carry_failure(ended, at)
        for stage, score in scores.items()
        if stage >= at and score is not None and score < PASSING_SCORE
    }


def find_spoilt_programs(
    scores: Mapping[str, float | None], untouched: Mapping[str, float]
) -> Mapping[str, StageFailure]:
    """Map the failed stages that score less than half of an untouched program, which they no longer
    are: what was handed in does not build, or not run.
    """
    return {
        stage: StageFailure(
            cause="tooling", text=f"{score:g}, where the untouched program has {untouched[stage]:g}"
        )
        for stage, score in scores.items()
        if score is not None and score < PASSING_SCORE and score < untouched.get(stage, 0) / 2
    }


def _carry_failure(failure: StageFailure, stage: str) -> StageFailure:
    return replace(failure, since_stage=stage)


def _find_stage_failure(attempt: StageAttempt, before: StageFailure | None) -> StageFailure | None:
    idle = all(each.has_failed for each in attempt.model_calls)
    lasting = (
        before
        if before and before.cause in LASTING_CAUSES and idle and not attempt.tool_calls
        else None
    )
    candidates = (
        _find_infrastructure_failure(attempt),
        _find_context_failure(attempt),
        _find_provider_failure(attempt),
        lasting,
        _find_budget_failure(attempt),
        _find_tooling_failure(attempt),
        _find_planning_failure(attempt),
    )
    failure = next((each for each in candidates if each), None)
    if failure is not None or not (attempt.model_calls or attempt.tool_calls):
        return failure
    return StageFailure(
        cause="reasoning", text=f"the score is {attempt.score:.1f}", seq=attempt.last_message_seq
    )


def _find_infrastructure_failure(attempt: StageAttempt) -> StageFailure | None:
    if attempt.outcome == "infrastructure_error" or attempt.score is None:
        return StageFailure(cause="infrastructure", text="the grader failed")
    if attempt.exit in NOT_STARTED_EXITS and not attempt.model_calls:
        return StageFailure(cause="infrastructure", text=f"the agent ended with {attempt.exit}")
    arguments = " ".join(each.arguments for each in attempt.tool_calls)
    for each in reversed(attempt.tool_calls[-2:]):
        missing = _MISSING.search(each.result)
        if missing and missing[1] not in arguments:
            return StageFailure(
                cause="infrastructure", text=_quote_match(each.result, missing), seq=each.seq
            )
    return None


def _find_context_failure(attempt: StageAttempt) -> StageFailure | None:
    last = attempt.model_calls[-1] if attempt.model_calls else None
    overflow = (
        _TOO_LONG.search(last.text) if last and last.has_failed and not last.refused else None
    )
    if last is None or overflow is None:
        return None
    return StageFailure(cause="context", text=_quote_match(last.text, overflow), seq=last.seq)


def _find_provider_failure(attempt: StageAttempt) -> StageFailure | None:
    last = attempt.model_calls[-1] if attempt.model_calls else None
    if last is None and attempt.is_builtin and attempt.exit == PROVIDER_EXIT:
        text = f"the agent ended with {PROVIDER_EXIT}, without a model request"
        return StageFailure(cause="provider", text=text, outage=True)
    if last is None or not last.has_failed or last.refused:
        return None
    reason = last.text or last.error or "no answer"
    return StageFailure(
        cause="provider",
        text=f"{last.status or ''} {reason}".strip(),
        seq=last.seq,
        outage=last.status in OUTAGE_STATUSES or (last.status or 0) >= 500,
    )


def _find_budget_failure(attempt: StageAttempt) -> StageFailure | None:
    refused = next((each.seq for each in attempt.model_calls if each.refused), None)
    if attempt.budget or refused is not None or attempt.outcome == "not_attempted":
        text = f"the budget of {attempt.budget or 'the run'} was used up"
        return StageFailure(cause="budget", text=text, seq=refused)
    if attempt.exit == TIMEOUT_EXIT:
        return StageFailure(cause="budget", text=f"the agent ended with {TIMEOUT_EXIT}")
    return None


def _find_tooling_failure(attempt: StageAttempt) -> StageFailure | None:
    last = attempt.tool_calls[-1] if attempt.tool_calls else None
    if last is not None:
        broken = _BROKEN.search(last.result)
        if last.is_error or broken:
            text = _quote_match(last.result, broken) if broken else last.result
            return StageFailure(cause="tooling", text=text, seq=last.seq)
    if attempt.outcome == "agent_error":
        return StageFailure(cause="tooling", text="the program that was handed in failed")
    return None


def _find_planning_failure(attempt: StageAttempt) -> StageFailure | None:
    if attempt.model_calls and not attempt.tool_calls:
        text = attempt.last_message or "no tool was called"
        return StageFailure(cause="planning", text=text, seq=attempt.last_message_seq)
    unfinished = _LEFT.search(attempt.last_message)
    if unfinished:
        return StageFailure(
            cause="planning",
            text=_quote_match(attempt.last_message, unfinished),
            seq=attempt.last_message_seq,
        )
    return None


def _quote_match(text: str, found: re.Match[str]) -> str:
    """Return the text around a match."""
    start = max(0, found.start() - MAX_EVIDENCE_CHARS // 3)
    return text[start : start + MAX_EVIDENCE_CHARS].strip()
