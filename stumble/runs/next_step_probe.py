"""The next step of a model after a clean and a faulted tool result: one request, no agent.

The recorded request with the faulted result is sent to a model as recorded (clean) and as the
injector would have sent it (faulted), k times each. The next actions are compared: the tool calls
of the answer, or that it is final. The difference between the two groups is tested by permutation:
the share of shuffled labels with a distance at least as large.
"""

import asyncio
import json
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from copy import replace
from itertools import combinations
from math import comb
from random import Random
from typing import Literal

from msgspec import Struct

from faults.injector.injector import FaultInjector, RunSeeds
from faults.targeting.bound_fault import BoundFault
from stumble.llm.client import MODEL_REQUEST_FIELDS, ModelReply
from stumble.llm.prices import compute_token_cost
from stumble.runs.fork import ForkPoint
from traces.bodies.content_encoding import decode_content, read_content
from traces.conversation.derived_steps import find_answer_end
from traces.conversation.tracker import ConversationTap, canonicalize_arguments
from traces.dialects import find_dialect
from traces.dialects.types import ModelAnswer, TokenUsage
from traces.model import Exchange, Injection

type ProbeGroup = Literal["clean", "faulted"]

MAX_EXACT_SHUFFLES = 20_000
"""Up to this many ways to shuffle the labels all are tried; beyond, this many are drawn."""


class ProbeQuestion(Struct, frozen=True, kw_only=True):
    """The two forms of one recorded model request."""

    dialect: str
    clean: bytes
    faulted: bytes
    injection: Injection
    recorded: ModelAnswer | None
    """The recorded answer of the model."""


class ProbeSample(Struct, frozen=True, kw_only=True):
    """One answer; `action` is None, and `error` the reason, if the model gave none."""

    group: ProbeGroup
    action: str | None
    text: str = ""
    repeats: bool = False
    """Whether the faulted call is repeated with the same arguments."""
    usage: TokenUsage | None = None
    cost_usd: float | None = None
    error: str | None = None


def build_probe_question(found: ForkPoint, seed: int) -> ProbeQuestion:
    """Return the recorded request with the targeted result, clean and faulted.

    Raises LookupError if no recorded request has the result, ValueError if the fault cannot change
    it or the request has only the new items (`previous_response_id`).
    """
    use = found.derived_steps.find_use(found.site.call_id)
    if use is None or use.result_seq is None or use.is_of_program:
        raise LookupError(f"no recorded request tells the model what {found.site.tool} returned")
    tap, injected = ConversationTap(found.recording.trajectory.tools), list[Injection]()
    site = replace(found.site, place="model-boundary")
    injector = FaultInjector(
        [BoundFault(fault=each.fault, site=site) for each in found.bound_faults if each.site],
        tap,
        injected.append,
        seeds=RunSeeds(run="probe", trace=found.recording.trajectory.id, seed=seed),
        background=found.background,
        seen=found.observations,
    )
    for exchange in _select_exchanges_until(found.recording.exchanges, use.result_seq):
        request = tap.request(replace(exchange, response=None, error=None, edits=()))
        sent = injector.request(request)
        if exchange.seq == use.result_seq:
            return _question_from_exchanges(found, exchange, sent, injected, injector.no_site)
        tap.done(exchange)
    raise LookupError(f"exchange {use.result_seq} is not on the tape")


def _select_exchanges_until(exchanges: Sequence[Exchange], last: int) -> list[Exchange]:
    """Return the exchanges that ended before the last began, and the last."""
    [final] = [exchange for exchange in exchanges if exchange.seq == last]
    before = [x for x in exchanges if x.seq != last and find_answer_end(x) <= final.started]
    return [*sorted(before, key=lambda x: x.started), final]


def _question_from_exchanges(
    found: ForkPoint,
    exchange: Exchange,
    sent: Exchange,
    injected: Sequence[Injection],
    no_site: Sequence[str],
) -> ProbeQuestion:
    if not injected:
        raise ValueError(f"{found.fault.name} cannot bend it: {'; '.join(no_site) or 'no site'}")
    request = exchange.request
    dialect = find_dialect(request)
    assert dialect is not None
    if dialect.NAME not in MODEL_REQUEST_FIELDS:
        raise ValueError(f"a request in the dialect {dialect.NAME} cannot be asked of a model here")
    clean = read_content(request)
    if b'"previous_response_id"' in clean and json.loads(clean).get("previous_response_id"):
        raise ValueError("the recorded request says only what is new (previous_response_id)")
    return ProbeQuestion(
        dialect=dialect.NAME,
        clean=clean,
        faulted=decode_content(request.headers, sent.forwarded.body) or b"",
        injection=injected[-1],
        recorded=found.derived_steps.answers.get(exchange.seq),
    )


def estimate_answer_cost(asked: ProbeQuestion, model: str) -> float | None:
    """Return the expected cost of one answer in US dollars; None if the price is unknown.

    Counts are those of the recorded answer, else four bytes per token and 500 tokens of answer.
    """
    usage = asked.recorded.usage if asked.recorded else None
    prompt = usage.prompt_tokens if usage else None
    completion = usage.completion_tokens if usage else None
    guess = TokenUsage(
        prompt_tokens=len(asked.clean) // 4 if prompt is None else prompt,
        completion_tokens=500 if completion is None else completion,
    )
    return compute_token_cost(model, guess)


async def sample_next_steps(
    question: ProbeQuestion,
    ask: Callable[[bytes], Awaitable[ModelReply]],
    *,
    model: str,
    k: int,
    parallel: int,
    most_usd: float | None,
    seen: Callable[[ProbeSample], object],
) -> list[ProbeSample]:
    """Return k clean and k faulted answers, alternating; fewer if `most_usd` is reached."""
    each, gate = estimate_answer_cost(question, model) or 0.0, asyncio.Semaphore(parallel)
    samples: list[ProbeSample] = []
    promised = 0.0

    async def one(group: ProbeGroup) -> None:
        nonlocal promised
        async with gate:
            spent = sum(sample.cost_usd or 0.0 for sample in samples)
            if most_usd is not None and spent + promised + each > most_usd:
                return
            promised += each
            try:
                reply = await ask(question.clean if group == "clean" else question.faulted)
            finally:
                promised -= each
            samples.append(_build_probe_sample(question, group, reply, model))
            seen(samples[-1])

    order: list[ProbeGroup] = [group for _ in range(k) for group in ("clean", "faulted")]
    async with asyncio.TaskGroup() as tasks:
        for group in order:
            tasks.create_task(one(group))
    return samples


def _build_probe_sample(
    question: ProbeQuestion, group: ProbeGroup, said: ModelReply, model: str
) -> ProbeSample:
    answer = said.answer
    if answer is None:
        return ProbeSample(group=group, action=None, error=said.error or "no answer")
    injection = question.injection
    repeated_call = (injection.tool, canonicalize_arguments(injection.arguments or ""))
    calls = [(call.name, canonicalize_arguments(call.arguments)) for call in answer.calls]
    return ProbeSample(
        group=group,
        action=to_canonical_action(answer),
        text=answer.message,
        repeats=repeated_call in calls,
        usage=answer.usage,
        cost_usd=compute_token_cost(model, answer.usage) if answer.usage else None,
    )


def to_canonical_action(answer: ModelAnswer) -> str:
    """Return the tool calls of an answer in canonical form, or `final answer`."""
    calls = [f"{call.name}({canonicalize_arguments(call.arguments)})" for call in answer.calls]
    return " + ".join(calls) or "final answer"


def count_actions(samples: Iterable[ProbeSample]) -> Mapping[str, Counter[ProbeGroup]]:
    """Count each action in each group, the most frequent first."""
    counts: dict[str, Counter[ProbeGroup]] = {}
    for sample in samples:
        if sample.action is not None:
            counts.setdefault(sample.action, Counter())[sample.group] += 1
    return dict(sorted(counts.items(), key=lambda item: -item[1].total()))


def measure_action_distance(clean: Sequence[str], faulted: Sequence[str]) -> float:
    """Return the total variation distance of two groups of actions: 0 equal, 1 disjoint."""
    clean_counts, faulted_counts = Counter(clean), Counter(faulted)
    return (
        sum(
            abs(clean_counts[a] / len(clean) - faulted_counts[a] / len(faulted))
            for a in {*clean_counts, *faulted_counts}
        )
        / 2
    )


def compute_permutation_p_value(
    clean: Sequence[str], faulted: Sequence[str], seed: int = 0
) -> float | None:
    """Return p of the permutation test of `measure_action_distance`; None if a group is empty.

    Exact up to MAX_EXACT_SHUFFLES ways to shuffle, else (hits + 1) / (draws + 1) over draws
    from the seed (Phipson and Smyth 2010).
    """
    if not clean or not faulted:
        return None
    actions, n = [*clean, *faulted], len(clean)
    observed = measure_action_distance(clean, faulted) - 1e-12
    ways = comb(len(actions), n)
    if ways <= MAX_EXACT_SHUFFLES:
        return (
            sum(
                _measure_split_distance(actions, chosen) >= observed
                for chosen in combinations(range(len(actions)), n)
            )
            / ways
        )
    rng = Random(seed)
    draws = (rng.sample(range(len(actions)), n) for _ in range(MAX_EXACT_SHUFFLES))
    return (1 + sum(_measure_split_distance(actions, chosen) >= observed for chosen in draws)) / (
        MAX_EXACT_SHUFFLES + 1
    )


def _measure_split_distance(both: Sequence[str], chosen: Iterable[int]) -> float:
    first = set(chosen)
    return measure_action_distance(
        [both[i] for i in first], [each for i, each in enumerate(both) if i not in first]
    )
