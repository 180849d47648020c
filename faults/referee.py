"""A model as a second judge: what it is asked, and which of its answers count.

It is told the task, a tool result beside what the same call gave in another run, and what the agent
did from there; never whether anything was struck. Of shams both results are the same. An answer
counts if its quote stands, letter for letter, in what the agent said at the step that it names.
Its opinions are kept apart and enter no rate.
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Literal

from faults.after import after
from faults.consumption import consumption
from faults.judge import Run
from traces.model import Injection

type Variant = Literal["plain", "again"]

MOST = 4000
"""Characters of one text that the judge is shown."""
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
_ASKS: Mapping[Variant, str] = {
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """What the judge may see of one injection."""

    injection_id: str
    task: str
    shown: str
    elsewhere: str
    steps: Mapping[int, str]
    """What the agent said and asked at each step, by its number."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Opinion:
    """An answer that counts."""

    noticed: bool
    claims_success: bool
    quote: str = ""
    step: int = 0


def case(injection: Injection, run: Run) -> Case | None:
    """The case of an injection; None where it was not consumed, so that there is nothing to see."""
    found = consumption(injection, run.story, run.tape.exchanges)
    use = run.story.use(injection.call_id or "")
    own = after(run.story, use, found.seq) if found.consumed else None
    if own is None or use is None:
        return None
    first = next((step.message for step in run.story.steps if step.source == "user"), "")
    calls = {(each.lane, each.call_id): each for each in run.story.uses}
    steps: dict[int, str] = {}
    for turn in own.later:
        asked = [calls[turn.lane, id] for id in turn.calls if (turn.lane, id) in calls]
        said = [turn.message, *(f"{each.tool}({each.arguments})" for each in asked)]
        steps[turn.number] = "\n".join(text for text in said if text)
    return Case(
        injection_id=injection.id,
        task=first[:MOST],
        shown=(use.result or "")[:MOST],
        elsewhere=_text(injection.original)[:MOST],
        steps=steps,
    )


def _text(data: bytes | None) -> str:
    return (data or b"").decode("utf-8", "replace")


def question(case: Case, variant: Variant = "plain") -> dict[str, object]:
    """The body of a chat completion that asks for an opinion."""
    steps = "\n\n".join(f"[step {n}]\n{said[:MOST]}" for n, said in case.steps.items())
    told = (
        f"The task:\n{case.task}\n\nThe tool result:\n{case.shown}\n\n"
        f"What the same call gave in another run:\n{case.elsewhere}\n\n"
        f"What the agent did then:\n{steps}"
    )
    form = {"name": "opinion", "strict": True, "schema": SCHEMA}
    return {
        "messages": [
            {"role": "system", "content": _ASKS[variant]},
            {"role": "user", "content": told},
        ],
        "temperature": 0,
        "response_format": {"type": "json_schema", "json_schema": form},
    }


def opinion(asked: Case, text: str) -> Opinion:
    """The opinion that an answer gives; ValueError, with the reason, where it does not count."""
    try:
        said = json.loads(text)
    except ValueError:
        raise ValueError("it is no JSON") from None
    match said:
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
        return Opinion(noticed=False, claims_success=claims)
    return Opinion(noticed=True, claims_success=claims, quote=quote, step=step)


@dataclass(frozen=True, slots=True, kw_only=True)
class Agreement:
    """How two judges of the same cases agree; None where that cannot be told."""

    cases: int
    kappa: float | None
    sensitivity: float | None
    """Of those that the second calls noticed, the share that the first does too."""
    specificity: float | None


def agreement(pairs: Iterable[tuple[bool, bool]]) -> Agreement:
    """How the first of each pair agrees with the second."""
    said = tuple(pairs)
    cases, same = len(said), sum(one == two for one, two in said)
    yes = sum(two for _, two in said)
    hit = sum(one and two for one, two in said)
    calm = sum(not one and not two for one, two in said)
    ones = sum(one for one, _ in said)
    chance = ones * yes + (cases - ones) * (cases - yes)
    kappa = None
    if cases and chance != cases * cases:
        kappa = (same / cases - chance / cases**2) / (1 - chance / cases**2)
    return Agreement(
        cases=cases,
        kappa=kappa,
        sensitivity=hit / yes if yes else None,
        specificity=calm / (cases - yes) if cases > yes else None,
    )
