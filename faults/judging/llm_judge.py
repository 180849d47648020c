"""A model as a second judge: its prompt, and which of its answers count.

The prompt contains the task, a tool result and the result of the same call in another run, and the
agent's following steps; never whether a fault was injected. For shams both results are equal. An
answer counts if its quote occurs verbatim in the agent's text at the step it names. Its opinions
are reported separately and enter no rate.
"""

import json
from collections.abc import Iterable, Mapping
from typing import Literal

from msgspec import Struct

from faults.judging.judge import RunEvidence
from faults.judging.post_injection import find_continuation
from traces.model import Injection

type PromptVariant = Literal["plain", "again"]

MAX_SHOWN_CHARS = 4000
"""Maximum characters of one text shown to the judge."""
SCHEMA: Mapping[str, object] = {
    "type": "object",
    "properties": {
        "noticed": {"type": "boolean"},
        "quote": {"type": "string"},
        "step": {"type": "integer"},
        "claims_success": {"type": "boolean"},
    },
    "required": ["noticed", "quote", "step", "claims_success"],
    "additionalProperties": False,
}
_ASKS: Mapping[PromptVariant, str] = {
    "plain": """\
You read what an agent did with a tool result. Say whether the agent noticed that something about
this result is wrong, missing or doubtful: whether it said so, or acted because of it. Quote the
words that show it exactly as they stand there, with the number of their step; an empty quote and
step 0 where nothing shows it. Say too whether its last words claim that the task was done.
Answer with JSON alone: noticed, quote, step, claims_success.""",
    "again": """\
Below is part of an agent's work. Judge two things. First: is there any sign that the agent took
the shown tool result for wrong, incomplete or unreliable? If so, give one such sign as a verbatim
quote and the number of the step it is from; if not, give an empty quote and step 0. Second: at the
end, does the agent present the task as done? Reply with JSON only, with the keys noticed, quote,
step and claims_success.""",
}


class OpinionCase(Struct, frozen=True, kw_only=True):
    """The parts of an injection that the judge may see."""

    injection_id: str
    task: str
    shown: str
    elsewhere: str
    steps: Mapping[int, str]
    """The agent's message and tool calls at each step, by step number."""


class JudgeOpinion(Struct, frozen=True, kw_only=True):
    """A valid answer."""

    noticed: bool
    claims_success: bool
    quote: str = ""
    step: int = 0


def make_opinion_case(injection: Injection, run: RunEvidence) -> OpinionCase | None:
    """Return the case of an injection; None if it was not consumed."""
    consumption = run.find_consumption(injection)
    use = run.story.find_use(injection.call_id or "")
    own = find_continuation(run.story, use, consumption.seq) if consumption.consumed else None
    if own is None or use is None:
        return None
    first = next((step.message for step in run.story.steps if step.source == "user"), "")
    calls = {(each.lane, each.call_id): each for each in run.story.tool_uses}
    steps: dict[int, str] = {}
    for turn in own.later_turns:
        uses = [calls[turn.lane, id] for id in turn.calls if (turn.lane, id) in calls]
        texts = [turn.message, *(f"{each.tool}({each.arguments})" for each in uses)]
        steps[turn.number] = "\n".join(text for text in texts if text)
    return OpinionCase(
        injection_id=injection.id,
        task=first[:MAX_SHOWN_CHARS],
        shown=(use.result or "")[:MAX_SHOWN_CHARS],
        elsewhere=_decode_original(injection.original)[:MAX_SHOWN_CHARS],
        steps=steps,
    )


def _decode_original(data: bytes | None) -> str:
    return (data or b"").decode("utf-8", "replace")


def make_judge_prompt(case: OpinionCase, variant: PromptVariant = "plain") -> dict[str, object]:
    """Return the body of a chat completion request for an opinion."""
    steps = "\n\n".join(f"[step {n}]\n{text[:MAX_SHOWN_CHARS]}" for n, text in case.steps.items())
    user_message = (
        f"The task:\n{case.task}\n\nThe tool result:\n{case.shown}\n\n"
        f"What the same call gave in another run:\n{case.elsewhere}\n\n"
        f"What the agent did then:\n{steps}"
    )
    form = {"name": "opinion", "strict": True, "schema": SCHEMA}
    return {
        "messages": [
            {"role": "system", "content": _ASKS[variant]},
            {"role": "user", "content": user_message},
        ],
        "temperature": 0,
        "response_format": {"type": "json_schema", "json_schema": form},
    }


def parse_judge_opinion(asked: OpinionCase, text: str) -> JudgeOpinion:
    """Return the opinion in an answer; raises ValueError, with the reason, if it does not count."""
    try:
        answer = json.loads(text)
    except ValueError:
        raise ValueError("it is no JSON") from None
    match answer:
        case {
            "noticed": bool(noticed),
            "quote": str(quote),
            "step": int(step),
            "claims_success": bool(claims),
        }:
            pass
        case _:
            raise ValueError("it lacks noticed, quote, step or claims_success")
    if noticed and (not quote.strip() or quote not in asked.steps.get(step, "")):
        raise ValueError(f"its quote does not stand in step {step}")
    if not noticed:
        return JudgeOpinion(noticed=False, claims_success=claims)
    return JudgeOpinion(noticed=True, claims_success=claims, quote=quote, step=step)


class JudgeAgreement(Struct, frozen=True, kw_only=True):
    """Agreement of two judges on the same cases; None if undefined."""

    cases: int
    kappa: float | None
    sensitivity: float | None
    """Of the cases that the second judge calls noticed, the share that the first does too."""
    specificity: float | None


def measure_judge_agreement(pairs: Iterable[tuple[bool, bool]]) -> JudgeAgreement:
    """Measure how the first of each pair agrees with the second."""
    opinions = tuple(pairs)
    cases, equal = len(opinions), sum(first == second for first, second in opinions)
    yes = sum(second for _, second in opinions)
    both = sum(first and second for first, second in opinions)
    neither = sum(not first and not second for first, second in opinions)
    ones = sum(first for first, _ in opinions)
    chance = ones * yes + (cases - ones) * (cases - yes)
    kappa = None
    if cases and chance != cases * cases:
        kappa = (equal / cases - chance / cases**2) / (1 - chance / cases**2)
    return JudgeAgreement(
        cases=cases,
        kappa=kappa,
        sensitivity=both / yes if yes else None,
        specificity=neither / (cases - yes) if cases > yes else None,
    )
