"""What becomes of the facts that the command of a run tells: they are kept, and budgets counted."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Protocol, runtime_checkable

from recorder.marks import Facts
from stumble.prices import price
from traces.clock import Clock
from traces.conversation import Placed, Watch
from traces.model import Chunk, Exchange, Mark, Response, header
from traces.tape import Writer

REFUSED = 402
"""Payment Required: no client asks again after it."""
WORD = "x-stumble-budget"
KINDS = ("calls", "tokens", "dollars", "seconds")


@dataclass(slots=True, eq=False)
class Spent:
    """What the agents of a run, or of one stage of it, have used so far."""

    calls: int = 0
    tokens: int = 0
    dollars: float | None = 0.0
    """None once the price of an answer was not known."""
    seconds: float = 0.0

    def add(self, other: "Spent") -> None:
        """This, and another's."""
        self.calls += other.calls
        self.tokens += other.tokens
        unknown = self.dollars is None or other.dollars is None
        self.dollars = None if unknown else (self.dollars or 0.0) + (other.dollars or 0.0)
        self.seconds += other.seconds


@runtime_checkable
class Hears(Protocol):
    """Whoever wants to know of marks besides the tape."""

    def hear(self, mark: Mark) -> None: ...


def hearing(*those: object) -> tuple[Hears, ...]:
    """Those of them that want to know of marks."""
    return tuple(each for each in those if isinstance(each, Hears))


class Marking:
    """The tap that refuses a model's answers once a budget is used up, and takes in marks.

    The budgets are those that the mark of a stage says, for that stage or for the whole run; a
    refusal is an answer on the tape, so a replay is refused at the same request, and there the
    recorded one stands for the clock, which only a live run is told by.
    """

    def __init__(
        self,
        watch: Watch,
        tape: Writer,
        *,
        began: float,
        run: str,
        timed: bool = True,
        strict: bool = True,
        also: tuple[Hears, ...] = (),
    ) -> None:
        self._watch, self._tape, self._timed = watch, tape, timed
        self._clock, self._run, self._also = Clock(began), run, also
        self._strict = strict
        self.say: Callable[[str], object] = lambda word: None
        self._limits: Mapping[str, float] = {}
        self._stage, self._whole = Spent(), Spent()
        self._of_run = False
        self._since: float | None = None
        self._asked: dict[int, Placed] = {}
        self.marks: list[Mark] = []

    # What is told.

    def heard(self, name: str, data: Facts) -> Facts:
        """Keep a fact on the tape; the answer says what was spent, and what is left to spend."""
        mark = Mark(at=self._clock.now(), name=name, data=data)
        self._tape.mark(mark)
        self.marks.append(mark)
        self._watch.conversations.marked(mark)
        for each in self._also:
            each.hear(mark)
        if name == "stage":
            self._begin(data)
        elif name == "agent":
            self._end()
        elif name == "graded" and data.get("before"):
            self._whole.add(_told(data))
        return {"run": self._run, "strict": self._strict, "over": self._over(), **self._spent()}

    def _begin(self, data: Facts) -> None:
        limits = data.get("limits")
        self._limits = limits if isinstance(limits, Mapping) else {}
        self._of_run = data.get("scope") == "run"
        self._stage, self._since = Spent(), self._clock.now()

    def _end(self) -> None:
        if self._since is not None:
            self._stage.seconds = self._clock.now() - self._since
        self._since = None
        self._whole.add(self._stage)

    def _spent(self) -> dict[str, object]:
        of = self._stage
        left = self._limits.get("seconds")
        if left is not None and self._of_run:
            left -= self._whole.seconds
        return {
            "calls": of.calls,
            "tokens": of.tokens,
            "cost_usd": of.dollars,
            "seconds": of.seconds,
            "left": left,
        }

    def _over(self) -> str | None:
        """The first budget that is used up, of those that count now."""
        running = self._since is not None
        spent = replace(self._stage)
        if running and self._since is not None:
            spent.seconds = self._clock.now() - self._since
        if self._of_run:
            if running:
                spent.add(self._whole)
            else:
                spent = self._whole
        for kind in KINDS:
            limit, used = self._limits.get(kind), getattr(spent, kind)
            if limit is None or used is None or (kind == "seconds" and not self._timed):
                continue
            if used >= limit:
                return kind
        return None

    # What passes.

    def request(self, exchange: Exchange) -> Exchange:
        """Refuse a question to a model for which there is no budget."""
        placed = self._watch.placed(exchange)
        if exchange.error is not None or placed.kind != "model":
            return exchange
        if exchange.response is not None:
            kind = header(exchange.response.headers, WORD)
        elif (kind := self._over()) is not None:
            exchange = replace(exchange, response=refusal(kind), answered_by="refused")
        if kind is not None:
            self.say(kind)
        else:
            self._stage.calls += 1
            self._asked[exchange.seq] = placed
        return exchange

    def done(self, exchange: Exchange) -> None:
        """Count what an answer cost."""
        placed, got = self._asked.pop(exchange.seq, None), exchange.response
        if placed is None or placed.dialect is None or got is None:
            return
        answer = placed.dialect.read(got.headers, got.body)
        if answer is None or (used := answer.usage) is None:
            return
        self._stage.tokens += (used.prompt_tokens or 0) + (used.completion_tokens or 0)
        cost = price(answer.model, used) if answer.model else None
        dollars = self._stage.dollars
        self._stage.dollars = None if dollars is None or cost is None else dollars + cost

    whole = done


def refusal(kind: str) -> Response:
    """What is said in place of a model's answer."""
    text = f"the budget of {kind} is used up (stumble)"
    body = f'{{"error": {{"type": "budget", "message": "{text}"}}}}'.encode()
    headers = (
        ("content-type", "application/json"),
        ("content-length", str(len(body))),
        (WORD, kind),
    )
    return Response(status=REFUSED, headers=headers, chunks=(Chunk(at=0.0, data=body),), ended=0.0)


def _told(data: Facts) -> Spent:
    """What an earlier run spent on a stage, as its retold mark says."""

    def number(name: str) -> float:
        value = data.get(name)
        return float(value) if isinstance(value, int | float) else 0.0

    return Spent(
        calls=int(number("calls")),
        tokens=int(number("tokens")),
        dollars=None if data.get("cost_usd") is None else number("cost_usd"),
        seconds=number("seconds"),
    )
