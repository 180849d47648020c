"""The player: a tap that answers from a recording, and refuses a request it cannot match.

It has three modes and one rule for a miss. *Strict*: everything is answered from the tape. *Live*:
the named kinds of requests go out, and each answer is compared with the recorded one. *Fork*: the
model is answered from the tape until a request carries the result of the forked call; from then on
its lane is live. With a world the tools are live from the start, without one they are answered from
the tape.

A strict replay proves determinism. The tools were not contacted, so it shows nothing about
recovery, and no outcome is derived from it.
"""

import json
from collections.abc import Callable, Collection, Sequence
from copy import replace
from functools import cache, partial
from itertools import chain, islice
from typing import Literal

from msgspec import Struct, field

from replay.fork_state import Fork, ForkLanes
from replay.live_prefix import AnswerControls, LivePrefix
from replay.matching.clock_rules import find_clock_rules
from replay.matching.diff import find_answer_differences
from replay.matching.index import BUILT_IN_RULES, RecordingIndex, RequestMatch
from replay.matching.miss_log import MissLog
from replay.matching.request_comparison import HeaderPolicy
from replay.matching.rules import MatchRules, describe_endpoint
from replay.matching.tool_calls import ServedCall, ToolCallContext, find_served_calls
from replay.mcp.client_order import ClientMessageLog, RecordedClient, StreamCue
from replay.mcp.stdio_timing import MessageTiming, find_message_timings
from replay.recorded_order import RecordedOrder
from traces.bodies.content_encoding import decode_content
from traces.bodies.websocket import decline_websocket_upgrade, is_websocket_upgrade
from traces.conversation.classify import ExchangeKind, classify_request
from traces.conversation.noise_hosts import classify_noise
from traces.conversation.tracker import ConversationTap, ExchangeContext
from traces.conversation.volatile_fields import TYPED_SINCE_VERSION
from traces.dialects import find_dialect, mcp
from traces.dialects.rpc_method import read_json_method
from traces.model import (
    Chunk,
    Exchange,
    Headers,
    Request,
    Response,
    apply_edits_to_chunks,
    find_header,
)
from traces.redaction.fingerprints import RedactionRecord
from traces.tape.random_access import LazyExchanges
from traces.tape.reader import Tape
from traces.tape.table_of_contents import is_complete_exchange

type OnMiss = Literal["refuse", "live", "halt"]
"""How a request that is not in the recording is handled: refused; sent out, if something can answer
it; or refused, and the agent is ended.
"""

REPEATABLE_METHODS = ("GET", "HEAD")
"""Safe methods: a client that asks again gets the recorded answer that a fault withheld."""
_ATTACH_SOURCE = "attach"
"""Source of a tape written inside the agent's process. Its headers are those the agent passed to
its library, without the ones the library adds, and it has no records of its redactions.
"""
REFUSED_STATUS = 422
"""No SDK retries this status; the x-should-retry header tells those that read it."""


class PlaybackOptions(Struct, frozen=True, kw_only=True):
    """What a player answers from the tape, when, and what it does with other requests."""

    live: Collection[ExchangeKind] = ()
    """The kinds of requests that go upstream."""
    fork: Fork | None = None
    speed: float = 0
    """1 keeps the recorded pace, 2 is twice as fast, 0 as fast as possible."""
    on_miss: OnMiss = "refuse"
    halt: Callable[[], object] = lambda: None
    """Stops the agent, if `on_miss` is "halt"."""
    any_client: bool = False
    """Whether another client than the recorded one may ask, as with an MCP server."""
    controls: AnswerControls = field(default_factory=AnswerControls)
    """What the runs of one fork know about the live answers before it."""
    given: tuple[str, ...] = ()
    """Texts with placeholders that the agent finds in its files."""


STRICT_PLAYBACK = PlaybackOptions()


class TapePlayer:
    """Answers from one recording, for one run."""

    def __init__(
        self,
        recording: Tape,
        watch: ConversationTap,
        *,
        options: PlaybackOptions = STRICT_PLAYBACK,
        redact: Callable[[Request], Request] = lambda request: request,
        rules: MatchRules = BUILT_IN_RULES,
        key: bytes | None = None,
    ) -> None:
        """`key` is the user's for the marks of weak secrets, as in `RecordingIndex`."""
        playable, run = select_playable_exchanges(recording.exchanges), recording.trajectory
        read = recording.input.data if recording.input else b""
        rules = rules.with_clock(partial(find_clock_rules, playable, run))
        self._index = RecordingIndex(
            playable,
            rules,
            partial(find_served_calls, recording),
            redactions=find_tape_redactions(recording),
            policy=_choose_header_policy(recording, options),
            given=(*options.given, *run.command, read.decode("utf-8", "surrogateescape")),
            recorded_at=run.recorded_at or 0.0,
            key=key,
        )
        self._rules = rules
        self._on_miss, self._halt = options.on_miss, options.halt
        self._live, self._fork, self._speed = options.live, options.fork, options.speed
        self._watch, self.redact = watch, redact
        self.prefix = LivePrefix(
            options.controls,
            rules=rules,
            recorded_at=run.recorded_at or 0.0,
            redact=self._redact_answer,
            stop=self._leave_recording,
        )
        self._has_reached_site = False
        """Whether the forked call has begun: its answer is live, and all after it."""
        self._lanes = ForkLanes(options.fork, watch.conversations)
        self._misses = MissLog(self._index, select_unplayable_exchanges(recording.exchanges), rules)
        self._played: dict[int, Exchange] = {}
        self._tokens: dict[str, str] = {}
        self._any_client = options.any_client
        self._heard = ClientMessageLog()
        self._find_recorded_client = cache(partial(RecordedClient, recording.exchanges))
        self._cues: dict[int, tuple[StreamCue, ...]] = {}
        is_ordered = not (options.any_client or options.live or options.speed)
        self._order = (
            RecordedOrder(self._index.exchanges, self._may_lack, _ends_conversation)
            if is_ordered
            else None
        )
        self._compare: dict[int, Exchange | None] = {}
        self._given: dict[int, int] = {}
        """Seq of each request to a model, to the seq of the recorded answer it got."""
        self._told: set[int] = set()
        self._nobody = ToolCallContext(None, self._told)
        self._injected = False
        """Whether a fault of a fork has affected a tool's answer: the client is live then."""
        self.diverged: list[str] = []
        """One explanation per request that left the recording, regardless of its attempts."""
        self.missed: list[str] = []
        """Tool calls after the fork that the tape cannot answer; each ends the agent."""
        self.went_live: list[int] = []
        self.matched: dict[int, RequestMatch] = {}
        """The match of each answered request, by its seq."""
        self.background: dict[str, None] = {}
        """The endpoints of requests that a rule leaves out of the comparison."""
        self.saved: list[Exchange] = []
        """Recorded model exchanges that were answered again without cost."""

    def request(self, exchange: Exchange) -> Exchange:
        """Answer from the recording, let the request go live, or refuse it with an explanation."""
        placed = self._watch.find_context(exchange)
        if placed.kind == "tool":
            self._heard.add(exchange.request)
        if exchange.response is not None or exchange.error is not None:
            self._note_tap_answer(exchange, placed)
            return exchange
        if placed.kind == "other" or self._is_background(exchange.request):
            return self._answer_other(exchange)
        if is_websocket_upgrade(exchange.request):
            return self._open_websocket(exchange, placed)
        if self._goes_live(exchange, placed):
            if placed.kind == "tool" and self._fork is not None:
                return self.prefix.send(exchange)
            return (
                replace(exchange, cascade=True)
                if self._lanes.is_live_by_cascade(placed)
                else exchange
            )
        if placed.kind == "tool" and self._is_aside(exchange.request):
            return self._answer_aside(exchange)
        if exchange.transport == "stdio" and mcp.find_reply_id(exchange.request) is not None:
            return self._take_stdio_reply(exchange)
        return self._answer_or_refuse(exchange, placed)

    def _take_stdio_reply(self, exchange: Exchange) -> Exchange:
        """Compare an answer to a server, which gets no response, with the recorded ones."""
        redacted, make_key = self.redact(exchange.forwarded), self._index.get_matching_key
        recorded = self._find_recorded_client().stdio_replies
        if make_key(redacted) not in map(make_key, recorded):
            self.diverged.append(self._misses.get_explanation(exchange.seq, redacted))
        return self._answer_aside(exchange)

    def _is_aside(self, request: Request) -> bool:
        """Return whether nothing depends on a message; another client may have its own answers."""
        message = mcp.read_client_message(request)
        return message is not None and (
            message.role == "aside" or (message.role == "reply" and self._any_client)
        )

    def _note_tap_answer(self, exchange: Exchange, placed: ExchangeContext) -> None:
        """Use up the recorded answer to a faulted model turn, so that no retry gets it.

        So a replay without a fork never continues to the recorded end, and a fork is live from
        here.
        """
        self._note_fault(exchange, placed)
        if placed.kind == "model" and not self._lanes.is_live(placed):
            self._take_match(exchange)

    def response(self, exchange: Exchange) -> Exchange:
        """Note a fault in a held answer, because the client may retry at once."""
        self._note_fault(exchange, self._watch.find_context(exchange))
        return exchange

    def _note_fault(self, exchange: Exchange, placed: ExchangeContext) -> None:
        if self._fork and exchange.answered_by == "fault" and placed.kind == "tool":
            self._injected = True

    def _open_websocket(self, exchange: Exchange, placed: ExchangeContext) -> Exchange:
        """Open a WebSocket as recorded; decline it if all is live, so that clients fall back."""
        if placed.kind not in self._live and not self._lanes:
            return self._answer_or_refuse(exchange, placed)
        recorded = self._take_match(exchange)
        return (
            self._to_played_exchange(exchange, recorded)
            if recorded
            else decline_websocket_upgrade(exchange)
        )

    def _take_match(self, exchange: Exchange) -> Exchange | None:
        """Take the recorded exchange for this one, as it would be forwarded, and mark it used.

        The recorded answer to an unchanged result does not match a request with a faulted one.
        """
        match = self._index.find(exchange.forwarded, self.redact, self._find_call_context(exchange))
        if match is None:
            return None
        self.matched[exchange.seq] = match
        if self._order is not None:
            self._order.begin(exchange.seq, match.place)
        return match.exchange

    def _find_call_context(self, exchange: Exchange) -> ToolCallContext | None:
        """Return which call a tool's request serves; None for a request to anything else."""
        placed = self._watch.find_context(exchange)
        if placed.kind != "tool":
            return None
        call = placed.call
        asked_by = self._given.get(call.asked_by) if call is not None else None
        if call is None or asked_by is None:
            return self._nobody
        return ToolCallContext(ServedCall(asked_by, call.id, placed.join == "id"), self._told)

    def _goes_live(self, exchange: Exchange, placed: ExchangeContext) -> bool:
        if placed.kind in self._live:
            self._expect_live_answer(exchange)
            return True
        if self._fork is None:
            return False
        if placed.kind == "tool":
            if self._fork.world:
                self._expect_prefix_answer(exchange, placed)
            return self._fork.world
        if not self._lanes.is_live(placed):
            return False
        if self.diverged:
            self._halt()  # the run is void, and a live model costs
        self.went_live.append(exchange.seq)
        return True

    def _expect_prefix_answer(self, exchange: Exchange, placed: ExchangeContext) -> None:
        """Let a live answer before the fork be compared; that of the forked call is not."""
        assert self._fork is not None
        if self._lanes:
            return
        self._has_reached_site = self._has_reached_site or self._fork.is_at_call(placed)
        if self._has_reached_site and self.diverged:
            self._halt()
        self._expect_live_answer(exchange)
        recorded = self._compare.get(exchange.seq)
        if recorded is None:
            return
        if self._has_reached_site:
            del self._compare[exchange.seq]
            return
        if (answer := recorded.response) is not None:
            answer = _replace_message_id(answer, exchange.request, recorded.request)
            recorded = replace(recorded, response=answer)
        self.prefix.expect(exchange.seq, recorded)

    def _leave_recording(self, why: str) -> None:
        self.diverged.append(why)

    def _expect_live_answer(self, exchange: Exchange) -> None:
        recorded = self._take_match(exchange)
        if self._injected:
            return
        if not mcp.is_background_message(exchange.request):
            self._compare[exchange.seq] = recorded

    def _answer_or_refuse(self, exchange: Exchange, placed: ExchangeContext) -> Exchange:
        recorded = self._take_match(exchange)
        if recorded is not None:
            if placed.kind == "model":
                self.saved.append(recorded)
                self._given[exchange.seq] = recorded.seq
                self._told.add(recorded.seq)
            return self._to_played_exchange(exchange, recorded)
        if self._lanes and placed.kind == "model":
            self._lanes.mark_cascade(placed.lane)
            self.went_live.append(exchange.seq)
            return replace(exchange, cascade=True)
        if self._on_miss == "live":
            self.went_live.append(exchange.seq)
            return exchange
        first_seq = exchange.seq if placed.attempt_of is None else placed.attempt_of
        redacted = self.redact(exchange.forwarded)
        if self._injected and placed.kind == "tool" and redacted.method in REPEATABLE_METHODS:
            repeated = self._index.find_used_equal(redacted, len(self._index.exchanges))
            if repeated is not None:
                return self._to_played_exchange(exchange, repeated)
        was_refused = self._misses.was_refused(first_seq, redacted)
        explanation = self._misses.get_explanation(first_seq, redacted, self._index.conflict)
        forked = bool(self._lanes) or (self._injected and placed.kind == "tool")
        if not was_refused:
            (self.missed if forked else self.diverged).append(explanation)
        if forked or self._on_miss == "halt":
            self._halt()
        return refuse_unrecorded_request(exchange, explanation)

    def _to_played_exchange(self, exchange: Exchange, found: Exchange) -> Exchange:
        """Return the exchange with the recorded answer, shifted to now and scaled by the speed."""
        if exchange.transport == "stdio":
            self._played[exchange.seq] = found
            old_token, new_token = map(mcp.read_progress_token, (found.request, exchange.request))
            if old_token is not None and new_token is not None:
                self._tokens[old_token] = new_token

        def moved(at: float) -> float:
            elapsed = (at - found.started) / self._speed if self._speed else 0.0
            return exchange.started + elapsed

        answer = found.response
        if not self._any_client and mcp.read_client_message(found.request) is not None:
            self._cues[exchange.seq] = self._find_recorded_client().find_cues(found)
        if answer is not None:
            answer = _replace_message_id(answer, exchange.request, found.request)
            answer = _retime_response(self._index.values.to_present(answer), moved)
        played = exchange.with_response(answer, found.error, "recorded")
        if found.unparsed:
            played = replace(played, unparsed=found.unparsed)
        match = self.matched.get(exchange.seq)
        renamed = match.renamed if match is not None else ()
        return replace(played, renamed=tuple(chain(*renamed))) if renamed else played

    def _answer_aside(self, exchange: Exchange) -> Exchange:
        """Answer a message nobody waits for: from the recording, or with an empty success.

        A listening stream lasts as long as its session, and a client opens another one when it
        ends. At full speed it would end at once, so the last one stays open until the agent leaves.
        """
        request = exchange.request
        recorded = self._take_match(exchange)
        if recorded is None:
            at = exchange.started
            headers = (("content-length", "0"),)
            answer = Response(
                status=_choose_aside_status(request), headers=headers, at=at, ended=at
            )
            return replace(exchange, response=answer, answered_by="simulated")
        played = self._to_played_exchange(exchange, recorded)
        if (
            self._speed
            or not _is_listening_stream(request, played.response)
            or self._is_reopened(recorded)
        ):
            return played
        endless = played.response and replace(played.response, ended=None)
        return replace(played, response=endless, error=played.error or "cancelled: by the agent")

    def _is_reopened(self, stream: Exchange) -> bool:
        """Return whether the recording opens the stream again later."""
        request = stream.request
        unused = (x.request for x in self._index.iter_unused())
        return any((x.method, x.url) == (request.method, request.url) for x in unused)

    def _answer_other(self, exchange: Exchange) -> Exchange:
        recorded = self._take_match(exchange)
        if recorded is not None:
            return self._to_played_exchange(exchange, recorded)
        status = 204 if classify_noise(exchange.request.url) else 503
        headers: Headers = () if status == 204 else (("content-length", "0"),)
        at = exchange.started
        answer = Response(status=status, headers=headers, at=at, ended=at)
        return replace(exchange, response=answer, answered_by="simulated")

    @property
    def compares_prefix(self) -> bool:
        """Whether tools are live before a fork, so that their answers are compared."""
        return self._fork is not None and self._fork.world

    @property
    def cascade_count(self) -> int:
        """How many lanes other than the forked one are live."""
        return self._lanes.cascade_count

    def find_message_timings(self, start: Exchange) -> tuple[MessageTiming, ...]:
        """Return the timings of a recorded START's chunks; empty if it was not played."""
        recorded = self._played.get(start.seq)
        return (
            ()
            if recorded is None
            else find_message_timings(recorded, self._index.exchanges, self._speed)
        )

    def is_chunk_due(self, exchange: Exchange, number: int) -> bool:
        """Return whether what the recording has before a chunk has happened in this run too."""
        cues = self._cues.get(exchange.seq, ())
        if number < len(cues) and not self._heard.has_reached(cues[number], exchange.request):
            return False
        if self._order is None or self.diverged or self._lanes:
            return True
        return self._order.is_due(exchange.seq, number)

    def rewrite_message(self, message: bytes) -> bytes:
        """Rewrite a recorded START message with this run's progress tokens."""
        return mcp.replace_progress_token(message, self._tokens)

    def list_unasked(self, most: int | None = None) -> tuple[Exchange, ...]:
        """Return the recorded exchanges nobody asked for, without noise and background messages.

        An agent that ends early has diverged as well: it did not repeat its recorded requests.
        No more than `most` are read to be returned.
        """
        unused = (x for x in self._index.iter_unused() if not self._may_be_left_out(x))
        return tuple(islice(unused, most))

    def _may_be_left_out(self, recorded: Exchange) -> bool:
        """Return whether nothing is amiss if nobody asks for a recorded exchange.

        That is so for a poll that got no answer and is one of several: their number depends on how
        long the agent waits.
        """
        request, index = recorded.request, self._index
        if self._is_background(request) or classify_request(request) == "other":
            return True
        if mcp.is_background_message(request):
            return True
        is_poll = recorded.response is None and request.method in REPEATABLE_METHODS
        return is_poll and index.find_used_equal(request, index.used_count) is not None

    def _may_lack(self, recorded: Exchange) -> bool:
        """Return whether no answer waits for an exchange: the agent makes it for itself."""
        request = recorded.request
        return (
            recorded.response is None
            or self._rules.is_background(request)
            or classify_request(request) == "other"
            or mcp.is_background_message(request)
        )

    def _is_background(self, request: Request) -> bool:
        if not self._rules.is_background(request):
            return False
        self.background[describe_endpoint(request)] = None
        return True

    @property
    def unused_count(self) -> int:
        """How many recorded exchanges were not used, noise and background messages included."""
        return self._index.unused_count

    def done(self, exchange: Exchange) -> None:
        """Compare a live answer of the shared prefix with the recorded one."""
        self._cues.pop(exchange.seq, None)
        if self._order is not None:
            self._order.end(exchange.seq)
        if exchange.seq not in self._compare:
            return
        recorded = self._compare.pop(exchange.seq)
        if exchange.answered_by == "fault":
            return
        is_compared = self._fork is not None and self.prefix.take_expected(exchange.seq) is None
        if recorded is not None and is_compared:
            return
        if recorded is None:
            self.diverged.append(
                self._misses.get_explanation(exchange.seq, self.redact(exchange.request))
            )
        elif (drift := explain_live_drift(recorded, self._redact_answer(exchange))) is not None:
            request = exchange.request
            self.diverged.append(f"live answer to {request.method} {request.url} {drift}")

    def _redact_answer(self, exchange: Exchange) -> Exchange:
        """Return the exchange with its answer redacted as on a tape, since the recorded one is."""
        answer = exchange.response
        if answer is None or not answer.body:
            return exchange
        message = Request(method="", url="", headers=answer.headers, body=answer.body)
        body = self.redact(message).body
        if body == answer.body:
            return exchange
        redacted = replace(answer, chunks=(Chunk(at=answer.at, data=body),))
        return replace(exchange, response=redacted)


def _retime_response(answer: Response, moved: Callable[[float], float]) -> Response:
    """Return the answer with mapped times: a third of the cost of `replace`, per request."""
    return Response(
        status=answer.status,
        headers=answer.headers,
        chunks=tuple([Chunk(at=moved(chunk.at), data=chunk.data) for chunk in answer.chunks]),
        trailers=answer.trailers,
        reason=answer.reason,
        version=answer.version,
        at=moved(answer.at),
        ended=None if answer.ended is None else moved(answer.ended),
    )


def _ends_conversation(recorded: Exchange) -> bool:
    """Return whether a model's answer requests nothing more of its agent."""
    dialect, answer = find_dialect(recorded.request), recorded.response
    if dialect is None or answer is None:
        return False
    said = dialect.parse_model_answer(answer.headers, answer.body)
    return said is not None and not said.calls


def _choose_header_policy(recording: Tape, options: PlaybackOptions) -> HeaderPolicy:
    if options.any_client:
        return "none"
    if recording.trajectory.is_imported or recording.trajectory.source == _ATTACH_SOURCE:
        return "shared"
    has_new_calls = options.fork is not None or "model" in options.live
    return "new calls" if has_new_calls else "all"


def find_tape_redactions(recording: Tape) -> tuple[RedactionRecord, ...] | None:
    """Return the redactions of a tape; None if its writer did not store them."""
    run = recording.trajectory
    is_stored = recording.redactions or (
        run.volatile >= TYPED_SINCE_VERSION and run.source != _ATTACH_SOURCE
    )
    return recording.redactions if is_stored else None


def select_playable_exchanges(recorded: Sequence[Exchange]) -> Sequence[Exchange]:
    """Return exchanges with a complete answer; the others are refused, not guessed."""
    if isinstance(recorded, LazyExchanges):
        return recorded.find_complete()
    return tuple(exchange for exchange in recorded if is_complete_exchange(exchange))


def select_unplayable_exchanges(recorded: Sequence[Exchange]) -> Sequence[Exchange]:
    """Return the exchanges without a complete answer."""
    if isinstance(recorded, LazyExchanges):
        return recorded.find_incomplete()
    return tuple(exchange for exchange in recorded if not is_complete_exchange(exchange))


def _choose_aside_status(request: Request) -> int:
    """Return the status a server sends for a background message it does not need."""
    if mcp.is_listening_request(request):
        return 405
    return 200 if request.method == "DELETE" else 202


def _is_listening_stream(request: Request, answer: Response | None) -> bool:
    content_type = find_header(answer.headers, "content-type") if answer else None
    return (
        mcp.is_listening_request(request)
        and content_type is not None
        and content_type.startswith("text/event-stream")
    )


def _replace_message_id(answer: Response, request: Request, recorded: Request) -> Response:
    """Return the recorded answer with the id of this request instead of the recorded one."""
    if (
        find_dialect(request) is not None
        or request.body == recorded.body
        or (mcp.read_client_message(recorded) is None and read_json_method(recorded) is None)
    ):
        return answer
    body = decode_content(answer.headers, answer.body)
    if body != answer.body and body is not None and answer.chunks:
        headers = tuple((k, v) for k, v in answer.headers if k.lower() != "content-encoding")
        chunk = replace(answer.chunks[-1], data=body)
        answer = replace(answer, headers=headers, chunks=(chunk,))
    edits = mcp.readdress_mcp_answer(request, recorded, answer.body)
    return replace(answer, chunks=apply_edits_to_chunks(answer.chunks, edits))


def explain_live_drift(recorded: Exchange, live: Exchange) -> str | None:
    """Describe how a live answer differs from the recorded one; None if they are equivalent."""
    if mcp.has_mcp_response(recorded) and mcp.has_mcp_response(live):
        recorded, live = _isolate_mcp_response(recorded), _isolate_mcp_response(live)
    old, new = recorded.response, live.response
    if live.error != recorded.error or old is None or new is None:
        if (live.error is None) == (recorded.error is None) and (old is None) == (new is None):
            return None
        return f"was {_describe_answer(recorded)}, is {_describe_answer(live)}"
    for place, before, after in find_answer_differences(old, new):
        return f"was {before} at {place}, is {after}"
    return None


def _isolate_mcp_response(exchange: Exchange) -> Exchange:
    """Return the exchange with only the response in its answer, whether streamed or not."""
    assert exchange.response is not None
    chunk = Chunk(at=0.0, data=mcp.to_canonical_response(exchange) or b"")
    response = replace(exchange.response, headers=(), chunks=(chunk,), ended=0.0)
    return replace(exchange, response=response, error=None)


def _describe_answer(exchange: Exchange) -> str:
    return exchange.error or (str(exchange.response.status) if exchange.response else "no answer")


def refuse_unrecorded_request(exchange: Exchange, why: str) -> Exchange:
    """Answer the exchange with a refusal that contains the explanation and is not retried."""
    error = {"error": {"type": "diverged", "message": why}}
    body = json.dumps(error).encode()
    at = exchange.started
    answer = Response(
        status=REFUSED_STATUS,
        reason="Not Recorded",
        headers=(
            ("content-type", "application/json"),
            ("content-length", str(len(body))),
            ("x-should-retry", "false"),
        ),
        chunks=(Chunk(at=at, data=body),),
        at=at,
        ended=at,
    )
    return replace(exchange, response=answer, answered_by="refused")
