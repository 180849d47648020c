"""What a model does next with a tool result, clean and struck: no agent, one request.

The recorded request that carries the struck result goes to a model as it was (clean) and as the
nemesis would have sent it (faulted), k times each. What is compared is the next action: the tool
calls of the answer, or that it is final. The difference between the two groups is tested by
permutation: how often shuffled labels part the actions at least as far.
"""

import asyncio
import json
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from math import comb
from random import Random
from typing import Literal

from faults.armed import Armed
from faults.nemesis import Nemesis
from stumble.forks import Branch
from stumble.models import KEPT, Asked
from stumble.prices import price
from traces.conversation import Watch, canonical_arguments
from traces.dialects import lens
from traces.encoding import plain
from traces.model import Exchange, Injection
from traces.step import Answer, Usage
from traces.story import over

type Group = Literal["clean", "faulted"]

EXACT = 20_000
"""Up to so many ways to shuffle the labels, all are tried; beyond, this many are drawn."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """The two forms of one recorded model request."""

    dialect: str
    clean: bytes
    faulted: bytes
    injection: Injection
    recorded: Answer | None
    """What the model answered when it was recorded."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """One answer; `action` None where the model gave none, and `error` says why."""

    group: Group
    action: str | None
    text: str = ""
    repeats: bool = False
    """True where the struck call is made again with the same arguments."""
    usage: Usage | None = None
    cost_usd: float | None = None
    error: str | None = None


def question(found: Branch, seed: int) -> Question:
    """The recorded request with the struck result, as it was and as the fault leaves it.

    LookupError where no recorded request carries the result, ValueError where the fault cannot
    bend it or the request says only what is new (`previous_response_id`).
    """
    use = found.told.use(found.site.call_id)
    if use is None or use.result_seq is None:
        raise LookupError(f"no recorded request tells the model what {found.site.tool} returned")
    watch, injected = Watch(found.recording.trajectory.tools), list[Injection]()
    site = replace(found.site, place="model-boundary")
    nemesis = Nemesis(
        [Armed(fault=each.fault, site=site) for each in found.armed if each.site],
        watch,
        injected.append,
        run="probe",
        trace=found.recording.trajectory.id,
        seed=seed,
        background=found.background,
        seen=found.seen,
    )
    for exchange in _until(found.recording.exchanges, use.result_seq):
        asked = watch.request(replace(exchange, response=None, error=None, edits=()))
        sent = nemesis.request(asked)
        if exchange.seq == use.result_seq:
            return _question(found, exchange, sent, injected, nemesis.no_site)
        watch.done(exchange)
    raise LookupError(f"exchange {use.result_seq} is not on the tape")


def _until(exchanges: Sequence[Exchange], last: int) -> list[Exchange]:
    """What was over before the last began, and the last."""
    [final] = [exchange for exchange in exchanges if exchange.seq == last]
    before = [x for x in exchanges if x.seq != last and over(x) <= final.started]
    return [*sorted(before, key=lambda x: x.started), final]


def _question(
    found: Branch,
    exchange: Exchange,
    sent: Exchange,
    injected: Sequence[Injection],
    no_site: Sequence[str],
) -> Question:
    if not injected:
        raise ValueError(f"{found.fault.name} cannot bend it: {'; '.join(no_site) or 'no site'}")
    request = exchange.request
    dialect = lens(request)
    assert dialect is not None
    if dialect.NAME not in KEPT:
        raise ValueError(f"a request in the dialect {dialect.NAME} cannot be asked of a model here")
    clean = plain(request.headers, request.body) or b""
    if b'"previous_response_id"' in clean and json.loads(clean).get("previous_response_id"):
        raise ValueError("the recorded request says only what is new (previous_response_id)")
    return Question(
        dialect=dialect.NAME,
        clean=clean,
        faulted=plain(request.headers, sent.forwarded.body) or b"",
        injection=injected[-1],
        recorded=found.told.answers.get(exchange.seq),
    )


def estimate(asked: Question, model: str) -> float | None:
    """US dollars that one answer may cost; None where the model's price is not known.

    Counts are those of the recorded answer, else four bytes a token and 500 tokens of answer.
    """
    usage = asked.recorded.usage if asked.recorded else None
    prompt = usage.prompt_tokens if usage else None
    completion = usage.completion_tokens if usage else None
    guess = Usage(
        prompt_tokens=len(asked.clean) // 4 if prompt is None else prompt,
        completion_tokens=500 if completion is None else completion,
    )
    return price(model, guess)


async def probe(
    question: Question,
    ask: Callable[[bytes], Awaitable[Asked]],
    *,
    model: str,
    k: int,
    parallel: int,
    most_usd: float | None,
    seen: Callable[[Sample], object],
) -> list[Sample]:
    """k clean and k faulted answers, in turns; fewer where the money runs out."""
    each, gate = estimate(question, model) or 0.0, asyncio.Semaphore(parallel)
    samples: list[Sample] = []
    promised = 0.0

    async def one(group: Group) -> None:
        nonlocal promised
        async with gate:
            spent = sum(sample.cost_usd or 0.0 for sample in samples)
            if most_usd is not None and spent + promised + each > most_usd:
                return
            promised += each
            try:
                said = await ask(question.clean if group == "clean" else question.faulted)
            finally:
                promised -= each
            samples.append(_sample(question, group, said, model))
            seen(samples[-1])

    order: list[Group] = [group for _ in range(k) for group in ("clean", "faulted")]
    async with asyncio.TaskGroup() as tasks:
        for group in order:
            tasks.create_task(one(group))
    return samples


def _sample(question: Question, group: Group, said: Asked, model: str) -> Sample:
    answer = said.answer
    if answer is None:
        return Sample(group=group, action=None, error=said.error or "no answer")
    struck = question.injection
    again = (struck.tool, canonical_arguments(struck.arguments or ""))
    calls = [(call.name, canonical_arguments(call.arguments)) for call in answer.calls]
    return Sample(
        group=group,
        action=action(answer),
        text=answer.message,
        repeats=again in calls,
        usage=answer.usage,
        cost_usd=price(model, answer.usage) if answer.usage else None,
    )


def action(answer: Answer) -> str:
    """The tool calls of an answer in canonical form, or `final answer`."""
    calls = [f"{call.name}({canonical_arguments(call.arguments)})" for call in answer.calls]
    return " + ".join(calls) or "final answer"


def tally(samples: Iterable[Sample]) -> Mapping[str, Counter[Group]]:
    """How often each action was taken in each group, the most frequent first."""
    counts: dict[str, Counter[Group]] = {}
    for sample in samples:
        if sample.action is not None:
            counts.setdefault(sample.action, Counter())[sample.group] += 1
    return dict(sorted(counts.items(), key=lambda item: -item[1].total()))


def distance(clean: Sequence[str], faulted: Sequence[str]) -> float:
    """Total variation distance of two groups of actions: 0 the same, 1 nothing in common."""
    one, two = Counter(clean), Counter(faulted)
    return sum(abs(one[a] / len(clean) - two[a] / len(faulted)) for a in {*one, *two}) / 2


def p_value(clean: Sequence[str], faulted: Sequence[str], seed: int = 0) -> float | None:
    """The permutation test of `distance`; None where a group has no answer.

    Exact where there are few enough ways to shuffle, else (hits + 1) / (draws + 1) over draws
    from the seed (Phipson and Smyth 2010).
    """
    if not clean or not faulted:
        return None
    both, n = [*clean, *faulted], len(clean)
    here = distance(clean, faulted) - 1e-12
    ways = comb(len(both), n)
    if ways <= EXACT:
        return (
            sum(_apart(both, chosen) >= here for chosen in combinations(range(len(both)), n)) / ways
        )
    rng = Random(seed)
    draws = (rng.sample(range(len(both)), n) for _ in range(EXACT))
    return (1 + sum(_apart(both, chosen) >= here for chosen in draws)) / (EXACT + 1)


def _apart(both: Sequence[str], chosen: Iterable[int]) -> float:
    first = set(chosen)
    return distance(
        [both[i] for i in first], [each for i, each in enumerate(both) if i not in first]
    )
