"""Opinions of a model on injections, besides the verdicts of the rules; cached, since they cost.

    .stumble/opinions/<hash of model and question>.json      the verbatim answer of the model

Each opinion is requested once; a cached one costs nothing. Every fifth case is requested again with
another wording, to measure how much of an opinion is chance.
"""

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from msgspec import Struct, field, to_builtins

from faults.judging.llm_judge import (
    JudgeAgreement,
    JudgeOpinion,
    OpinionCase,
    PromptVariant,
    make_judge_prompt,
    measure_judge_agreement,
    parse_judge_opinion,
)
from stumble.errors import UsageError
from stumble.llm.client import LitellmClient
from stumble.llm.prices import compute_token_cost
from traces.dialects.types import TokenUsage
from traces.model import Outcome

REPEAT_EVERY = 5
"""One of this many cases is requested again with another wording."""
MIN_SHAM_SHARE = 0.25
"""The share of shams below which a judge that always answers yes looks good."""


class OpinionResult(Struct, frozen=True, kw_only=True):
    """An opinion, or the reason why there is none."""

    opinion: JudgeOpinion | None
    why: str | None = None
    """Why there is no opinion."""


class CaseOpinion(Struct, frozen=True, kw_only=True):
    """A case, the verdict of the rules, and the opinions of the model."""

    case: OpinionCase
    verdict: Outcome
    sham: bool
    given: OpinionResult
    again: OpinionResult | None = None


class LlmJudge(Struct, kw_only=True):
    """Requests opinions from a model, caches them, and stops at a limit of cost or calls."""

    name: str
    folder: Path
    most_usd: float | None = None
    most_calls: int | None = None
    spent: float = 0.0
    calls: int = 0
    stopped: str | None = None
    _model: LitellmClient | None = field(default=None)

    def __post_init__(self) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        one_token = TokenUsage(prompt_tokens=1, completion_tokens=1)
        if self.most_calls is None and compute_token_cost(self.name, one_token) is None:
            raise UsageError(
                f"no price is known for {self.name}, so that its cost cannot be held down; "
                "say --max-calls N"
            )

    async def ask(
        self, case: OpinionCase, variant: PromptVariant = "plain"
    ) -> OpinionResult | None:
        """Return the opinion of the model; None if a limit is reached."""
        body = json.dumps(
            {"model": self.name, **make_judge_prompt(case, variant)}, sort_keys=True
        ).encode()
        cached = self.folder / f"{hashlib.sha256(body).hexdigest()[:32]}.json"
        if cached.exists():
            return _parse_opinion(case, json.loads(cached.read_text())["answer"])
        if self._is_exhausted():
            return None
        self._model = self._model or LitellmClient(self.name, timeout=120)
        reply = await self._model.ask("openai_chat", body)
        self.calls += 1
        if reply.answer is None:
            return OpinionResult(opinion=None, why=reply.error or "no answer came")
        usage = reply.answer.usage
        cost = compute_token_cost(self.name, usage) if usage else None
        self.spent += cost or 0.0
        text = reply.answer.message
        part = cached.with_suffix(".part")
        part.write_text(json.dumps({"model": self.name, "answer": text, "cost_usd": cost}))
        part.replace(cached)
        return _parse_opinion(case, text)

    def _is_exhausted(self) -> bool:
        if self.most_calls is not None and self.calls >= self.most_calls:
            self.stopped = f"after {self.calls} calls"
        elif self.most_usd is not None and self.spent >= self.most_usd:
            self.stopped = f"after {self.spent:.4f} USD"
        return self.stopped is not None


def _parse_opinion(case: OpinionCase, text: str) -> OpinionResult:
    try:
        return OpinionResult(opinion=parse_judge_opinion(case, text))
    except ValueError as error:
        return OpinionResult(opinion=None, why=str(error))


async def collect_opinions(
    referee: LlmJudge, cases: Iterable[tuple[OpinionCase, Outcome, bool]]
) -> tuple[CaseOpinion, ...]:
    """Collect opinions on cases, in the order of hashed ids, until the judge stops.

    Each case has the verdict of the rules, and whether it is a sham.
    """
    opinions: list[CaseOpinion] = []
    shuffled = sorted(cases, key=lambda each: _hash_case_id(each[0].injection_id))
    for case, verdict, sham in shuffled:
        first = await referee.ask(case)
        if first is None:
            break
        second = None
        if int(_hash_case_id(case.injection_id), 16) % REPEAT_EVERY == 0:
            second = await referee.ask(case, "again")
        opinions.append(
            CaseOpinion(case=case, verdict=verdict, sham=sham, given=first, again=second)
        )
    return tuple(opinions)


def _hash_case_id(id: str) -> str:
    return hashlib.sha256(id.encode()).hexdigest()


class LlmJudgeReport(Struct, frozen=True, kw_only=True):
    """Agreement of a model's opinions; they enter no rate."""

    model: str
    cases: int
    refused: Mapping[str, int]
    """Number of invalid answers, by reason."""
    shams: int
    shams_told: int
    """Shams with a valid opinion."""
    false_alarms: int
    """Shams that the model judged as noticed by the agent."""
    with_rules: JudgeAgreement
    with_itself: JudgeAgreement
    with_labels: JudgeAgreement | None
    calls: int
    spent_usd: float
    stopped: str | None

    def to_lines(self) -> Iterable[str]:
        """Format the report as lines."""
        yield f"{self.model} judged {self.cases} injections, {self.shams} of them shams"
        for why, count in self.refused.items():
            yield f"  {count} answers do not count: {why}"
        yield f"  false alarms: {self.false_alarms} of {self.shams_told} shams"
        if self.cases and self.shams / self.cases < MIN_SHAM_SHARE:
            yield "  fewer than a quarter are shams: little is known of its false alarms"
        for name, agreement in (
            ("the hard signals", self.with_rules),
            ("itself, asked in other words", self.with_itself),
            ("the labels", self.with_labels),
        ):
            if agreement is not None:
                yield (
                    f"  with {name}: {agreement.cases} cases, kappa "
                    f"{_format_two_decimals(agreement.kappa)}, "
                    f"sensitivity {_format_two_decimals(agreement.sensitivity)}, "
                    f"specificity {_format_two_decimals(agreement.specificity)}"
                )
        yield f"  {self.calls} calls, {self.spent_usd:.4f} USD; none of this enters a rate"
        if self.stopped:
            yield f"  stopped {self.stopped}: the rest was not judged"


def summarize_opinions(
    referee: LlmJudge, heard: Sequence[CaseOpinion], labels: Mapping[str, bool] | None = None
) -> LlmJudgeReport:
    """Measure the agreement of the opinions with rules, themselves and labels."""
    refused: dict[str, int] = {}
    for each in heard:
        if each.given.why is not None:
            refused[each.given.why] = refused.get(each.given.why, 0) + 1
    counted = [(each, each.given.opinion) for each in heard if each.given.opinion is not None]
    shams = [opinion for each, opinion in counted if each.sham]
    return LlmJudgeReport(
        model=referee.name,
        cases=len(heard),
        refused=refused,
        shams=sum(each.sham for each in heard),
        shams_told=len(shams),
        false_alarms=sum(opinion.noticed for opinion in shams),
        with_rules=measure_judge_agreement(
            (opinion.noticed, each.verdict.noticed)
            for each, opinion in counted
            if each.verdict.noticed is not None
        ),
        with_itself=measure_judge_agreement(
            (opinion.noticed, each.again.opinion.noticed)
            for each, opinion in counted
            if each.again is not None and each.again.opinion is not None
        ),
        with_labels=None
        if labels is None
        else measure_judge_agreement(
            (opinion.noticed, labels[each.case.injection_id])
            for each, opinion in counted
            if each.case.injection_id in labels
        ),
        calls=referee.calls,
        spent_usd=referee.spent,
        stopped=referee.stopped,
    )


def opinions_to_dict(found: LlmJudgeReport, heard: Sequence[CaseOpinion]) -> dict[str, object]:
    """Return the report and each opinion as plain data."""
    report: dict[str, object] = to_builtins(found)
    return report | {
        "opinions": [
            {
                "injection_id": each.case.injection_id,
                "sham": each.sham,
                "rules": each.verdict.noticed,
                "why": each.given.why,
                **(to_builtins(each.given.opinion) if each.given.opinion else {}),
            }
            for each in heard
        ]
    }


def _format_two_decimals(value: float | None) -> str:
    return "unknown" if value is None else f"{value:.2f}"
