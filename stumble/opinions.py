"""The opinions of a model on injections, beside the verdicts of the rules; kept, since they cost.

    .stumble/opinions/<hash of model and question>.json      what the model answered, word for word

An opinion is asked for once; one that is kept costs nothing. Every fifth case is asked about twice,
in other words, so that it shows how much of an opinion is chance.
"""

import csv
import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

from faults.referee import Agreement, Case, Opinion, Variant, agreement, opinion, question
from stumble.exits import Wrong
from stumble.models import Model
from stumble.prices import price
from traces.model import Outcome
from traces.step import Usage

TWICE = 5
"""Of how many cases one is asked about in other words as well."""
SHAMS = 0.25
"""The share of shams under which a judge that says yes to all looks good."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Given:
    """What came of one question."""

    opinion: Opinion | None
    why: str | None = None
    """Why there is no opinion."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Heard:
    """A case, the verdict of the rules, and what the model thinks of it."""

    case: Case
    verdict: Outcome
    sham: bool
    given: Given
    again: Given | None = None


@dataclass(slots=True, kw_only=True)
class Referee:
    """Asks a model, keeps what it said, and stops before it has cost too much."""

    name: str
    folder: Path
    most_usd: float | None = None
    most_calls: int | None = None
    spent: float = 0.0
    calls: int = 0
    stopped: str | None = None
    _model: Model | None = field(default=None)

    def __post_init__(self) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        one = Usage(prompt_tokens=1, completion_tokens=1)
        if self.most_calls is None and price(self.name, one) is None:
            raise Wrong(
                f"no price is known for {self.name}, so that its cost cannot be held down; "
                "say --max-calls N"
            )

    async def ask(self, case: Case, variant: Variant = "plain") -> Given | None:
        """What the model thinks; None where asking would cost too much."""
        body = json.dumps({"model": self.name, **question(case, variant)}, sort_keys=True).encode()
        kept = self.folder / f"{hashlib.sha256(body).hexdigest()[:32]}.json"
        if kept.exists():
            return _given(case, json.loads(kept.read_text())["answer"])
        if self._full():
            return None
        self._model = self._model or Model(self.name, timeout=120)
        said = await self._model.ask("openai_chat", body)
        self.calls += 1
        if said.answer is None:
            return Given(opinion=None, why=said.error or "no answer came")
        usage = said.answer.usage
        cost = price(self.name, usage) if usage else None
        self.spent += cost or 0.0
        text = said.answer.message
        aside = kept.with_suffix(".part")
        aside.write_text(json.dumps({"model": self.name, "answer": text, "cost_usd": cost}))
        aside.replace(kept)
        return _given(case, text)

    def _full(self) -> bool:
        if self.most_calls is not None and self.calls >= self.most_calls:
            self.stopped = f"after {self.calls} calls"
        elif self.most_usd is not None and self.spent >= self.most_usd:
            self.stopped = f"after {self.spent:.4f} USD"
        return self.stopped is not None


def _given(case: Case, text: str) -> Given:
    try:
        return Given(opinion=opinion(case, text))
    except ValueError as error:
        return Given(opinion=None, why=str(error))


async def hear(referee: Referee, cases: Iterable[tuple[Case, Outcome, bool]]) -> tuple[Heard, ...]:
    """The opinions on cases with their verdicts and whether each is a sham, in an order that says
    nothing: until the referee stops."""
    heard: list[Heard] = []
    mixed = sorted(cases, key=lambda each: _hash(each[0].injection_id))
    for case, verdict, sham in mixed:
        given = await referee.ask(case)
        if given is None:
            break
        again = None
        if int(_hash(case.injection_id), 16) % TWICE == 0:
            again = await referee.ask(case, "again")
        heard.append(Heard(case=case, verdict=verdict, sham=sham, given=given, again=again))
    return tuple(heard)


def _hash(id: str) -> str:
    return hashlib.sha256(id.encode()).hexdigest()


@dataclass(frozen=True, slots=True, kw_only=True)
class Account:
    """How a model judges: never part of any rate."""

    model: str
    cases: int
    refused: Mapping[str, int]
    """Answers that do not count, by why."""
    shams: int
    shams_told: int
    """Shams of which there is an opinion that counts."""
    false_alarms: int
    """Those of them that it calls noticed."""
    with_rules: Agreement
    with_itself: Agreement
    with_labels: Agreement | None
    calls: int
    spent_usd: float
    stopped: str | None

    def lines(self) -> Iterable[str]:
        """The account in words."""
        yield f"{self.model} judged {self.cases} injections, {self.shams} of them shams"
        for why, count in self.refused.items():
            yield f"  {count} answers do not count: {why}"
        yield f"  false alarms: {self.false_alarms} of {self.shams_told} shams"
        if self.cases and self.shams / self.cases < SHAMS:
            yield "  fewer than a quarter are shams: little is known of its false alarms"
        for name, found in (
            ("the hard signals", self.with_rules),
            ("itself, asked in other words", self.with_itself),
            ("the labels", self.with_labels),
        ):
            if found is not None:
                yield (
                    f"  with {name}: {found.cases} cases, kappa {_two(found.kappa)}, "
                    f"sensitivity {_two(found.sensitivity)}, "
                    f"specificity {_two(found.specificity)}"
                )
        yield f"  {self.calls} calls, {self.spent_usd:.4f} USD; none of this enters a rate"
        if self.stopped:
            yield f"  stopped {self.stopped}: the rest was not judged"


def account(
    referee: Referee, heard: Sequence[Heard], labels: Mapping[str, bool] | None = None
) -> Account:
    """What the opinions are worth."""
    refused: dict[str, int] = {}
    for each in heard:
        if each.given.why is not None:
            refused[each.given.why] = refused.get(each.given.why, 0) + 1
    counted = [(each, each.given.opinion) for each in heard if each.given.opinion is not None]
    shams = [said for each, said in counted if each.sham]
    return Account(
        model=referee.name,
        cases=len(heard),
        refused=refused,
        shams=sum(each.sham for each in heard),
        shams_told=len(shams),
        false_alarms=sum(said.noticed for said in shams),
        with_rules=agreement(
            (said.noticed, each.verdict.noticed)
            for each, said in counted
            if each.verdict.noticed is not None
        ),
        with_itself=agreement(
            (said.noticed, each.again.opinion.noticed)
            for each, said in counted
            if each.again is not None and each.again.opinion is not None
        ),
        with_labels=None
        if labels is None
        else agreement(
            (said.noticed, labels[each.case.injection_id])
            for each, said in counted
            if each.case.injection_id in labels
        ),
        calls=referee.calls,
        spent_usd=referee.spent,
        stopped=referee.stopped,
    )


def labels(path: Path) -> dict[str, bool]:
    """What people said: a CSV file with the columns injection_id and noticed (true or false)."""
    with path.open(newline="", encoding="utf-8") as file:
        reader = csv.DictReader(file)
        missing = {"injection_id", "noticed"} - set(reader.fieldnames or ())
        if missing:
            raise Wrong(f"{path}: the column {sorted(missing)[0]} is missing")
        found = {}
        for number, row in enumerate(reader, start=2):
            said = (row["noticed"] or "").strip().lower()
            if said not in _SAID:
                raise Wrong(f"{path}: line {number}: noticed is {said!r}, not true or false")
            found[row["injection_id"]] = _SAID[said]
    return found


_SAID = {"true": True, "1": True, "yes": True, "false": False, "0": False, "no": False}


def said(found: Account, heard: Sequence[Heard]) -> dict[str, object]:
    """The account and each opinion as plain data."""
    return asdict(found) | {
        "opinions": [
            {
                "injection_id": each.case.injection_id,
                "sham": each.sham,
                "rules": each.verdict.noticed,
                "why": each.given.why,
                **(asdict(each.given.opinion) if each.given.opinion else {}),
            }
            for each in heard
        ]
    }


def _two(value: float | None) -> str:
    return "unknown" if value is None else f"{value:.2f}"
