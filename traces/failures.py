"""Why a stage of a pipeline was not passed: the first of seven causes that there is evidence for.

infrastructure  the grader failed, the agent could not be started, or a file was missing that
                nobody had asked the agent for
context         the last question to the model was refused as too long
provider        the last question failed otherwise: a status of 400 or more, no answer
budget          calls, tokens, dollars or time were used up
tooling         the last tool call failed, or the program that was handed in
planning        the agent ended by itself, and did nothing, or said that something is left undone
reasoning       it did its work, and the result is wrong

A stage in which no question was answered fails of what ended the one before it, where that was
context, provider or budget. The signs are English words and exit codes; where they are others, a
stage counts further down the list.
"""

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Literal

type Cause = Literal[
    "infrastructure", "context", "provider", "budget", "tooling", "planning", "reasoning"
]
CAUSES: tuple[Cause, ...] = (
    "infrastructure",
    "context",
    "provider",
    "budget",
    "tooling",
    "planning",
    "reasoning",
)
LASTING: frozenset[Cause] = frozenset(("context", "provider", "budget"))
"""What does not go away by itself before the next stage."""

PASSED = 60.0
"""The score from which a stage is passed."""

KEPT = 300
"""How many characters of a text are kept as evidence."""
NOT_STARTED = (126, 127)
TIMED_OUT = 124

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


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """One question to a model and how it ended; `text` is what was said where it failed."""

    seq: int
    status: int | None = None
    error: str | None = None
    text: str = ""
    refused: bool = False
    """Whether we refused it, because a budget was used up."""

    @property
    def failed(self) -> bool:
        return self.error is not None or self.status is None or self.status >= 400


@dataclass(frozen=True, slots=True, kw_only=True)
class Used:
    """One call of a tool, and what came of it."""

    seq: int
    tool: str
    arguments: str = ""
    result: str = ""
    is_error: bool | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """What happened in one stage, each list in the order of time."""

    stage: str
    score: float | None
    outcome: str | None = None
    exit: int | None = None
    budget: str | None = None
    asked: tuple[Asked, ...] = ()
    used: tuple[Used, ...] = ()
    said: str = ""
    """The last words of the model."""
    said_seq: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """A cause with what proves it: which exchange, which text, or of which stage it is left."""

    cause: Cause
    text: str
    seq: int | None = None
    since: str | None = None

    @property
    def evidence(self) -> str:
        """As JSON, without what is not known."""
        found = {"seq": self.seq, "text": self.text[:KEPT], "since": self.since}
        return json.dumps({name: value for name, value in found.items() if value is not None})


def failures(attempts: Iterable[Attempt], passed: float) -> Mapping[str, Failure]:
    """The cause of each stage with a score under `passed` or none, by the stage's name.

    A stage in which nothing was seen of the agent has none, where nothing else shows one.
    """
    found: dict[str, Failure] = {}
    before: Failure | None = None
    for attempt in attempts:
        fails = attempt.score is None or attempt.score < passed
        here = _failure(attempt, before) if fails else None
        if here is not None:
            found[attempt.stage] = here
        before = here and (here if here.since else _since(here, attempt.stage))
    return found


def of_words(text: str) -> Failure:
    """The cause of a run that a provider's error ended, by the words of the error alone."""
    cause: Cause = "context" if _TOO_LONG.search(text) else "provider"
    return Failure(cause=cause, text=text)


def by_end(ended: Failure, at: str, scores: Mapping[str, float | None]) -> Mapping[str, Failure]:
    """The causes where only the end of a run is known: at that stage, and at all after it.

    What is not passed before that stage has no cause that could be known.
    """
    return {
        stage: ended if stage == at else _since(ended, at)
        for stage, score in scores.items()
        if stage >= at and score is not None and score < PASSED
    }


def _since(failure: Failure, stage: str) -> Failure:
    return Failure(cause=failure.cause, text=failure.text, seq=failure.seq, since=stage)


def _failure(attempt: Attempt, before: Failure | None) -> Failure | None:
    idle = all(each.failed for each in attempt.asked)
    lasting = before if before and before.cause in LASTING and idle and not attempt.used else None
    order = (
        _infrastructure(attempt),
        _context(attempt),
        _provider(attempt),
        lasting,
        _budget(attempt),
        _tooling(attempt),
        _planning(attempt),
    )
    found = next((each for each in order if each), None)
    if found is not None or not (attempt.asked or attempt.used):
        return found
    return Failure(
        cause="reasoning", text=f"the score is {attempt.score:.1f}", seq=attempt.said_seq
    )


def _infrastructure(attempt: Attempt) -> Failure | None:
    if attempt.outcome == "infrastructure_error" or attempt.score is None:
        return Failure(cause="infrastructure", text="the grader failed")
    if attempt.exit in NOT_STARTED and not attempt.asked:
        return Failure(cause="infrastructure", text=f"the agent ended with {attempt.exit}")
    named = " ".join(each.arguments for each in attempt.used)
    for each in reversed(attempt.used[-2:]):
        missing = _MISSING.search(each.result)
        if missing and missing[1] not in named:
            return Failure(cause="infrastructure", text=_around(each.result, missing), seq=each.seq)
    return None


def _context(attempt: Attempt) -> Failure | None:
    last = attempt.asked[-1] if attempt.asked else None
    long = _TOO_LONG.search(last.text) if last and last.failed and not last.refused else None
    if last is None or long is None:
        return None
    return Failure(cause="context", text=_around(last.text, long), seq=last.seq)


def _provider(attempt: Attempt) -> Failure | None:
    last = attempt.asked[-1] if attempt.asked else None
    if last is None or not last.failed or last.refused:
        return None
    said = last.text or last.error or "no answer"
    return Failure(cause="provider", text=f"{last.status or ''} {said}".strip(), seq=last.seq)


def _budget(attempt: Attempt) -> Failure | None:
    refused = next((each.seq for each in attempt.asked if each.refused), None)
    if attempt.budget or refused is not None or attempt.outcome == "not_attempted":
        text = f"the budget of {attempt.budget or 'the run'} was used up"
        return Failure(cause="budget", text=text, seq=refused)
    if attempt.exit == TIMED_OUT:
        return Failure(cause="budget", text=f"the agent ended with {TIMED_OUT}")
    return None


def _tooling(attempt: Attempt) -> Failure | None:
    last = attempt.used[-1] if attempt.used else None
    if last is not None:
        broken = _BROKEN.search(last.result)
        if last.is_error or broken:
            text = _around(last.result, broken) if broken else last.result
            return Failure(cause="tooling", text=text, seq=last.seq)
    if attempt.outcome == "agent_error":
        return Failure(cause="tooling", text="the program that was handed in failed")
    return None


def _planning(attempt: Attempt) -> Failure | None:
    if attempt.asked and not attempt.used:
        text = attempt.said or "no tool was called"
        return Failure(cause="planning", text=text, seq=attempt.said_seq)
    left = _LEFT.search(attempt.said)
    if left:
        return Failure(cause="planning", text=_around(attempt.said, left), seq=attempt.said_seq)
    return None


def _around(text: str, found: re.Match[str]) -> str:
    """What stands around the words that were found."""
    start = max(0, found.start() - KEPT // 3)
    return text[start : start + KEPT].strip()
