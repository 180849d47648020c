"""Run events from a run's command: written to the tape, with budgets counted and enforced."""

from collections.abc import Callable, Mapping
from copy import replace
from typing import Protocol, runtime_checkable

from msgspec import Struct

from recorder.run_events import RunEventData
from stumble.llm.prices import compute_token_cost
from traces.clock import RunClock
from traces.conversation.tracker import ConversationTap, ExchangeContext
from traces.model import Chunk, Exchange, Response, RunEvent, find_header
from traces.tape.writer import TapeWriter

BUDGET_STATUS = 402
"""Payment Required: no client asks again after it."""
BUDGET_HEADER = "x-stumble-budget"
BUDGET_KINDS = ("dollars", "calls", "tokens", "seconds")
OF_RUN = frozenset(("dollars",))
"""Those that count for the whole run, also where a stage has a budget of its own."""


class BudgetUsage(Struct, eq=False):
    """What the agents of a run, or of one stage of it, have used so far."""

    calls: int = 0
    tokens: int = 0
    dollars: float | None = 0.0
    """None once the price of an answer was not known."""
    seconds: float = 0.0

    def add(self, other: "BudgetUsage") -> None:
        """Add another usage to this one."""
        self.calls += other.calls
        self.tokens += other.tokens
        unknown = self.dollars is None or other.dollars is None
        self.dollars = None if unknown else (self.dollars or 0.0) + (other.dollars or 0.0)
        self.seconds += other.seconds


@runtime_checkable
class RunEventListener(Protocol):
    """Receives run events in addition to the tape."""

    def on_run_event(self, mark: RunEvent) -> None: ...


def find_event_listeners(*those: object) -> tuple[RunEventListener, ...]:
    """Return the objects that receive run events."""
    return tuple(each for each in those if isinstance(each, RunEventListener))


class BudgetTap:
    """The tap that refuses a model's answers once a budget is used up, and takes in marks.

    The budgets are those that the mark of a stage says, for that stage or for the whole run, that
    of dollars always for the run; a
    refusal is an answer on the tape, so a replay is refused at the same request, and there the
    recorded one stands for the clock, which only a live run is told by.
    """

    def __init__(
        self,
        watch: ConversationTap,
        tape: TapeWriter,
        *,
        began: float,
        run: str,
        timed: bool = True,
        strict: bool = True,
        also: tuple[RunEventListener, ...] = (),
    ) -> None:
        self._watch, self._tape, self._timed = watch, tape, timed
        self._clock, self._run, self._also = RunClock(began), run, also
        self._strict = strict
        self.most_events: int | None = None
        """Of a recording that was cut, how many it has; at the next one `reach_cut` is called."""
        self.reach_cut: Callable[[], object] = lambda: None
        self.say: Callable[[str], object] = lambda word: None
        self._limits: Mapping[str, float] = {}
        self._stage, self._whole = BudgetUsage(), BudgetUsage()
        self._before = BudgetUsage()
        """What was used before this stage."""
        self._of_run = False
        self._since: float | None = None
        self._asked: dict[int, ExchangeContext] = {}
        self.marks: list[RunEvent] = []

    # Run events.

    def handle_run_event(self, name: str, data: RunEventData) -> RunEventData:
        """Keep a fact on the tape; the answer says what was spent, and what is left to spend."""
        mark = RunEvent(at=self._clock.now(), name=name, data=data)
        self._tape.write_mark(mark)
        self.marks.append(mark)
        if self.most_events is not None and len(self.marks) > self.most_events:
            self.reach_cut()
        self._watch.conversations.add_run_event(mark)
        for each in self._also:
            each.on_run_event(mark)
        if name == "stage":
            self._begin_stage(data)
        elif name == "attempt":
            self._since = self._clock.now()
        elif name == "agent":
            self._end_stage()
        elif name == "graded" and data.get("before"):
            self._whole.add(_parse_stage_usage(data))
        return {
            "run": self._run,
            "strict": self._strict,
            "over": self._find_exhausted_budget(),
            **self._report_usage(),
        }

    def _begin_stage(self, data: RunEventData) -> None:
        limits = data.get("limits")
        self._limits = limits if isinstance(limits, Mapping) else {}
        self._of_run = data.get("scope") == "run"
        earlier = data.get("before")
        self._stage = _parse_stage_usage(earlier) if isinstance(earlier, Mapping) else BudgetUsage()
        self._since = self._clock.now()
        self._before = replace(self._whole)

    def _end_stage(self) -> None:
        """Count an agent's end; a stage may have several attempts."""
        if self._since is not None:
            self._stage.seconds += self._clock.now() - self._since
        self._since = None
        self._whole = replace(self._before)
        self._whole.add(self._stage)

    def _report_usage(self) -> dict[str, object]:
        of = self._stage
        left = self._limits.get("seconds")
        if left is not None:
            left -= self._whole.seconds if self._of_run else of.seconds
        return {
            "calls": of.calls,
            "tokens": of.tokens,
            "cost_usd": of.dollars,
            "seconds": of.seconds,
            "left": left,
        }

    def _find_exhausted_budget(self) -> str | None:
        """The first budget that is used up, of those that count now."""
        spent, whole = replace(self._stage), self._whole
        if self._since is not None:
            spent.seconds += self._clock.now() - self._since
            whole = replace(spent)
            whole.add(self._before)
        for kind in BUDGET_KINDS:
            counted = whole if self._of_run or kind in OF_RUN else spent
            limit, used = self._limits.get(kind), getattr(counted, kind)
            if limit is None or used is None or (kind == "seconds" and not self._timed):
                continue
            if used >= limit:
                return kind
        return None

    # Traffic.

    def request(self, exchange: Exchange) -> Exchange:
        """Refuse a model request if a budget is used up."""
        placed = self._watch.find_context(exchange)
        if exchange.error is not None or placed.kind != "model":
            return exchange
        if exchange.response is not None:
            kind = find_header(exchange.response.headers, BUDGET_HEADER)
        elif (kind := self._find_exhausted_budget()) is not None:
            exchange = replace(exchange, response=build_budget_refusal(kind), answered_by="refused")
        if kind is not None:
            self.say(kind)
        else:
            self._stage.calls += 1
            self._asked[exchange.seq] = placed
        return exchange

    def done(self, exchange: Exchange) -> None:
        """Count the tokens and the cost of an answer."""
        placed, got = self._asked.pop(exchange.seq, None), exchange.response
        if placed is None or placed.dialect is None or got is None:
            return
        answer = placed.dialect.parse_model_answer(got.headers, got.body)
        if answer is None or (used := answer.usage) is None:
            return
        self._stage.tokens += (used.prompt_tokens or 0) + (used.completion_tokens or 0)
        cost = compute_token_cost(answer.model, used) if answer.model else None
        dollars = self._stage.dollars
        self._stage.dollars = None if dollars is None or cost is None else dollars + cost

    whole = done


def build_budget_refusal(kind: str) -> Response:
    """Return the refusal that replaces a model's answer."""
    text = f"the budget of {kind} is used up (stumble)"
    body = f'{{"error": {{"type": "budget", "message": "{text}"}}}}'.encode()
    headers = (
        ("content-type", "application/json"),
        ("content-length", str(len(body))),
        (BUDGET_HEADER, kind),
    )
    return Response(
        status=BUDGET_STATUS, headers=headers, chunks=(Chunk(at=0.0, data=body),), ended=0.0
    )


def _parse_stage_usage(data: Mapping[str, object]) -> BudgetUsage:
    """Return what an earlier run spent at a stage, from the costs in an event; what is unknown
    counts as nothing, but for the dollars.
    """

    def number(name: str) -> float:
        value = data.get(name)
        return float(value) if isinstance(value, int | float) else 0.0

    return BudgetUsage(
        calls=int(number("calls")),
        tokens=int(number("tokens")),
        dollars=None if data.get("cost_usd") is None else number("cost_usd"),
        seconds=number("seconds"),
    )
