"""Steps, tool calls and results of a trajectory, each with the exchanges that prove it.

A pure function of a tape (`derive_tape_steps`). Events are processed in the order in which they
happened: a request when it was sent, a response when it was over; so parallel calls keep their
order.
"""

from collections import defaultdict, deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from copy import replace
from typing import Literal

import orjson
from msgspec import Struct

from traces.conversation.exit_codes import learn_exit_codes
from traces.conversation.program_calls import has_model_traffic
from traces.conversation.tracker import (
    STEP_ROLES,
    STRONG_JOINS,
    ConversationTracker,
    ExchangeContext,
    JoinMethod,
    TrackedCall,
)
from traces.dialects import mcp
from traces.dialects.types import ChatMessage, HostedCall, ModelAnswer, TokenUsage
from traces.model import Exchange, RunEnding, RunEvent
from traces.tape.reader import Tape


class ToolUse(Struct, frozen=True, kw_only=True):
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
    """The result as the agent passed it to the model; None if it never did."""
    result_seq: int | None
    is_error: bool | None
    place: Literal["http", "mcp", "local", "provider"]
    server: str | None = None
    """The host of its first request, or the name of a server over stdio."""
    stdio: bool = False
    """Whether that server uses stdio."""
    read_only: bool | None = None
    """Whether it changes nothing, as its MCP server declares; None if undeclared."""
    join: JoinMethod | None
    seqs: tuple[int, ...]
    stage: str | None = None
    """The pipeline stage in which the model requested it."""
    incomplete: bool = False
    """True if the answer ended before its arguments did."""
    media: tuple[str, ...] = ()
    """Kind of each part of the result that is not text."""

    @property
    def is_of_program(self) -> bool:
        """True if no model requested it: the agent's program did, with the request itself."""
        return self.asked_by in self.seqs

    @property
    def has_strong_join(self) -> bool:
        """True if a fault by tool name may be injected into the exchange itself."""
        return self.join in STRONG_JOINS


class TrajectoryStep(Struct, frozen=True, kw_only=True):
    """One turn: a message of the user or system, or a response of the model."""

    number: int
    source: Literal["system", "user", "agent"]
    message: str
    lane: int
    seqs: tuple[int, ...]
    """The exchanges that prove it, failed attempts included."""
    missing: str | None = None
    """The earlier response it continues, if the recording does not contain that."""
    model: str | None = None
    finish: str | None = None
    usage: TokenUsage | None = None
    calls: tuple[str, ...] = ()
    at: float = 0.0
    reasoning: str = ""
    """The model's reasoning before the response, if the provider returns it."""
    hosted: tuple[HostedCall, ...] = ()
    """The calls that the provider ran for the response."""
    media: tuple[str, ...] = ()
    """Kind of each part of the message that is not text."""


class DerivedSteps(Struct, frozen=True, kw_only=True):
    """The derived steps, tool uses and contexts of a trajectory."""

    steps: tuple[TrajectoryStep, ...]
    tool_uses: tuple[ToolUse, ...]
    contexts: Mapping[int, ExchangeContext]
    answers: Mapping[int, ModelAnswer]

    @property
    def agent_steps(self) -> tuple[TrajectoryStep, ...]:
        """The agent's steps."""
        return tuple(step for step in self.steps if step.source == "agent")

    def find_use(self, call_id: str) -> ToolUse | None:
        """Return the tool use with that call id."""
        return next((use for use in self.tool_uses if use.call_id == call_id), None)


def derive_tape_steps(tape: Tape) -> DerivedSteps:
    """Derive the steps of a tape, with the tool routes that its user declared."""
    return derive_steps(tape.exchanges, tape.trajectory.tools, tape.marks, tape.ending)


def derive_steps(
    exchanges: Iterable[Exchange],
    tools: Mapping[str, str] | None = None,
    marks: Sequence[RunEvent] = (),
    ending: RunEnding | None = None,
) -> DerivedSteps:
    """Derive the steps of these exchanges, with the run events reported between them.

    In a run without a model each request to a tool is a step, and its end is the last one.
    """
    exchanges = tuple(exchanges)
    has_model = has_model_traffic(exchanges)
    conversations, builder = ConversationTracker(tools, has_model=has_model), _StepBuilder()
    by_seq, pending_marks = {exchange.seq: exchange for exchange in exchanges}, deque(marks)
    for at, is_end, seq in sorted(iter_exchange_events(exchanges)):
        while pending_marks and pending_marks[0].at <= at:
            conversations.add_run_event(pending_marks.popleft())
        exchange = by_seq[seq]
        if is_end:
            answer = conversations.add_answer(exchange)
            if answer is not None:
                builder.add_answer_step(exchange, conversations.placed[seq], answer)
        else:
            builder.add_request_steps(exchange, conversations.add_request(exchange))
    if ending is not None and not has_model and builder.steps:
        builder.add_program_step(exchanges[-1], message=ending.printed)
    return DerivedSteps(
        steps=tuple(builder.steps),
        tool_uses=_judge_by_exit_codes(
            [_build_tool_use(call, by_seq) for call in conversations.calls]
        ),
        contexts=conversations.placed,
        answers=builder.answers,
    )


def _judge_by_exit_codes(uses: Sequence[ToolUse]) -> tuple[ToolUse, ...]:
    """Return the uses; a result of unknown success fails if its tool's exit code is not 0."""
    unknown: defaultdict[str, list[int]] = defaultdict(list)
    for at, use in enumerate(uses):
        if use.result is not None and use.is_error is None:
            unknown[use.tool].append(at)
    verdicts = list(uses)
    for places in unknown.values():
        for at, code in zip(
            places, learn_exit_codes([uses[at].result or "" for at in places]), strict=True
        ):
            if code is not None:
                verdicts[at] = replace(uses[at], is_error=code != 0)
    return tuple(verdicts)


def iter_exchange_events(exchanges: Iterable[Exchange]) -> Iterator[tuple[float, bool, int]]:
    """Yield (time, is_end, seq) of each request and response; sorted, they are a history."""
    for exchange in exchanges:
        yield exchange.started, False, exchange.seq
        yield max(find_answer_end(exchange), exchange.started), True, exchange.seq


def find_answer_end(exchange: Exchange) -> float:
    """Return the time at which the agent had the complete response, as far as known.

    The last chunk counts, not the end of the message: a client acts on `[DONE]`, which may arrive
    in another packet than the end of the stream.
    """
    answer = exchange.response
    if answer is None:
        return exchange.started
    return answer.chunks[-1].at if answer.chunks else answer.at


class _StepBuilder:
    """Adds a step for each new message and for each response."""

    def __init__(self) -> None:
        self.steps: list[TrajectoryStep] = []
        self.answers: dict[int, ModelAnswer] = {}
        self._told: dict[int, int] = {}
        self._attempts: dict[int, list[int]] = {}

    def add_program_step(self, exchange: Exchange, message: str = "", calls: str = "") -> None:
        """Add a step of a program without a model: a call that it makes, or its end."""
        self.steps.append(
            TrajectoryStep(
                number=len(self.steps) + 1,
                source="agent",
                message=message,
                lane=0,
                seqs=(exchange.seq,),
                finish="tool_calls" if calls else "stop",
                calls=(calls,) if calls else (),
                at=exchange.started if calls else find_answer_end(exchange),
            )
        )

    def add_request_steps(self, exchange: Exchange, placed: ExchangeContext) -> None:
        if placed.call is not None and placed.call.asked_by == exchange.seq:
            self.add_program_step(exchange, calls=placed.call.id)
        if placed.kind != "model" or placed.lane is None:
            return
        # If the earlier messages were never recorded, all messages of the request are new.
        seen = 0 if placed.missing else self._told.get(placed.lane, 0)
        for message in placed.messages[seen:]:
            if message.role in STEP_ROLES:
                self._add_message_step(message, placed.lane, exchange)
        self._told[placed.lane] = len(placed.messages)
        first = placed.attempt_of if placed.attempt_of is not None else exchange.seq
        self._attempts.setdefault(first, []).append(exchange.seq)

    def _add_message_step(self, message: ChatMessage, lane: int, exchange: Exchange) -> None:
        self.steps.append(
            TrajectoryStep(
                number=len(self.steps) + 1,
                source="user" if message.role == "user" else "system",
                message=message.content,
                lane=lane,
                seqs=(exchange.seq,),
                at=exchange.started,
                media=message.media,
            )
        )

    def add_answer_step(
        self, exchange: Exchange, placed: ExchangeContext, answer: ModelAnswer
    ) -> None:
        assert placed.lane is not None
        self.answers[exchange.seq] = answer
        first = placed.attempt_of if placed.attempt_of is not None else exchange.seq
        self.steps.append(
            TrajectoryStep(
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
                at=find_answer_end(exchange),
                reasoning=answer.reasoning,
                hosted=answer.hosted,
                media=answer.media,
            )
        )


def _build_tool_use(call: TrackedCall, by_seq: Mapping[int, Exchange]) -> ToolUse:
    joined = [(seq, join) for seq, join in call.exchanges if join != "time"]
    seqs = tuple(seq for seq, _ in joined)
    text = call.result.text if call.result else None
    used = tuple(by_seq[seq] for seq in seqs)
    over_mcp = tuple(x for x in used if mcp.read_client_message(x.request) is not None)
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
        is_error=_is_error_result(
            call.result.is_error if call.result else None, text, over_mcp or used
        ),
        place="mcp" if over_mcp else "http" if used else "local",
        server=call.server,
        stdio=call.stdio,
        read_only=call.read_only,
        join=joined[0][1] if joined else None,
        seqs=seqs,
        stage=call.stage,
        incomplete=call.incomplete,
        media=call.result.media if call.result else (),
    )


def _is_error_result(
    flag: bool | None, text: str | None, exchanges: tuple[Exchange, ...]
) -> bool | None:
    """Return the dialect's flag, else the status of the last exchange, else the text's; or None.

    A result that an MCP server flags as an error is one, however the agent reports it.
    """
    failed = _is_failed_tool_exchange(exchanges[-1]) if exchanges else None
    if flag is not None and not (failed and mcp.read_client_message(exchanges[-1].request)):
        return flag
    if failed is not None or text is None:
        return failed
    return is_error_text(text)


def _is_failed_tool_exchange(exchange: Exchange) -> bool | None:
    """Whether a tool's response is an error; None if its MCP reply leaves that open."""
    answer = exchange.response
    if answer is None or answer.status >= 400:
        return True
    if mcp.read_client_message(exchange.request) is not None:
        reply = mcp.parse_mcp_reply(answer.headers, answer.body)
        if reply is not None:
            return reply.is_error
    return exchange.error is not None


def is_error_text(text: str) -> bool | None:
    """Whether a result text declares itself an error; None if it does not declare either.

    True for text that begins with `Error`, and for JSON (an object, or a list of some) with a
    non-empty `error` or a non-zero `returncode`; False for JSON whose every object has one of these
    fields, without an error in it. A field that is missing proves nothing.
    """
    if text.lstrip()[:5].lower() == "error":
        return True
    try:
        value = orjson.loads(text)
    except ValueError:
        return None
    objects = value if isinstance(value, list) else [value]
    flags = [_find_error_flag(each) for each in objects if isinstance(each, dict)]
    if True in flags:
        return True
    return None if not flags or len(flags) < len(objects) or None in flags else False


def _find_error_flag(value: dict[str, object]) -> bool | None:
    if value.get("error") or value.get("returncode", 0) not in (0, None):
        return True
    return False if "error" in value or "returncode" in value else None
