"""A trajectory told as what it means: steps, tool calls and results, each with its proof.

One pure function, `story(tape)`. Events are taken in the order in which they happened: a
request when it was asked, an answer when it was over; so parallel calls come out as they were.
"""

from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import orjson

from traces.conversation import STRONG, TOLD, Call, Conversations, Join, Placed
from traces.dialects import mcp
from traces.model import Exchange, Mark
from traces.step import Answer, Message, Usage
from traces.tape import Tape


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolUse:
    """One logical tool call with its result, however many exchanges it took."""

    step: int
    call_id: str
    tool: str
    arguments: str
    lane: int
    asked_by: int
    prefix: str
    ordinal: int
    result: str | None
    """What the agent told the model the call returned; None if it never did."""
    result_seq: int | None
    is_error: bool | None
    place: Literal["http", "mcp", "local", "provider"]
    server: str | None = None
    """The host of its first request, or the name of a server over stdio."""
    stdio: bool = False
    """Whether that server is one over stdio."""
    read_only: bool | None = None
    """Whether it changes nothing, as its MCP server says; None where that does not."""
    join: Join | None
    seqs: tuple[int, ...]
    stage: str | None = None
    """The stage of a pipeline in which it was asked for."""

    @property
    def strong(self) -> bool:
        """True where a fault by tool name may strike the exchange itself."""
        return self.join in STRONG


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One turn: what a user or system said, or what the model answered."""

    number: int
    source: Literal["system", "user", "agent"]
    message: str
    lane: int
    seqs: tuple[int, ...]
    """The exchanges that prove it, failed attempts included."""
    missing: str | None = None
    """The earlier answer it goes on from, where the recording does not hold that."""
    model: str | None = None
    finish: str | None = None
    usage: Usage | None = None
    calls: tuple[str, ...] = ()
    at: float = 0.0
    reasoning: str = ""
    """What the model thought before it answered, if the provider shows it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Story:
    """What happened, derived."""

    steps: tuple[Step, ...]
    uses: tuple[ToolUse, ...]
    placed: Mapping[int, Placed]
    answers: Mapping[int, Answer]

    @property
    def turns(self) -> tuple[Step, ...]:
        """The steps of the agent."""
        return tuple(step for step in self.steps if step.source == "agent")

    def use(self, call_id: str) -> ToolUse | None:
        """The call of that id."""
        return next((use for use in self.uses if use.call_id == call_id), None)


def tell(tape: Tape) -> Story:
    """What a tape means, with what its user said of its tools."""
    return story(tape.exchanges, tape.trajectory.tools, tape.marks)


def story(
    exchanges: Iterable[Exchange],
    tools: Mapping[str, str] | None = None,
    marks: Sequence[Mark] = (),
) -> Story:
    """What these exchanges mean, with what the command of the run told between them."""
    exchanges = tuple(exchanges)
    conversations, teller = Conversations(tools), _Teller()
    by_seq, told = {exchange.seq: exchange for exchange in exchanges}, deque(marks)
    for at, over, seq in sorted(events(exchanges)):
        while told and told[0].at <= at:
            conversations.marked(told.popleft())
        exchange = by_seq[seq]
        if over:
            answer = conversations.answered(exchange)
            if answer is not None:
                teller.answered(exchange, conversations.placed[seq], answer)
        else:
            teller.asked(exchange, conversations.asked(exchange))
    return Story(
        steps=tuple(teller.steps),
        uses=tuple(_use(call, by_seq) for call in conversations.calls),
        placed=conversations.placed,
        answers=teller.answers,
    )


def events(exchanges: Iterable[Exchange]) -> Iterator[tuple[float, bool, int]]:
    """(when, whether it was over, seq) of each request and of each answer; sorted, a history."""
    for exchange in exchanges:
        yield exchange.started, False, exchange.seq
        yield max(over(exchange), exchange.started), True, exchange.seq


def over(exchange: Exchange) -> float:
    """When the agent had the whole answer, as far as is known.

    The last chunk counts and not the end of the message: a client acts on `[DONE]`, which may
    stand in another packet than the end of the stream.
    """
    answer = exchange.response
    if answer is None:
        return exchange.started
    return answer.chunks[-1].at if answer.chunks else answer.at


class _Teller:
    """Adds a step for each message that was not there before, and for each answer."""

    def __init__(self) -> None:
        self.steps: list[Step] = []
        self.answers: dict[int, Answer] = {}
        self._told: dict[int, int] = {}
        self._attempts: dict[int, list[int]] = {}

    def asked(self, exchange: Exchange, placed: Placed) -> None:
        if placed.kind != "model" or placed.lane is None:
            return
        # What a request does not hold, and nobody has seen, was not told before either.
        told = 0 if placed.missing else self._told.get(placed.lane, 0)
        for message in placed.messages[told:]:
            if message.role in TOLD:
                self._say(message, placed.lane, exchange)
        self._told[placed.lane] = len(placed.messages)
        first = placed.attempt_of if placed.attempt_of is not None else exchange.seq
        self._attempts.setdefault(first, []).append(exchange.seq)

    def _say(self, message: Message, lane: int, exchange: Exchange) -> None:
        self.steps.append(
            Step(
                number=len(self.steps) + 1,
                source="user" if message.role == "user" else "system",
                message=message.content,
                lane=lane,
                seqs=(exchange.seq,),
                at=exchange.started,
            )
        )

    def answered(self, exchange: Exchange, placed: Placed, answer: Answer) -> None:
        assert placed.lane is not None
        self.answers[exchange.seq] = answer
        first = placed.attempt_of if placed.attempt_of is not None else exchange.seq
        self.steps.append(
            Step(
                number=len(self.steps) + 1,
                source="agent",
                message=answer.message,
                lane=placed.lane,
                seqs=tuple(self._attempts.get(first, (exchange.seq,))),
                model=answer.model,
                finish=answer.finish,
                usage=answer.usage,
                calls=tuple(call.id for call in answer.calls),
                missing=placed.missing,
                at=over(exchange),
                reasoning=answer.reasoning,
            )
        )


def _use(call: Call, by_seq: Mapping[int, Exchange]) -> ToolUse:
    seqs = tuple(seq for seq, _ in call.exchanges)
    text = call.result.text if call.result else None
    own = tuple(by_seq[seq] for seq in seqs)
    over_mcp = tuple(x for x in own if mcp.message(x.request) is not None)
    return ToolUse(
        step=call.step,
        call_id=call.id,
        tool=call.tool,
        arguments=call.arguments,
        lane=call.lane,
        asked_by=call.asked_by,
        prefix=call.prefix,
        ordinal=call.ordinal,
        result=text,
        result_seq=call.result_seq,
        is_error=_is_error(call.result.is_error if call.result else None, text, over_mcp or own),
        place="mcp" if over_mcp else "http" if own else "local",
        server=call.server,
        stdio=call.stdio,
        read_only=call.read_only,
        join=call.exchanges[0][1] if call.exchanges else None,
        seqs=seqs,
        stage=call.stage,
    )


def _is_error(flag: bool | None, text: str | None, own: tuple[Exchange, ...]) -> bool | None:
    """The dialect's flag, else what the last exchange says, else what the text says; or unknown.

    What an MCP server calls an error is one, whatever the agent made of it.
    """
    said = _failed(own[-1]) if own else None
    if flag is not None and not (said and mcp.message(own[-1].request)):
        return flag
    if said is not None or text is None:
        return said
    return text_is_error(text)


def _failed(exchange: Exchange) -> bool | None:
    """Whether a tool's answer is an error; None where an MCP server wants to know more first."""
    answer = exchange.response
    if answer is None or answer.status >= 400:
        return True
    if mcp.message(exchange.request) is not None:
        reply = mcp.read(answer.headers, answer.body)
        if reply is not None:
            return reply.is_error
    return exchange.error is not None


def text_is_error(text: str) -> bool | None:
    """Whether a result text names itself an error; None where it does not say either way.

    True for text that begins with `Error` and for a JSON object with a non-empty `error` or a
    non-zero `returncode`; False for any other JSON; a plain text is unknown.
    """
    if text.lstrip()[:5].lower() == "error":
        return True
    try:
        value = orjson.loads(text)
    except ValueError:
        return None
    if not isinstance(value, dict):
        return False
    return bool(value.get("error")) or value.get("returncode", 0) not in (0, None)
