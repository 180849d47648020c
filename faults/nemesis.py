"""The nemesis: the tap that decides which exchange is struck, and writes down that it was.

It stands before the player: a fault that never reaches the tool must not use up the tool's
recorded answer. It decides when the request is there; only what it may strike is held back,
and a sham is held back just the same. At the model boundary a struck result stays struck, with
the same bytes, in every later request that carries it: to un-rewrite history would reveal the
lie.

Several faults may strike one call. Whatever order they were given in, what a fault does to the
world comes first, then values, then structure, then errors, then timing; one that keeps the
request from the tool leaves nothing to bend for those before it.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from faults import over_mcp
from faults.address import address
from faults.armed import Arm, Armed
from faults.body import NoSite, rewritable
from faults.detectability import detectability
from faults.operator import COPY, Channel
from faults.over_mcp import Landed
from faults.over_websocket import as_messages, as_stream
from faults.rendering import as_exchange, failed, rendered
from faults.seen import NOTHING, Seen
from faults.side import acts
from faults.turns import titles
from faults.validity import Drawn, drawn
from traces.conversation import Call, Placed, Watch, canonical_arguments
from traces.dialects import lens
from traces.encoding import plain
from traces.model import Edit, Exchange, Injection, Place, Response, composed
from traces.step import Result
from traces.turn import Turn, turn

ORDER = ("X", "V", "S", "E", "T", "sham")
"""Families in the order in which several faults bend one exchange."""


class Known(Protocol):
    """What is known of the clean run: that of a recording, or what this one has shown so far."""

    def of(self, call: Call, writes: bool | None = None) -> Seen: ...


@dataclass(frozen=True, slots=True)
class _Strike:
    arm: Arm
    call: Call | Turn
    place: Place
    at: str


@dataclass(frozen=True, slots=True)
class _Lie:
    """What stands in place of a tool's result."""

    text: str
    flagged: bool
    """Whether it is marked as an error."""


type _Key = tuple[str, str, int]
"""A result in any request: its call's id, its text, and which of those that are alike it is."""


class Nemesis:
    """Strikes one run with some faults."""

    def __init__(
        self,
        armed: Iterable[Armed],
        watch: Watch,
        injected: Callable[[Injection], None],
        *,
        run: str,
        trace: str,
        seed: int = 0,
        rep: int = 0,
        background: frozenset[str] = frozenset(),
        seen: Known = NOTHING,
    ) -> None:
        self._watch, self._injected = watch, injected
        self._run, self._trace, self._seed, self._rep = run, trace, seed, rep
        self._background, self._seen = background, seen
        arms = [Arm(each, seed, trace, rep) for each in armed]
        self._arms = tuple(sorted(arms, key=lambda arm: ORDER.index(arm.operator.family)))
        self._of_calls = tuple(arm for arm in self._arms if arm.fault.at != "model")
        self._of_turns = tuple(arm for arm in self._arms if arm.fault.at == "model")
        self._offered = any(arm.site.turn.offers for arm in arms if arm.site and arm.site.turn)
        """Whether tools are offered to the model in this run, as far as is known."""
        self._asked = 0
        self._held: dict[int, tuple[_Strike, ...]] = {}
        self._lies: dict[_Key, _Lie | None] = {}
        self.fired = 0
        self.no_site: list[str] = []
        """Why a site that was reached could not be struck."""

    @property
    def unfired(self) -> tuple[str, ...]:
        """The faults that reached no call at all."""
        return tuple(arm.operator.name for arm in self._arms if not arm.reached)

    def request(self, exchange: Exchange) -> Exchange:
        """Strike at the request: rewrite results in it, answer it, or note it to be held back."""
        placed = self._watch.placed(exchange)
        if placed.kind == "model":
            told = self._rewrite(exchange, placed) if placed.results else exchange
            return self._at_model(told, placed) if self._of_turns else told
        if placed.call is None or placed.call.over is None:
            return exchange
        return self._at_once(exchange, self._strikes(placed.call, placed.call.over))

    def _at_model(self, exchange: Exchange, placed: Placed) -> Exchange:
        """Strike the answer to a turn, where it is one that the agent asks for itself."""
        asked = turn(exchange.seq, placed)
        aside = asked is not None and not asked.offers and (self._offered or titles(placed))
        if asked is None or aside:
            return exchange
        self._offered = self._offered or asked.offers
        arms = tuple(arm for arm in self._of_turns if arm.strikes(asked, "model"))
        return self._at_once(exchange, self._spent(arms, asked, "model"))

    def _at_once(self, exchange: Exchange, strikes: tuple[_Strike, ...]) -> Exchange:
        """Answer it where that can be done now, else note that its answer is to be bent."""
        if not strikes:
            return exchange
        if all(strike.arm.operator.forwards for strike in strikes):
            self._held[exchange.seq] = strikes
            for strike in strikes:
                strike.arm.held += 1
            return exchange
        return self._bend(exchange, strikes)

    def holds(self, exchange: Exchange) -> bool:
        """True for an exchange whose answer is to be bent."""
        return exchange.seq in self._held

    def response(self, exchange: Exchange) -> Exchange:
        """Bend an answer that was held back."""
        strikes = self._held.pop(exchange.seq, ())
        for strike in strikes:
            strike.arm.held -= 1
        return self._bend(exchange, strikes)

    def _strikes(self, call: Call, place: Place) -> tuple[_Strike, ...]:
        """What strikes the next attempt of a call at a place, which is spent with that."""
        new = self._watch.conversations.since(self._asked)
        self._asked += len(new)
        for arm in self._of_calls:
            if not arm.aim.late:
                for each in new:
                    arm.take(each)
        return self._spent([arm for arm in self._of_calls if arm.strikes(call, place)], call, place)

    def _spent(self, arms: Sequence[Arm], call: Call | Turn, place: Place) -> tuple[_Strike, ...]:
        for arm in arms:
            arm.reached = True
            arm.spend(call)
        return tuple(_Strike(arm, call, place, self._address(arm, call)) for arm in arms)

    def _address(self, arm: Arm, call: Call | Turn) -> str:
        """What persists for the same arguments tells the same lie: its occurrence is the first."""
        persists = arm.fault.persist == "same_args"
        call = arm.recorded(call) or call  # lanes are numbered as they come, and they may race
        return address(
            seed=self._seed,
            trace=self._trace,
            rep=self._rep,
            fault=arm.operator.name,
            tool=call.tool,
            arguments=canonical_arguments(call.arguments),
            occurrence=(arm.site.ordinal if arm.site else 0) if persists else call.ordinal,
        )

    def _bend(self, exchange: Exchange, strikes: tuple[_Strike, ...]) -> Exchange:
        """The exchange with what each strike makes of it, and each written down."""
        for strike in strikes:
            try:
                landed = self._landed(exchange, strike)
            except NoSite as error:
                self.no_site.append(str(error))
                continue
            injection = self._injection(exchange.seq, strike)
            chosen = {COPY: strike.arm.copy} if COPY in strike.arm.fault.params else {}
            injection = replace(
                injection,
                original=_recorded(strike) if landed.original is None else landed.original,
                mutated=landed.mutated,
                error_channel=landed.channel,
                params={**injection.params, **chosen},
                dead=landed.dead,
            )
            judged = self._judged(injection, strike)
            if judged.detect is not None and landed.detect is not None:
                judged = replace(judged, detect=min(judged.detect, landed.detect))
            self._injected(judged)
            sham = strike.arm.operator.family == "sham"
            exchange = landed.exchange if sham else replace(landed.exchange, answered_by="fault")
        return exchange

    def _landed(self, exchange: Exchange, strike: _Strike) -> Landed:
        shows = strike.arm.operator.shows[strike.place]
        if strike.place == "mcp" and isinstance(strike.call, Call):
            tool = self._watch.conversations.offered(strike.call)
            return over_mcp.landed(
                exchange,
                strike.call,
                shows,
                lambda shown, valid: self._drawn(shown, strike, valid),
                copy=strike.arm.copy,
                returns=tool.returns if tool else None,
                known=next(self._known(strike.call).answers(strike.call.tool), None),
            )
        messages = exchange.transport == "websocket"
        found = self._drawn(as_stream(exchange) if messages else exchange, strike)
        bent = as_messages(exchange, found.exchange) if messages else found.exchange
        return Landed(
            exchange=bent,
            original=_said(exchange.response),
            mutated=_said(bent.response),
            channel=shows.channel,
            dead=found.dead,
        )

    def _drawn(
        self,
        exchange: Exchange,
        strike: _Strike,
        valid: Callable[[str], bool] = lambda text: True,
    ) -> Drawn:
        """The bent exchange; a wrong value is drawn again until its fate can be told."""
        operator, fault = strike.arm.operator, strike.arm.fault
        return drawn(
            operator,
            exchange,
            {name: value for name, value in fault.params.items() if name != COPY},
            strike.at,
            seen=self._known(strike.call),
            background=self._background,
            valid=valid,
        )

    def _known(self, call: Call | Turn) -> Seen:
        if isinstance(call, Turn):
            return NOTHING
        writes = {"read": False, "write": True}.get(acts(call) or "")
        return self._seen.of(call, writes)

    def _judged(self, injection: Injection, strike: _Strike) -> Injection:
        return replace(injection, detect=detectability(injection, self._known(strike.call)))

    def _rewrite(self, exchange: Exchange, placed: Placed) -> Exchange:
        dialect = lens(exchange.request)
        if dialect is None:
            return exchange
        body = self._watch.told(exchange).body
        edits: list[Edit] = []
        struck: list[Injection] = []
        keyed = _keyed(placed.results) if self._lies else []
        for call, result in placed.returned:
            if self._lies and _key(keyed, result) in self._lies:
                continue
            if strikes := self._strikes(call, "model-boundary"):
                keyed = keyed or _keyed(placed.results)
                flags = bool(result.is_error or dialect.fail(body, result))
                key = _key(keyed, result)
                struck += self._lie(exchange, result, key, strikes, flags=flags)
        for key, result in keyed if self._lies else ():
            if (lie := self._lies.get(key)) is not None:
                edits += dialect.put(body, result, lie.text)
                edits += dialect.fail(body, result) if lie.flagged else ()
        ours = sorted(set(edits), key=lambda edit: (edit.start, edit.stop, edit.data))
        lies = composed(exchange.edits, tuple(ours), body)
        for injection in struck:
            own = tuple(edit for edit in lies if edit not in exchange.edits)
            self._injected(replace(injection, edits=own))
        return replace(exchange, edits=lies) if edits else exchange

    def _lie(
        self,
        exchange: Exchange,
        result: Result,
        key: _Key,
        strikes: tuple[_Strike, ...],
        *,
        flags: bool,
    ) -> list[Injection]:
        """Decide what stands in place of a result from now on; nothing does where nothing can.

        `flags`: whether the dialect has a flag for a result that is an error.
        """
        found: list[Injection] = []
        if not strikes:
            return found
        self._lies[key] = None
        try:
            rewritable(exchange.request)
        except NoSite as error:
            self.no_site.append(str(error))
            return found
        call = strikes[0].call
        assert isinstance(call, Call)
        bent = as_exchange(exchange.seq, result, call)
        for strike in strikes:
            try:
                new = self._drawn(bent, strike)
                text = rendered(new.exchange)
            except NoSite as error:
                self.no_site.append(str(error))
                continue
            bent, said = new.exchange, self._lies[key]
            flagged = strike.arm.operator.shows[strike.place].channel == "flag"
            channel: Channel = "flag" if flagged and flags else "text"
            injection = self._injection(exchange.seq, strike)
            injection = replace(
                injection,
                side="request",
                original=_bytes(result.text if said is None else said.text),
                mutated=_bytes(text),
                error_channel=channel if flagged else injection.error_channel,
                rendered=failed(bent),
                dead=new.dead,
            )
            found.append(self._judged(injection, strike))
            self._lies[key] = _Lie(text, channel == "flag" or (said is not None and said.flagged))
        return found

    def _injection(self, seq: int, strike: _Strike) -> Injection:
        """The fact that a fault fired, which counts from here on."""
        arm, call = strike.arm, strike.call
        self.fired += 1
        arm.fired += 1
        id = f"{self._run}/{self.fired}"
        first, arm.first = arm.first, arm.first or id
        return Injection(
            id=id,
            seq=seq,
            side="response",
            op=arm.operator.name,
            family=arm.operator.family,
            place=strike.place,
            address=strike.at,
            tool=_tool(strike),
            call_id=call.id if isinstance(call, Call) else None,
            arguments=call.arguments if isinstance(call, Call) else None,
            params=arm.operator.effective(arm.fault.params),
            persist=arm.fault.persist,
            error_channel=arm.operator.shows[strike.place].channel,
            sham=arm.operator.family == "sham",
            repeat_of=first,
        )


def _tool(strike: _Strike) -> str | None:
    """The tool that was called; of a turn those that its answer calls in the recording."""
    if isinstance(strike.call, Call):
        return strike.call.tool
    known = strike.arm.recorded(strike.call)
    return (", ".join(known.tools) or None) if known else None


def _recorded(strike: _Strike) -> bytes | None:
    """What the tool would have said, where the recording knows."""
    site = strike.arm.site
    if site is None or site.result is None or not site.is_call(strike.call):
        return None
    return _bytes(site.result)


def _bytes(text: str) -> bytes:
    """Clients that cut a text short may leave half of a character."""
    return text.encode("utf-8", "surrogatepass")


def _keyed(results: Sequence[Result]) -> list[tuple[_Key, Result]]:
    """The results of a request, by what tells them apart whenever they are told again.

    Ids may come again; whatever else the client has dropped by then, those that say the same
    stay in their order.
    """
    times = Counter[tuple[str, str]]()
    found = list[tuple[_Key, Result]]()
    for result in results:
        found.append(((result.call_id, result.text, times[result.call_id, result.text]), result))
        times[result.call_id, result.text] += 1
    return found


def _key(keyed: Sequence[tuple[_Key, Result]], result: Result) -> _Key:
    """That of one of them."""
    return next(key for key, each in keyed if each is result)


def _said(answer: Response | None) -> bytes | None:
    """What an answer says: its body without content encoding, where that can be undone."""
    if answer is None:
        return None
    data = plain(answer.headers, answer.body)
    return answer.body if data is None else data
