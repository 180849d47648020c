"""Conversation tracker: lanes, open calls, attempts and joins.

Exchanges are added in the order in which things happened, by the same code while recording and
while reading: `add_request` when a request is complete, `add_answer` when its response is over. A
lane is one growing conversation: a request belongs to the lane whose last request is the longest
prefix of it, else to the lane whose open call it answers (clients rewrite earlier messages:
reminders, dates, dropped reasoning), else it begins a new lane. Everything here is derived and can
improve.

If the provider stores the conversation, a request contains only the new messages and names the
response it continues. The earlier messages are prepended, from that response and its own request,
as if the agent had sent them again. If that response was never seen, or was incomplete,
`ExchangeContext.missing` names it, and nothing is guessed.
"""

import hashlib
import json
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from copy import replace
from itertools import chain, count
from typing import Literal, NamedTuple
from urllib.parse import urlsplit

from msgspec import Struct, field

from traces.bodies.canonical_json import canonicalize_json
from traces.bodies.content_encoding import read_content
from traces.conversation.addresses import ConversationAddresses
from traces.conversation.classify import ExchangeKind, classify_non_dialect_request
from traces.conversation.join_proof import extract_answer_values, has_answer_value, has_call_values
from traces.conversation.program_calls import (
    has_model_traffic,
    is_declared_route,
    to_program_call,
    to_program_result,
)
from traces.dialects import find_dialect, mcp, mini_swe_agent, react_text
from traces.dialects.requested_model import find_requested_model
from traces.dialects.result_numbers import number_equal_results
from traces.dialects.types import (
    ChatMessage,
    DialectLens,
    ModelAnswer,
    ModelRequest,
    ToolCall,
    ToolResult,
)
from traces.model import Chunk, Exchange, Request, Response, RunEvent, find_header
from traces.shared_sequence import SharedSequence

type JoinMethod = Literal["id", "map", "window", "args", "time"]
"""How an exchange was joined to a call: the first of these that identifies exactly one.

    id      a header or a value of MCP's `_meta` is the call's id, or the request is itself the call
    map     the route that the user declared for the tool; for MCP the call's tool and arguments
    window  no other call is open, and a value links the two (see join_proof)
    args    they share a word that looks like an id; one of several identical MCP calls
    time    no other call is open. Provisional until the call's result arrives: if that contains
            the response, this becomes a window, else the client made the request for itself and
            it belongs to no call.
"""

STEP_ROLES = ("system", "developer", "user")
"""Roles whose messages are steps; a response of a model is a step when it arrives."""

STRONG_JOINS: tuple[JoinMethod, ...] = ("id", "map", "window")
"""Joins that a fault by tool name may rely on."""


def canonicalize_arguments(text: str) -> str:
    """Return arguments as canonical JSON; unchanged if the model did not write JSON."""
    try:
        return canonicalize_json(text or "{}").decode("utf-8", "replace")
    except ValueError:
        return text


class TrackedCall(Struct, eq=False):
    """A tool call that the model requested, and the facts known about it so far."""

    id: str
    tool: str
    arguments: str
    """As the model wrote them."""
    lane: int
    asked_by: int
    """seq of the model exchange that requested it."""
    prefix: str
    """Address of the conversation up to the request that led to it."""
    ordinal: int
    """Number of earlier calls in the lane with the same tool and arguments."""
    step: int = 0
    """The step that requested it, as `derive_steps` counts them."""
    reached_over: Literal["http", "mcp"] | None = None
    """Protocol of its own requests; None until it makes one."""
    server: str | None = None
    """The host of its first request, or the name of a server over stdio."""
    stdio: bool = False
    """Whether that server uses stdio."""
    read_only: bool | None = None
    """Whether it changes nothing, as its MCP server declares; None if undeclared."""
    stage: str | None = None
    """The pipeline stage in which the model requested it."""
    incomplete: bool = False
    """True if the answer ended before its arguments did."""
    exchanges: list[tuple[int, JoinMethod]] = field(default_factory=list)
    result: ToolResult | None = None
    result_seq: int | None = None
    """seq of the first model request that carries the result."""

    @property
    def is_open(self) -> bool:
        """True until a model request has carried its result."""
        return self.result is None

    @property
    def place(self) -> Literal["http", "mcp", "local"]:
        """The place of its execution, as far as known."""
        return self.reached_over or "local"


class _LaneState(Struct, eq=False):
    number: int
    parent: int | None = None
    prefix: str = ""
    messages: int = 0
    earlier_messages: int = 0
    """Number of messages in the request before its last one."""
    turns: int = 0
    offers: bool = False
    results: SharedSequence[ToolResult] = field(default_factory=SharedSequence)
    """Those of its last request."""
    called: list[str] = field(default_factory=list)
    """The ids of calls since then."""
    unmatched: dict[str, int] = field(default_factory=dict)
    """Index of each of these results, by id, for which no call is known yet; in their order."""


class ExchangeContext(NamedTuple):
    """The place of an exchange in the conversations."""

    kind: ExchangeKind
    lane: int | None
    attempt_of: int | None = None
    call: TrackedCall | None = None
    join: JoinMethod | None = None
    messages: Sequence[ChatMessage] = ()
    """The complete conversation, even if the request contains only the end of it."""
    results: Sequence[ToolResult] = ()
    """The results in the request itself."""
    returned: tuple[tuple[TrackedCall, ToolResult], ...] = ()
    """The calls whose result no earlier request carried, with that result."""
    prefix: str = ""
    """Address of the conversation."""
    missing: str | None = None
    """The response it continues, if unknown; `messages` then lacks the earlier messages."""
    is_warmup: bool = False
    """True for a warm-up, which is not a step."""
    dialect: DialectLens | None = None
    """The dialect of a model request; None also for one that only opens a WebSocket."""
    turn: int = 0
    """Number of the turn in its lane, from 1; a retry has that of the first attempt."""
    step: int = 0
    """Number of the step that its response will be, as `derive_steps` counts them."""
    offers: bool = False
    """True if its lane began by offering the model tools, in any form."""
    stage: str | None = None
    """The pipeline stage in which it was sent."""


class _StoredConversation(NamedTuple):
    """A conversation that a provider stores."""

    messages: SharedSequence[ChatMessage] = SharedSequence()
    results: SharedSequence[ToolResult] = SharedSequence()
    lane: int | None = None
    leading: int = 0
    """Number of leading messages that applied to one request only."""

    def continue_with(
        self, messages: Sequence[ChatMessage], leading: int
    ) -> SharedSequence[ChatMessage]:
        """Return the conversation with these messages, of which `leading` ones precede it."""
        if self.messages[: self.leading] == messages[:leading]:
            return self.messages.plus(messages[leading:])
        return SharedSequence(
            (*messages[:leading], *self.messages[self.leading :], *messages[leading:])
        )


MIN_SHARED_CHARS = 12
"""Minimum length of a text that occurs in two places for more than chance."""
_OFFERED = re.compile(rb'"tools"\s*:\s*\[\s*\{')
"""Matches offered tools; inside a text the quotes would be escaped."""
_NO_CONVERSATION = _StoredConversation()
_MAX_LIVE_ANSWERS = 64
"""Limits for a live run: stored responses that a request may continue, and responses that await a
result."""


class ConversationTracker:
    """All lanes of one trajectory. `tools` maps a tool name to `METHOD url-path-glob`.

    `live`: texts are dropped as soon as the next exchange is placed, so that a run may be of any
    length.
    """

    def __init__(
        self,
        tools: Mapping[str, str] | None = None,
        *,
        live: bool = False,
        has_model: bool = True,
    ) -> None:
        """`has_model` is False for a program that asks no model: each of its requests to a tool is
        a call then, and a step.
        """
        self._tools = dict(tools or {})
        self._live, self._has_model = live, has_model
        self._readings: dict[str, Callable[[bytes], ModelRequest]] = {}
        """The request reader of each dialect; readers cache earlier bodies."""
        self._lanes: list[_LaneState] = []
        self._addresses = ConversationAddresses()
        self._by_prefix: dict[int, dict[str, _LaneState]] = {}
        """By number of messages so far, of which there are few, and by address."""
        self._calls: dict[tuple[int, str], TrackedCall] = {}
        self._open = dict[tuple[int, str], TrackedCall]()
        """Those whose result no request has carried."""
        self._by_wire_id = defaultdict[str, list[TrackedCall]](list)
        self._equal_calls = Counter[tuple[int, str, bytes]]()
        self._nameless: list[TrackedCall] = []
        """The calls without an id on the wire."""
        self._made_up: set[tuple[int, str]] = set()
        """Lane and id of the results of such calls."""
        """By lane, tool and a hash of the canonical arguments."""
        self._failed: dict[tuple[object, ...], int] = {}
        self._asked: dict[int, _StoredConversation] = {}
        self._kept: dict[str, _StoredConversation] = {}
        self._asked_for: list[TrackedCall] = []
        self._listing: set[int] = set()
        self._unproved: dict[int, tuple[str, ...]] = {}
        """Values of the response, by exchange that is joined by time alone."""
        self._offered: dict[str, dict[str, mcp.McpTool]] = {}
        """Declared tools, by server."""
        self.placed: dict[int, ExchangeContext] = {}
        self.steps = 0
        """Number of steps so far, as `derive_steps` counts them."""
        self.last: ModelAnswer | None = None
        """The latest response of a model, in any lane."""
        self.said: list[str] = []
        """Texts of the models' responses, in order."""
        self.stage: str | None = None
        """The pipeline stage of the running agent; None between stages."""

    @property
    def calls(self) -> tuple[TrackedCall, ...]:
        """All calls so far, in the order of the model's requests for them."""
        return tuple(self._calls.values())

    def calls_since(self, count: int) -> list[TrackedCall]:
        """Return the calls after the first `count`, in the same order."""
        return self._asked_for[count:]

    def parent_lane(self, lane: int) -> int | None:
        """Return the lane whose open call started this lane, as for a subagent; None if no call
        did.

        The parent is the lane of the call whose arguments share the longest text with the first
        messages of the new lane.
        """
        return self._lanes[lane].parent

    def find_offered_tool(self, call: TrackedCall) -> mcp.McpTool | None:
        """Return an MCP server's declaration of a call's tool; None if no known server has it."""
        servers = self._offered
        if call.reached_over == "mcp" and call.server is not None:
            servers = {call.server: servers.get(call.server, {})}
        return mcp.find_offered_tool(
            call.tool, [tool for declared in servers.values() for tool in declared.values()]
        )

    def open_calls(self) -> list[TrackedCall]:
        """Return the calls whose result no model request has carried yet."""
        return list(self._open.values())

    def find_call(self, lane: int, call_id: str) -> TrackedCall | None:
        """Return the call with that id in a lane."""
        return self._calls.get((lane, call_id))

    def add_run_event(self, mark: RunEvent) -> None:
        """Process a run event: a stage or an attempt at it began, or its agent ended."""
        if mark.name in ("stage", "attempt"):
            self.stage = str(mark.data.get("stage"))
        elif mark.name == "agent":
            self.stage = None

    def add_request(self, exchange: Exchange) -> ExchangeContext:
        """Process a request and return its context."""
        dialect = find_dialect(exchange.request)
        kind = classify_non_dialect_request(exchange.request) if dialect is None else "model"
        if dialect is not None:
            placed = self._place_model_request(exchange, dialect)
        elif kind == "tool":
            placed = self._place_tool_request(exchange)
        else:
            placed = ExchangeContext(kind, None)
        self.placed[exchange.seq] = placed
        return placed

    def add_answer(self, exchange: Exchange) -> ModelAnswer | None:
        """Process a response; return it parsed if it is a model's, None for anything else."""
        placed = self.placed[exchange.seq]
        answer = _read_model_answer(placed, exchange.response)
        if answer is not None and answer.model is None and placed.dialect is not None:
            answer = replace(answer, model=find_requested_model(placed.dialect, exchange.request))
        if exchange.seq in self._listing:
            self._add_offered_tools(exchange)
        if placed.call is not None and not self._has_model:
            result = to_program_result(placed.call.id, exchange)
            placed.call.result = replace(result, text="") if self._live else result
            placed.call.result_seq = exchange.seq
        if placed.join == "time":
            self._unproved[exchange.seq] = extract_answer_values(exchange)
            if self._live and len(self._unproved) > _MAX_LIVE_ANSWERS:
                del self._unproved[next(iter(self._unproved))]
        if is_failed_attempt(exchange) or _is_answer_incomplete(placed, answer):
            key = self._make_retry_key(exchange, placed)
            self._failed.setdefault(key, placed.attempt_of or exchange.seq)
        elif self._failed:
            self._failed.pop(self._make_retry_key(exchange, placed), None)
        conversation = self._asked.pop(exchange.seq, _NO_CONVERSATION)
        if answer is None or exchange.response is None or placed.lane is None:
            return None
        if answer.id is not None and answer.finish is not None:
            messages = conversation.messages.plus(answer.added_messages)
            self._kept[answer.id] = conversation._replace(messages=messages)
            if self._live and len(self._kept) > _MAX_LIVE_ANSWERS:
                del self._kept[next(iter(self._kept))]
        if placed.is_warmup:
            return None
        self.steps += 1
        if exchange.response.status < 400:
            answer = self._add_calls(answer, self._lanes[placed.lane], exchange.seq)
            self.last = answer
            if answer.message:
                self.said.append(answer.message)
        return answer

    def _add_offered_tools(self, exchange: Exchange) -> None:
        self._listing.discard(exchange.seq)
        if (answer := exchange.response) is not None:
            declared = self._offered.setdefault(urlsplit(exchange.request.url).netloc, {})
            declared.update(
                {tool.name: tool for tool in mcp.read_tool_list(answer.headers, answer.body)}
            )

    def _place_model_request(self, exchange: Exchange, dialect: DialectLens) -> ExchangeContext:
        body = read_content(exchange.request)
        model_request = self._read_model_request(dialect, body)
        messages, results, state = (
            model_request.messages,
            model_request.results,
            model_request.state,
        )
        stored = self._kept.get(state.previous_answer or "", _NO_CONVERSATION)
        if stored.messages:
            messages = stored.continue_with(messages, state.leading_messages)
        numbered = results
        if stored.results:
            ids = (result.call_id for result in stored.results)
            numbered = stored.results.plus(number_equal_results(results, ids))
        lane = self._assign_lane(messages, results, stored.lane)
        if lane.turns == 0:
            lane.offers = (
                dialect in (mini_swe_agent, react_text) or _OFFERED.search(body) is not None
            )
        missing = state.previous_answer if state.previous_answer not in self._kept else None
        new = messages[0 if missing else lane.earlier_messages :]
        self.steps += sum(message.role in STEP_ROLES for message in new)
        returned = self._add_results(lane, numbered, exchange.seq)
        self._asked[exchange.seq] = _StoredConversation(
            messages, numbered, lane.number, state.leading_messages
        )
        placed = ExchangeContext(
            "model",
            lane.number,
            messages=messages,
            results=results,
            returned=returned,
            prefix=lane.prefix,
            missing=missing,
            is_warmup=state.is_warmup,
            dialect=dialect,
            offers=lane.offers,
            stage=self.stage,
        )
        attempt = self._failed.get(_make_turn_key(placed)) if self._failed else None
        lane.turns += attempt is None and not state.is_warmup
        return placed._replace(attempt_of=attempt, turn=lane.turns, step=self.steps + 1)

    def _add_results(
        self, lane: _LaneState, results: SharedSequence[ToolResult], seq: int
    ) -> tuple[tuple[TrackedCall, ToolResult], ...]:
        """Give calls the results that no earlier request of the lane carried; return both.

        Of the results that the last request had, only those of calls that are known since then may
        be new.
        """
        shared = 0 if self._nameless else results.count_shared(lane.results)
        while lane.unmatched and lane.unmatched[next(reversed(lane.unmatched))] >= shared:
            lane.unmatched.popitem()
        known_since = [lane.unmatched.pop(id) for id in lane.called if id in lane.unmatched]
        lane.results, lane.called = results, []
        new = [
            *((n, results[n]) for n in sorted(known_since)),
            *enumerate(results[shared:], shared),
        ]
        returned = list[tuple[TrackedCall, ToolResult]]()
        for number, result in new:
            call = self._calls.get((lane.number, result.call_id))
            call = call or self._find_nameless_call(lane.number, result.call_id)
            if call is None:
                lane.unmatched[result.call_id] = number
            elif call.result is None:
                call.result = replace(result, text="") if self._live else result
                call.result_seq = seq
                self._open.pop((call.lane, call.id), None)
                self._settle_joins(call, result)
                returned.append((call, result))
        return tuple(returned)

    def _settle_joins(self, call: TrackedCall, result: ToolResult) -> None:
        """Drop the exchanges of a call that its result does not prove."""
        proved = list[tuple[int, JoinMethod]]()
        for seq, join in call.exchanges:
            if join != "time":
                proved.append((seq, join))
            elif has_answer_value(self._unproved.pop(seq, ()), result.text):
                proved.append((seq, "window"))
                self._update_join(seq, call, "window")
            else:
                self._update_join(seq, None, None)
        call.exchanges = proved
        if not proved:
            call.reached_over = call.server = None

    def _update_join(self, seq: int, call: TrackedCall | None, join: JoinMethod | None) -> None:
        if (placed := self.placed.get(seq)) is not None:
            self.placed[seq] = placed._replace(call=call, join=join)

    def _read_model_request(self, dialect: DialectLens, body: bytes) -> ModelRequest:
        if dialect.NAME not in self._readings:
            self._readings[dialect.NAME] = dialect.make_dialect_reader()
        return self._readings[dialect.NAME](body)

    def _assign_lane(
        self,
        messages: SharedSequence[ChatMessage],
        results: Sequence[ToolResult],
        before: int | None,
    ) -> _LaneState:
        self._addresses.read(messages)
        lane = self._find_continued_lane(len(messages)) or self._find_warmup_lane(before)
        lane = lane or (self._find_waiting_lane(results) if results else None)
        if lane is None:
            lane = _LaneState(len(self._lanes), self._find_parent_lane(messages))
            self._lanes.append(lane)
        elif (lanes := self._by_prefix[lane.messages]).pop(lane.prefix, None) and not lanes:
            del self._by_prefix[lane.messages]
        lane.earlier_messages, lane.messages = lane.messages, len(messages)
        lane.prefix = self._addresses.hash_first(lane.messages)
        self._by_prefix.setdefault(lane.messages, {})[lane.prefix] = lane
        return lane

    def _find_continued_lane(self, most: int) -> _LaneState | None:
        """Return the lane with the longest conversation that is a prefix of the one just read."""
        for length in sorted([n for n in self._by_prefix if 0 < n <= most], reverse=True):
            prefix_address = self._addresses.hash_first(length)
            if (lane := self._by_prefix[length].get(prefix_address)) is not None:
                return lane
        return None

    def _find_warmup_lane(self, before: int | None) -> _LaneState | None:
        """Return the lane of the continued response if that was a bare warm-up, without
        messages."""
        lane = None if before is None else self._lanes[before]
        return lane if lane is not None and lane.messages == 0 else None

    def _find_waiting_lane(self, results: Sequence[ToolResult]) -> _LaneState | None:
        """Return the only lane that waits for some of these results; None if several do."""
        result_ids = {result.call_id for result in results}
        waiting = {call.lane for call in self.open_calls() if call.id in result_ids}
        return self._lanes[waiting.pop()] if len(waiting) == 1 else None

    def _find_parent_lane(self, messages: Sequence[ChatMessage]) -> int | None:
        """Return the lane whose open call shares the most text with these messages; None on a
        tie."""
        if not (waiting := self.open_calls()):
            return None
        text = "\n".join([message.content for message in messages])
        shared = [(_measure_shared_text(call.arguments, text), call.lane) for call in waiting]
        most = max((length for length, _ in shared), default=0)
        lanes = {lane for length, lane in shared if length == most}
        return lanes.pop() if most >= MIN_SHARED_CHARS and len(lanes) == 1 else None

    def _add_calls(self, answer: ModelAnswer, lane: _LaneState, seq: int) -> ModelAnswer:
        """Track the calls of an answer; return it with ids that tell all calls apart."""
        names = dict[str, ToolCall]()
        for call in answer.calls:
            name = self._make_unused_id(lane.number, call.id, names)
            names[name] = call if name == call.id else replace(call, id=name)
            self._add_call(names[name], lane, seq)
        return replace(answer, calls=tuple(names.values())) if names else answer

    def _add_call(self, call: ToolCall, lane: _LaneState, seq: int) -> None:
        arguments = canonicalize_arguments(call.arguments).encode("utf-8", "surrogatepass")
        equal = lane.number, call.name, hashlib.blake2b(arguments, digest_size=16).digest()
        ordinal = self._equal_calls[equal]
        if (lane.number, call.id) not in self._calls:
            tracked = TrackedCall(
                call.id,
                call.name,
                call.arguments,
                lane.number,
                seq,
                lane.prefix,
                ordinal,
                self.steps,
            )
            tracked.read_only, tracked.stage = self._is_read_only(tracked), self.stage
            tracked.incomplete = call.incomplete
            self._calls[lane.number, call.id] = self._open[lane.number, call.id] = tracked
            self._by_wire_id[call.id.partition("#")[0]].append(tracked)
            lane.called.append(call.id)
            self._equal_calls[equal] += 1
            self._asked_for.append(tracked)
            if not call.id.partition("#")[0]:
                self._nameless.append(tracked)

    def _find_nameless_call(self, lane: int, id: str) -> TrackedCall | None:
        """Return the next call without an id, for which the client has made up this one."""
        if not self._nameless or (lane, id) in self._made_up:
            return None
        call = next((each for each in self._nameless if each.lane == lane and each.is_open), None)
        if call is not None:
            self._made_up.add((lane, id))
        return call

    def _is_read_only(self, call: TrackedCall) -> bool | None:
        tool = self.find_offered_tool(call) if self._offered else None
        return tool.read_only if tool is not None else None

    def _make_unused_id(self, lane: int, id: str, taken: Container[str]) -> str:
        """Return the id, or `id#2` etc. if a call of that id is `taken` or has been answered.

        Ids may be reused, equal or missing. An open call of an earlier answer is that call, which
        a retry asked for again.
        """
        for name in chain([id], (f"{id}#{number}" for number in count(2))):
            call = self._calls.get((lane, name))
            if name not in taken and (call is None or call.is_open):
                return name
        raise AssertionError("count never ends")

    def _place_tool_request(self, exchange: Exchange) -> ExchangeContext:
        message = mcp.read_client_message(exchange.request)
        if message is not None and message.call is None:
            if message.method == "tools/list":
                self._listing.add(exchange.seq)
            return ExchangeContext("tool", None)
        call, join = (
            self._find_join(exchange.request, message)
            if self._has_model
            else (self._add_program_call(exchange), "id")
        )
        lane = call.lane if call else (0 if len(self._lanes) == 1 else None)
        if call is not None and join is not None:
            if not call.exchanges:
                call.reached_over = "http" if message is None else "mcp"
                call.server = urlsplit(exchange.request.url).netloc
                call.stdio = exchange.transport == "stdio"
                call.read_only = self._is_read_only(call)
            call.exchanges.append((exchange.seq, join))
        placed = ExchangeContext("tool", lane, None, call, join)
        if not self._failed:
            return placed
        return placed._replace(attempt_of=self._failed.get(self._make_retry_key(exchange, placed)))

    def _add_program_call(self, exchange: Exchange) -> TrackedCall:
        """Track the call that a program makes with this request, as a step of its own.

        Its id is the tool's name with a number: a program draws other values in each run.
        """
        call = to_program_call(exchange.request, self._tools)
        number = self._equal_calls[0, call.name, b""] + 1
        self._equal_calls[0, call.name, b""] = number
        self.steps += 1
        tracked = TrackedCall(
            id=f"{call.name} {number}",
            tool=call.name,
            arguments=call.arguments,
            lane=0,
            asked_by=exchange.seq,
            prefix="",
            ordinal=number - 1,
            step=self.steps,
            stage=self.stage,
        )
        self._calls[0, tracked.id] = tracked
        self._asked_for.append(tracked)
        return tracked

    def _find_join(
        self, request: Request, message: mcp.McpClientMessage | None
    ) -> tuple[TrackedCall, JoinMethod] | tuple[None, None]:
        waiting = self.open_calls()
        call_ids = {
            find_header(request.headers, "x-tool-call-id"),
            *(message.meta if message else ()),
        } - {None}
        if matching := [call for id in call_ids for call in self._by_wire_id.get(id, ())]:
            # A closed call counts only if no open one has that id, as in a late retry.
            if len(matching) > 1:
                matching.sort(key=self._asked_for.index)
            return max(matching, key=lambda call: call.is_open), "id"
        if message is not None and message.call is not None:
            mapped = [call for call in waiting if _is_same_call(call, message.call)]
            if len(mapped) > 1:
                return min(mapped, key=lambda call: len(call.exchanges)), "args"
        else:
            mapped = [c for c in waiting if is_declared_route(self._tools, c.tool, request)]
        if len(mapped) == 1:
            return mapped[0], "map"
        if len(waiting) == 1:
            proved = message is not None or self._has_call_proof(waiting[0], request)
            return waiting[0], "window" if proved else "time"
        sharing = [call for call in waiting if _has_shared_identifier(call.arguments, request)]
        return (sharing[0], "args") if len(sharing) == 1 else (None, None)

    def _has_call_proof(self, call: TrackedCall, request: Request) -> bool:
        return has_call_values(call.tool, call.arguments, request)

    def _make_retry_key(self, exchange: Exchange, placed: ExchangeContext) -> tuple[object, ...]:
        request = exchange.request
        if placed.kind == "model" and placed.lane is not None:
            return _make_turn_key(placed)
        call = placed.call.id if placed.call and self._has_model else None
        body = mcp.to_canonical_message(request) if placed.kind == "tool" else None
        identity = request.body if body is None else body
        return placed.kind, placed.lane, call, request.method, request.url, identity


class ConversationTap:
    """The tap that updates `ConversationTracker` while traffic flows; first in the list.

    A client acts on the last bytes of a stream before the stream is over. So when a new request
    arrives, every response under way that already has a finish reason is processed first.
    """

    def __init__(
        self, tools: Mapping[str, str] | None = None, recording: Iterable[Exchange] | None = None
    ) -> None:
        """`recording` is what the run follows; if that has no model, the run has none either."""
        has_model = recording is None or has_model_traffic(recording)
        self.conversations = ConversationTracker(tools, live=True, has_model=has_model)
        self.requests = 0
        """Requests so far, of any kind."""
        self._flowing: dict[int, _StreamingAnswer] = {}
        self._told: dict[int, Request] = {}

    @property
    def is_answering(self) -> bool:
        """Whether an answer of a model is under way."""
        return bool(self._flowing)

    def known_request(self, exchange: Exchange) -> Request:
        """Return the request as edited by taps before this one, as the tracker knows it.

        Edits of later taps are not part of it.
        """
        return self._told.get(exchange.seq, exchange.request)

    def find_context(self, exchange: Exchange) -> ExchangeContext:
        """Return the context of an exchange that this tap has seen and that is not over."""
        return self.conversations.placed[exchange.seq]

    def request(self, exchange: Exchange) -> Exchange:
        for seq, flowing in list(self._flowing.items()):
            answer = flowing.to_response()
            parsed = _read_model_answer(self.conversations.placed[seq], answer)
            if answer is not None and parsed is not None and parsed.finish is not None:
                self.conversations.add_answer(replace(flowing.exchange, response=answer))
                del self._flowing[seq]
        if exchange.edits:
            self._told[exchange.seq] = exchange.forwarded
        self.requests += 1
        if self.conversations.add_request(self._with_known_request(exchange)).kind == "model":
            self._flowing[exchange.seq] = _StreamingAnswer(self._with_known_request(exchange))
        return exchange

    def _with_known_request(self, exchange: Exchange) -> Exchange:
        edited = self._told.get(exchange.seq)
        return exchange if edited is None else replace(exchange, request=edited, edits=())

    def head(self, exchange: Exchange) -> None:
        if exchange.seq in self._flowing:
            self._flowing[exchange.seq] = _StreamingAnswer(self._with_known_request(exchange))

    def chunk(self, exchange: Exchange, chunk: Chunk) -> None:
        if (flowing := self._flowing.get(exchange.seq)) is not None:
            flowing.chunks.append(chunk)

    def done(self, exchange: Exchange) -> None:
        if self._flowing.pop(exchange.seq, None) or self.find_context(exchange).kind != "model":
            self.conversations.add_answer(self._with_known_request(exchange))
        self._told.pop(exchange.seq, None)
        del self.conversations.placed[exchange.seq]

    whole = done


class _StreamingAnswer(Struct, eq=False):
    """A model's response under way."""

    exchange: Exchange
    """Includes the head of the response once that has arrived."""
    chunks: list[Chunk] = field(default_factory=list)

    def to_response(self) -> Response | None:
        """Return the response as if its latest chunk were the last; None before the first chunk."""
        head = self.exchange.response
        if head is None or not self.chunks:
            return None
        return replace(head, chunks=tuple(self.chunks), ended=self.chunks[-1].at)


def _read_model_answer(placed: ExchangeContext, answer: Response | None) -> ModelAnswer | None:
    """Parse a model's response so far; None if there is nothing to parse."""
    if placed.dialect is None or answer is None or not answer.chunks:
        return None
    return placed.dialect.parse_model_answer(answer.headers, answer.body)


def _is_answer_incomplete(placed: ExchangeContext, answer: ModelAnswer | None) -> bool:
    """True if a model's response is unreadable or has no finish reason, whatever its status."""
    return (
        placed.lane is not None
        and placed.kind == "model"
        and (answer is None or answer.finish is None)
    )


def _make_turn_key(placed: ExchangeContext) -> tuple[object, ...]:
    """Identify a turn by its conversation: a retry may send other bytes around it, on another
    connection or to another model."""
    return placed.kind, placed.lane, placed.prefix, placed.is_warmup


def is_failed_attempt(exchange: Exchange) -> bool:
    """True if a client may retry: no response, a truncated one, or a 4xx/5xx."""
    answer = exchange.response
    if answer is None or answer.status >= 400:
        return True
    cut = exchange.error is not None or (answer.ended is None and exchange.transport == "http")
    return cut and not mcp.has_mcp_response(exchange)


def _is_same_call(call: TrackedCall, asked: ToolCall) -> bool:
    """True if this message to an MCP server is the call that the model requested."""
    same = canonicalize_arguments(call.arguments) == canonicalize_arguments(asked.arguments)
    return same and mcp.is_name_of_tool(call.tool, asked.name)


def _measure_shared_text(arguments: str, told: str) -> int:
    """Length of the longest text in a call's arguments that the messages contain too."""
    try:
        texts = _iter_argument_texts(json.loads(arguments or "{}"))
    except ValueError:
        texts = iter((arguments,))
    return max((len(text) for text in map(str.strip, texts) if text and text in told), default=0)


def _iter_argument_texts(value: object) -> Iterator[str]:
    match value:
        case str():
            yield value
        case list():
            for each in value:
                yield from _iter_argument_texts(each)
        case dict():
            for each in value.values():
                yield from _iter_argument_texts(each)


def _has_shared_identifier(arguments: str, request: Request) -> bool:
    """True if an id-like word of the arguments (4 or more characters, with a digit) is in the
    request."""
    words = "".join(c if c.isalnum() or c in "-_" else " " for c in arguments).split()
    haystack = request.url.encode() + b" " + request.body
    return any(
        word.encode() in haystack
        for word in words
        if len(word) >= 4 and any(c.isdigit() for c in word)
    )
