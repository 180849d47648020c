"""The injector: a tap that decides which exchange a fault is injected into, and records it.

It runs before the player: a fault that never reaches the tool must not use up the tool's recorded
response. It decides when the request arrives. Only responses that may be changed are held back, and
a sham's are held back just the same. At the model boundary a replaced result stays replaced, with
the same bytes, in every later request that contains it: restoring the true text would reveal the
fault.

Several faults may apply to one call. Whatever their given order, effects on the world come first,
then values, then structure, then errors, then timing; a fault that keeps the request from the tool
leaves nothing to change for those before it.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from copy import replace
from typing import Protocol

from msgspec import Struct

from faults.injector import inject_mcp
from faults.injector.inject_mcp import AwaitedResultError, InjectedExchange
from faults.injector.inject_websocket import to_message_exchange, to_stream_exchange
from faults.injector.plausibility import DrawnExchange, draw_exchange
from faults.injector.tool_result_text import (
    is_visible_failure,
    render_tool_result,
    to_tool_exchange,
)
from faults.judging.detectability import rate_detectability
from faults.operator import COPY, Channel
from faults.readable_response import decode_readable_body
from faults.response_body import (
    NoInjectionSite,
    check_rewritable_request,
    respond_with_unknown_session,
)
from faults.seeded_random import make_draw_address
from faults.targeting.bound_fault import BoundFault, FaultState
from faults.targeting.model_turns import is_title_request
from faults.targeting.observations import NO_OBSERVATIONS, CleanObservations
from faults.targeting.read_or_write import classify_call_side
from traces.conversation.model_turn import ModelTurn, to_model_turn
from traces.conversation.tracker import (
    ConversationTap,
    ExchangeContext,
    TrackedCall,
    canonicalize_arguments,
)
from traces.dialects import find_dialect, mcp
from traces.dialects.types import ToolResult
from traces.model import BodyEdit, Exchange, Injection, Place, compose_body_edits

FAMILY_ORDER = ("X", "V", "S", "E", "T", "sham")
"""Order of families if several faults change one exchange."""


class ObservationSource(Protocol):
    """Source of clean observations: a recording, or the live run so far."""

    def for_call(self, call: TrackedCall, writes: bool | None = None) -> CleanObservations: ...


class _PlannedInjection(Struct, frozen=True):
    arm: FaultState
    call: TrackedCall | ModelTurn
    place: Place
    at: str


class _ResultOverride(Struct, frozen=True):
    """The replacement of a tool's result."""

    text: str
    flagged: bool
    """Whether it is marked as an error."""


type _ResultKey = tuple[str, str, int]
"""Identifies a result in any request: its call's id, its text, and its index among equal ones."""


class RunSeeds(Struct, frozen=True, kw_only=True):
    """Names a run, and seeds the random choices of its injections."""

    run: str
    trace: str
    """Names the recording, or the task if the run follows none."""
    seed: int = 0
    rep: int = 0
    began: float = 0.0
    """When the run began, in seconds since the epoch."""


class FaultInjector:
    """Injects faults into one run."""

    def __init__(
        self,
        armed: Iterable[BoundFault],
        watch: ConversationTap,
        injected: Callable[[Injection], None],
        *,
        seeds: RunSeeds,
        background: frozenset[str] = frozenset(),
        seen: ObservationSource = NO_OBSERVATIONS,
    ) -> None:
        self._watch, self._injected = watch, injected
        self._seeds = seeds
        self._background, self._seen = background, seen
        arms = [FaultState(each, seeds.seed, seeds.trace, seeds.rep) for each in armed]
        self._arms = tuple(sorted(arms, key=lambda arm: FAMILY_ORDER.index(arm.operator.family)))
        self._of_calls = tuple(arm for arm in self._arms if arm.fault.at != "model")
        self._of_turns = tuple(arm for arm in self._arms if arm.fault.at == "model")
        self._offered = any(arm.site.turn.offers for arm in arms if arm.site and arm.site.turn)
        """Whether tools are offered to the model in this run, as far as is known."""
        self._asked = 0
        self._held: dict[int, tuple[_PlannedInjection, ...]] = {}
        self._awaited: dict[mcp.McpContinuation, list[_PlannedInjection]] = {}
        """Injections whose result arrives in the response to a later request."""
        self._lost_sessions: set[str | None] = set()
        """MCP sessions that a fault ended: their server knows them no more."""
        self._lies: dict[_ResultKey, _ResultOverride | None] = {}
        self.fired = 0
        self._no_site: list[str] = []

    @property
    def no_site(self) -> list[str]:
        """Why faults could not be injected at sites that were reached."""
        awaited = (
            str(AwaitedResultError(key)) for key, each in self._awaited.items() for _ in each
        )
        return [*self._no_site, *awaited]

    @property
    def unfired(self) -> tuple[str, ...]:
        """The faults that reached no call at all."""
        return tuple(arm.operator.name for arm in self._arms if not arm.reached)

    def request(self, exchange: Exchange) -> Exchange:
        """Inject at the request: rewrite its results, answer it, or hold its response back."""
        context = self._watch.find_context(exchange)
        if context.kind == "model":
            rewritten = self._rewrite_results(exchange, context) if context.results else exchange
            return self._inject_at_model(rewritten, context) if self._of_turns else rewritten
        if self._lost_sessions and mcp.find_session(exchange.request) in self._lost_sessions:
            return replace(respond_with_unknown_session(exchange), answered_by="fault")
        if continued := self._pop_continued(exchange):
            return self._inject_or_hold(exchange, continued)
        if context.call is None or context.call.reached_over is None:
            return exchange
        return self._inject_or_hold(
            exchange, self._plan_injections(context.call, context.call.reached_over)
        )

    def _pop_continued(self, exchange: Exchange) -> tuple[_PlannedInjection, ...]:
        """Return the injections whose result the response to this request has, if any."""
        key = mcp.find_continued_call(exchange.request) if self._awaited else None
        return tuple(self._awaited.pop(key, ())) if key is not None else ()

    def _inject_at_model(self, exchange: Exchange, placed: ExchangeContext) -> Exchange:
        """Inject into the response of a turn, unless it is a side request of the client."""
        turn = to_model_turn(exchange.seq, placed)
        is_side_request = (
            turn is not None and not turn.offers and (self._offered or is_title_request(placed))
        )
        if turn is None or is_side_request:
            return exchange
        self._offered = self._offered or turn.offers
        arms = tuple(arm for arm in self._of_turns if arm.is_due(turn, "model"))
        return self._inject_or_hold(exchange, self._use_attempts(arms, turn, "model"))

    def _inject_or_hold(
        self, exchange: Exchange, injections: tuple[_PlannedInjection, ...]
    ) -> Exchange:
        """Answer the request if that is possible now, else hold its response back."""
        if not injections:
            return exchange
        if all(injection.arm.operator.forwards for injection in injections):
            self._held[exchange.seq] = injections
            for injection in injections:
                injection.arm.held += 1
            return exchange
        return self._inject_faults(exchange, injections)

    def holds(self, exchange: Exchange) -> bool:
        """Return whether the response of an exchange is to be changed."""
        return exchange.seq in self._held

    def response(self, exchange: Exchange) -> Exchange:
        """Inject into a response that was held back."""
        injections = self._held.pop(exchange.seq, ())
        for injection in injections:
            injection.arm.held -= 1
        return self._inject_faults(exchange, injections)

    def _plan_injections(self, call: TrackedCall, place: Place) -> tuple[_PlannedInjection, ...]:
        """Return the injections for the next attempt of a call, and use up the attempt."""
        new = self._watch.conversations.calls_since(self._asked)
        self._asked += len(new)
        for arm in self._of_calls:
            if not arm.aim.late:
                for each in new:
                    arm.take(each)
        return self._use_attempts(
            [arm for arm in self._of_calls if arm.is_due(call, place)], call, place
        )

    def _use_attempts(
        self, arms: Sequence[FaultState], call: TrackedCall | ModelTurn, place: Place
    ) -> tuple[_PlannedInjection, ...]:
        for arm in arms:
            arm.reached = True
            arm.use_attempt(call)
        return tuple(
            _PlannedInjection(arm, call, place, self._make_address(arm, call)) for arm in arms
        )

    def _make_address(self, arm: FaultState, call: TrackedCall | ModelTurn) -> str:
        """Return the draw address; with `same_args` every repetition has that of the first."""
        persists = arm.fault.persist == "same_args"
        call = (
            arm.find_recorded_turn(call) or call
        )  # lanes are numbered as they come, and they may race
        return make_draw_address(
            seed=self._seeds.seed,
            trace=self._seeds.trace,
            rep=self._seeds.rep,
            fault=arm.operator.name,
            tool=call.tool,
            arguments=canonicalize_arguments(call.arguments),
            occurrence=(arm.site.ordinal if arm.site else 0) if persists else call.ordinal,
        )

    def _inject_faults(
        self, exchange: Exchange, injections: tuple[_PlannedInjection, ...]
    ) -> Exchange:
        """Apply all injections to the exchange and record each of them."""
        for planned in injections:
            try:
                applied = self._inject_fault(exchange, planned)
            except AwaitedResultError as error:
                self._awaited.setdefault(error.continuation, []).append(planned)
                continue
            except NoInjectionSite as error:
                self._no_site.append(str(error))
                continue
            injection = self._make_injection(exchange.seq, planned)
            copy_param = {COPY: planned.arm.copy} if COPY in planned.arm.fault.params else {}
            injection = replace(
                injection,
                original=_find_recorded_result(planned)
                if applied.original is None
                else applied.original,
                mutated=applied.mutated,
                error_channel=applied.channel,
                params={**injection.params, **copy_param},
                dead=applied.dead,
            )
            rated = self._rate_detectability(injection, planned)
            if rated.detect is not None and applied.detect is not None:
                rated = replace(rated, detect=min(rated.detect, applied.detect))
            self._injected(rated)
            if planned.arm.operator.ends_session:
                self._lost_sessions.add(mcp.find_session(exchange.request))
            sham = planned.arm.operator.family == "sham"
            exchange = applied.exchange if sham else replace(applied.exchange, answered_by="fault")
        return exchange

    def _inject_fault(self, exchange: Exchange, injection: _PlannedInjection) -> InjectedExchange:
        operator = injection.arm.operator
        shows = operator.shows[injection.place]
        if operator.ends_session and mcp.find_session(exchange.request) is None:
            raise NoInjectionSite("this call belongs to no MCP session over HTTP")
        if injection.place == "mcp" and isinstance(injection.call, TrackedCall):
            tool = self._watch.conversations.find_offered_tool(injection.call)
            return inject_mcp.inject_into_mcp(
                exchange,
                injection.call,
                shows,
                lambda shown, valid: self._draw_exchange(shown, injection, valid),
                copy=injection.arm.copy,
                returns=tool.returns if tool else None,
                known=next(
                    self._find_observations(injection.call).find_answers(injection.call.tool), None
                ),
            )
        messages = exchange.transport == "websocket"
        output = self._draw_exchange(
            to_stream_exchange(exchange) if messages else exchange, injection
        )
        changed = to_message_exchange(exchange, output.exchange) if messages else output.exchange
        return InjectedExchange(
            exchange=changed,
            original=decode_readable_body(exchange.response),
            mutated=decode_readable_body(changed.response),
            channel=shows.channel,
            dead=output.dead,
        )

    def _draw_exchange(
        self,
        exchange: Exchange,
        injection: _PlannedInjection,
        valid: Callable[[str], bool] = lambda text: True,
    ) -> DrawnExchange:
        """Return the changed exchange; a wrong value is redrawn until it can be traced."""
        operator, fault = injection.arm.operator, injection.arm.fault
        return draw_exchange(
            operator,
            exchange,
            {name: value for name, value in fault.params.items() if name != COPY},
            injection.at,
            seen=replace(self._find_observations(injection.call), began=self._seeds.began),
            background=self._background,
            valid=valid,
        )

    def _find_observations(self, call: TrackedCall | ModelTurn) -> CleanObservations:
        if isinstance(call, ModelTurn):
            return NO_OBSERVATIONS
        writes = {"read": False, "write": True}.get(classify_call_side(call) or "")
        return self._seen.for_call(call, writes)

    def _rate_detectability(self, injection: Injection, planned: _PlannedInjection) -> Injection:
        return replace(
            injection, detect=rate_detectability(injection, self._find_observations(planned.call))
        )

    def _rewrite_results(self, exchange: Exchange, placed: ExchangeContext) -> Exchange:
        dialect = find_dialect(exchange.request)
        if dialect is None:
            return exchange
        body = self._watch.known_request(exchange).body
        edits: list[BodyEdit] = []
        injections: list[Injection] = []
        keyed = _key_results(placed.results) if self._lies else []
        for call, result in placed.returned:
            if self._lies and _find_result_key(keyed, result) in self._lies:
                continue
            if strikes := self._plan_injections(call, "model-boundary"):
                keyed = keyed or _key_results(placed.results)
                flags = bool(result.is_error or dialect.mark_result_failed(body, result))
                key = _find_result_key(keyed, result)
                injections += self._override_result(exchange, result, key, strikes, flags=flags)
        for key, result in keyed if self._lies else ():
            if (override := self._lies.get(key)) is not None:
                edits += dialect.replace_result(body, result, override.text)
                edits += dialect.mark_result_failed(body, result) if override.flagged else ()
        sorted_edits = sorted(set(edits), key=lambda edit: (edit.start, edit.stop, edit.data))
        all_edits = compose_body_edits(exchange.edits, tuple(sorted_edits), body)
        for injection in injections:
            new_edits = tuple(edit for edit in all_edits if edit not in exchange.edits)
            self._injected(replace(injection, edits=new_edits))
        return replace(exchange, edits=all_edits) if edits else exchange

    def _override_result(
        self,
        exchange: Exchange,
        result: ToolResult,
        key: _ResultKey,
        strikes: tuple[_PlannedInjection, ...],
        *,
        flags: bool,
    ) -> list[Injection]:
        """Decide the replacement of a result from now on; None if there is no site.

        `flags`: whether the dialect has an error flag for results.
        """
        injections: list[Injection] = []
        if not strikes:
            return injections
        self._lies[key] = None
        try:
            check_rewritable_request(exchange.request)
        except NoInjectionSite as error:
            self._no_site.append(str(error))
            return injections
        call = strikes[0].call
        assert isinstance(call, TrackedCall)
        changed = to_tool_exchange(exchange.seq, result, call)
        for planned in strikes:
            try:
                output = self._draw_exchange(changed, planned)
                text = render_tool_result(output.exchange)
            except NoInjectionSite as error:
                self._no_site.append(str(error))
                continue
            changed, previous = output.exchange, self._lies[key]
            flagged = planned.arm.operator.shows[planned.place].channel == "flag"
            channel: Channel = "flag" if flagged and flags else "text"
            injection = self._make_injection(exchange.seq, planned)
            injection = replace(
                injection,
                side="request",
                original=_encode_client_text(result.text if previous is None else previous.text),
                mutated=_encode_client_text(text),
                error_channel=channel if flagged else injection.error_channel,
                rendered=is_visible_failure(changed),
                dead=output.dead,
            )
            injections.append(self._rate_detectability(injection, planned))
            self._lies[key] = _ResultOverride(
                text, channel == "flag" or (previous is not None and previous.flagged)
            )
        return injections

    def _make_injection(self, seq: int, injection: _PlannedInjection) -> Injection:
        """Create the record of an injection; the fault counts as fired from here on."""
        arm, call = injection.arm, injection.call
        self.fired += 1
        arm.fired += 1
        id = f"{self._seeds.run}/{self.fired}"
        first, arm.first = arm.first, arm.first or id
        return Injection(
            id=id,
            seq=seq,
            side="response",
            op=arm.operator.name,
            family=arm.operator.family,
            place=injection.place,
            address=injection.at,
            tool=_find_target_tool(injection),
            call_id=call.id if isinstance(call, TrackedCall) else None,
            arguments=call.arguments if isinstance(call, TrackedCall) else None,
            params=arm.operator.with_defaults(arm.fault.params),
            persist=arm.fault.persist,
            error_channel=arm.operator.shows[injection.place].channel,
            sham=arm.operator.family == "sham",
            repeat_of=first,
        )


def _find_target_tool(injection: _PlannedInjection) -> str | None:
    """Return the called tool; for a turn, the tools that its response calls in the recording."""
    if isinstance(injection.call, TrackedCall):
        return injection.call.tool
    turn = injection.arm.find_recorded_turn(injection.call)
    return (", ".join(turn.tools) or None) if turn else None


def _find_recorded_result(injection: _PlannedInjection) -> bytes | None:
    """Return the tool's result in the recording, if it is known."""
    site = injection.arm.site
    if site is None or site.result is None or not site.is_call(injection.call):
        return None
    return _encode_client_text(site.result)


def _encode_client_text(text: str) -> bytes:
    """Encode a text; clients that cut texts may leave half of a surrogate pair."""
    return text.encode("utf-8", "surrogatepass")


def _key_results(results: Sequence[ToolResult]) -> list[tuple[_ResultKey, ToolResult]]:
    """Return the results of a request with keys that are stable across requests.

    Ids may repeat; whatever else the client has dropped, equal results keep their order.
    """
    times = Counter[tuple[str, str]]()
    keyed = list[tuple[_ResultKey, ToolResult]]()
    for result in results:
        keyed.append(((result.call_id, result.text, times[result.call_id, result.text]), result))
        times[result.call_id, result.text] += 1
    return keyed


def _find_result_key(
    keyed: Sequence[tuple[_ResultKey, ToolResult]], result: ToolResult
) -> _ResultKey:
    """Return the key of this result."""
    return next(key for key, each in keyed if each is result)
