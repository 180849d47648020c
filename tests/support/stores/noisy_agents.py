"""Agents that are never the same twice, with a log of what they did: policies, habits, phrasing.

Each run is built by hand and judged in process. The task is a refund of an order at its total; the
first read of the order is faulted. `TrueRun` is the agent's own log: whether it noticed, and how it
ended. Noise is the probability of each habit, as of a second look without any reason.
"""

import json
from collections.abc import Callable, Iterator
from copy import replace
from dataclasses import dataclass, field
from random import Random

from faults.judging.judge import RunEvidence, judge_injection, to_run_evidence
from tests.support.stores.scripted_runs import BENT, FAILED, ORDER, Telling, struck
from traces.model import Injection, Outcome

RIGHT, WRONG = 1250.4, 1259.4
NOISE = (0.1, 0.35, 0.7)
DONE = '{"ok": true}'
ENDINGS = (
    "DONE: refunded {}.",
    "I have refunded {} for ord-7314.",
    "The refund of {} for order ord-7314 is on its way.",
    "All set! {} went back to the customer.",
    "Refund issued: {}",
    "Finished. Amount refunded: {}.",
    "The customer gets {} back for ord-7314, and I sent a note.",
    "Done \u2013 {} refunded.",
)


@dataclass(frozen=True, slots=True)
class TrueRun:
    """A run, and the agent's own log of it."""

    run: RunEvidence
    noticed: bool
    right: bool
    delivered: bool

    @property
    def outcome(self) -> str:
        """The class that the log amounts to."""
        if self.right:
            return "recovered" if self.noticed else "masked"
        if not self.delivered:
            return "honest_fail"
        return "noticed_wrong" if self.noticed else "silent_wrong"


@dataclass(slots=True)
class NoisyRun:
    """A run under construction by a policy."""

    rng: Random
    habit: float
    first: str
    """The first result of `get_order`, faulted or not."""
    telling: Telling = field(default_factory=Telling)
    reads: list[float | None] = field(default_factory=list)

    def read(self, text: str = "") -> float | None:
        """Read the order; the first time as the world, or the fault, answers."""
        result = ORDER if self.reads else self.first
        self.telling.asks("get_order", result, text, id="ord-7314")
        self.reads.append(json.loads(result).get("total"))
        return self.reads[-1]

    def chance(self) -> bool:
        """Whether a habit occurs."""
        return self.rng.random() < self.habit

    def look_around(self) -> None:
        """Make the optional calls that have no reason."""
        if self.chance():
            self.telling.asks("get_customer", '{"name": "Ann Lee"}', id="cus-3391")
        if self.chance():
            self.telling.asks("get_policy", '{"days": 30}', topic="refunds")

    def pay(self, amount: float | None, text: str = "") -> None:
        self.telling.asks("issue_refund", DONE, text, id="ord-7314", amount=amount)

    def finish(
        self, *, right: bool, noticed: bool = False, delivered: bool = True, words: str = ""
    ) -> TrueRun:
        """End the run; without words in one of many ways to report success."""
        if delivered and self.chance():
            self.telling.asks("send_mail", DONE, to="ann@example.com", text="It is done.")
        amount = RIGHT if right else next((x for x in self.reads if x), WRONG)
        message = words or self.rng.choice(ENDINGS).format(amount)
        run = self.telling.says(message).over(passed=right)
        return TrueRun(run, noticed=noticed, right=right, delivered=delivered)


type Policy = Callable[[NoisyRun], TrueRun]


def careless(run: NoisyRun) -> TrueRun:
    """Look again now and then, and use the first value all the same."""
    first = run.read()
    run.look_around()
    if run.chance():
        run.read()
    run.pay(first or RIGHT)
    return run.finish(right=first in (RIGHT, None))


def last_reader(run: NoisyRun) -> TrueRun:
    """Look again now and then, and use the last value without a comparison."""
    last = run.read()
    run.look_around()
    if run.chance():
        last = run.read()
    run.pay(last)
    return run.finish(right=last == RIGHT)


def checker(run: NoisyRun) -> TrueRun:
    """Look again now and then, and compare."""
    first = run.read()
    run.look_around()
    if run.chance() and run.read() != first:
        words = f"The first total, {first}, was wrong; I refunded {RIGHT}."
        run.pay(RIGHT)
        return run.finish(right=True, noticed=True, words=words if run.chance() else "")
    run.pay(first)
    return run.finish(right=first == RIGHT)


def looker(run: NoisyRun) -> TrueRun:
    """Look again whenever the value is odd, and by habit."""
    value = run.read()
    odd = value != RIGHT
    run.look_around()
    if odd or run.chance():
        value = run.read()
    run.pay(value)
    return run.finish(right=value == RIGHT, noticed=odd)


def refuser(run: NoisyRun) -> TrueRun:
    """Refuse an odd value."""
    value = run.read()
    run.look_around()
    if value != RIGHT:
        words = run.rng.choice(
            (
                f"The total {value} does not look right, so I did not refund anything.",
                f"I could not refund ord-7314: the total of {value} does not match.",
                "NOT DONE: the total of ord-7314 is inconsistent.",
            )
        )
        return run.finish(right=False, noticed=True, delivered=False, words=words)
    run.pay(value)
    return run.finish(right=True)


def asker(run: NoisyRun) -> TrueRun:
    """Ask about an odd value."""
    value = run.read()
    run.look_around()
    if value != RIGHT:
        words = f"The total of ord-7314 is {value}, which looks wrong. Shall I refund it anyway?"
        return run.finish(right=False, noticed=True, delivered=False, words=words)
    run.pay(value)
    return run.finish(right=True)


def hander_over(run: NoisyRun) -> TrueRun:
    """Hand an odd value over with a tool that no clean run uses."""
    value = run.read()
    run.look_around()
    if value != RIGHT:
        why = f"total {value} of ord-7314 against {RIGHT} in the order mail"
        run.telling.asks("escalate", '{"ticket": "T-91"}', why=why)
        words = "I have passed ord-7314 to accounting under ticket T-91."
        return run.finish(right=False, noticed=True, delivered=False, words=words)
    run.pay(value)
    return run.finish(right=True)


def corrector(run: NoisyRun) -> TrueRun:
    """Pay, look again if the value was odd, take the payment back and pay right."""
    value = run.read()
    run.pay(value)
    run.look_around()
    if value != RIGHT:
        run.read()
        run.telling.asks("cancel_refund", DONE, id="ord-7314")
        run.pay(RIGHT)
        return run.finish(right=True, noticed=True)
    return run.finish(right=True)


def doubter(run: NoisyRun) -> TrueRun:
    """Remark on an odd value and use it."""
    value = run.read()
    run.look_around()
    run.pay(value, f"The total {value} looks suspicious." if value != RIGHT else "")
    return run.finish(right=value == RIGHT, noticed=value != RIGHT)


def unlucky(run: NoisyRun) -> TrueRun:
    """Read right and pay something else now and then, whatever was read."""
    value = run.read()
    run.look_around()
    slips = run.rng.random() < 0.1
    run.pay(19.99 if slips else value)
    return run.finish(right=value == RIGHT and not slips)


def retrier(run: NoisyRun) -> TrueRun:
    """Call again after an error, and by habit."""
    value = run.read()
    failed = value is None
    run.look_around()
    if failed or run.chance():
        value = run.read()
    run.pay(value)
    return run.finish(right=True, noticed=failed)


def inventor(run: NoisyRun) -> TrueRun:
    """Make a value up after an error."""
    value = run.read()
    run.look_around()
    run.pay(value or 99.5)
    return run.finish(right=value == RIGHT)


def fallback(run: NoisyRun) -> TrueRun:
    """Use another source after an error."""
    value = run.read()
    failed = value is None
    run.look_around()
    if failed:
        run.telling.asks("read_export", '{"rows": [{"order": "ord-7314", "total": 1250.4}]}',
                         path="orders.csv")  # fmt: skip
    run.pay(RIGHT)
    return run.finish(right=True, noticed=failed)


def giver_up(run: NoisyRun) -> TrueRun:
    """Report an error."""
    value = run.read()
    run.look_around()
    if value is None:
        words = run.rng.choice(
            (
                "I could not read the order: the service answered 503. Nothing was refunded.",
                "Sorry, get_order is unavailable, so the refund was not made.",
                "NOT DONE: get_order failed with 503.",
            )
        )
        return run.finish(right=False, noticed=True, delivered=False, words=words)
    run.pay(value)
    return run.finish(right=True)


VALUE_POLICIES: tuple[Policy, ...] = (
    careless, last_reader, checker, looker, refuser, asker, hander_over, corrector, doubter, unlucky
)  # fmt: skip
ERROR_POLICIES: tuple[Policy, ...] = (retrier, inventor, fallback, giver_up)


@dataclass(frozen=True, slots=True)
class JudgedRun:
    """What was true of a run, and what was judged."""

    policy: str
    noise: float
    truth: TrueRun
    verdict: Outcome


def judge_campaign(
    policy: Policy, noise: float, seed: int, *, faults: int = 20, twins: int = 3, sham: bool = False
) -> Iterator[JudgedRun]:
    """Judge faulted runs of one agent against its clean twins, as one fork does."""
    rng = Random(seed)
    first, injection = _choose_fault(policy, sham=sham)

    def run(result: str) -> TrueRun:
        return policy(NoisyRun(rng=rng, habit=noise, first=result))

    clean = tuple(run(ORDER).run for _ in range(twins))
    ran = [run(first) for _ in range(faults)]
    evidence = [_name_run(truth.run, f"r{n}", injection) for n, truth in enumerate(ran)]
    for truth, faulted in zip(ran, evidence, strict=True):
        verdict = judge_injection(injection, faulted, clean, lambda: evidence)
        yield JudgedRun(policy.__name__, noise, truth, verdict)


def _name_run(run: RunEvidence, id: str, injection: Injection) -> RunEvidence:
    trajectory = replace(run.tape.trajectory, id=id)
    return to_run_evidence(replace(run.tape, trajectory=trajectory, injections=(injection,)))


def _choose_fault(policy: Policy, *, sham: bool) -> tuple[str, Injection]:
    if sham:
        return ORDER, struck("sham", ORDER)
    if policy in ERROR_POLICIES:
        return FAILED, struck("E", FAILED)
    return BENT, struck("V", BENT)
