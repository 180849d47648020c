"""The nemesis: the tap that decides which exchange is struck, and writes down that it was.

It stands before the player: a fault that never reaches the tool must not use up the tool's
recorded answer. It decides when the request is there; only what it may strike is held back,
and a sham is held back just the same. At the model boundary a struck result stays struck, with
the same bytes, in every later request that carries it: to un-rewrite history would reveal the
lie.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase

from faults.address import address, rng
from faults.atoms import atoms
from faults.body import NoSite, text
from faults.operator import Operator, bind
from faults.site import Site
from traces.conversation import Call, Watch, canonical_arguments
from traces.dialects import lens
from traces.model import (
    Chunk,
    Edit,
    Exchange,
    Fault,
    Injection,
    Request,
    Response,
    header,
)
from traces.step import Result

REDRAWS = 16


@dataclass(frozen=True, slots=True)
class _Strike:
    call: Call
    at: str


class Nemesis:
    """Strikes one site of one run with one fault."""

    def __init__(
        self,
        fault: Fault,
        site: Site,
        watch: Watch,
        injected: Callable[[Injection], None],
        *,
        run: str,
        trace: str,
        seed: int = 0,
        rep: int = 0,
        background: frozenset[str] = frozenset(),
    ) -> None:
        self._fault, self._site, self._watch, self._injected = fault, site, watch, injected
        self._operator: Operator = bind(fault)
        self._run, self._trace, self._seed, self._rep = run, trace, seed, rep
        self._background = background
        self._held: dict[int, _Strike] = {}
        self._lies: dict[tuple[str, str], str] = {}
        self._reached = False
        self.fired = 0
        self.no_site: list[str] = []
        """Why a site that was reached could not be struck."""

    def request(self, exchange: Exchange) -> Exchange:
        """Strike at the request: rewrite results in it, answer it, or note it to be held back."""
        placed = self._watch.placed(exchange)
        if self._site.place == "model-boundary" and placed.kind == "model":
            return self._rewrite(exchange, placed.results, placed.lane or 0)
        if self._site.place == "http" and placed.call is not None and self._strikes(placed.call):
            strike = _Strike(placed.call, self._address(placed.call))
            if self._operator.forwards:
                self._held[exchange.seq] = strike
                return exchange
            return self._bend(exchange, strike)
        return exchange

    def holds(self, exchange: Exchange) -> bool:
        """True for an exchange whose answer is to be bent."""
        return exchange.seq in self._held

    def response(self, exchange: Exchange) -> Exchange:
        """Bend an answer that was held back."""
        strike = self._held.pop(exchange.seq, None)
        return exchange if strike is None else self._bend(exchange, strike)

    def _strikes(self, call: Call) -> bool:
        limit = self._fault.max_injections
        if limit is None:
            limit = 1 if self._fault.persist == "once" else None
        if limit is not None and self.fired + len(self._held) >= limit:
            return False
        here = self._site.is_call(call)
        self._reached = self._reached or here
        match self._fault.persist:
            case "once":
                return here
            case "same_args":
                arguments = canonical_arguments(call.arguments)
                same = (call.tool, arguments) == (self._site.tool, self._site.arguments)
                return self._reached and same
            case "permanent":
                wanted = self._fault.where.get("tool", "*")
                return self._reached and fnmatchcase(call.tool, wanted)

    def _address(self, call: Call) -> str:
        """What persists for the same arguments tells the same lie: its occurrence is the site's."""
        persists = self._fault.persist == "same_args"
        return address(
            seed=self._seed,
            trace=self._trace,
            rep=self._rep,
            fault=self._fault.name,
            tool=call.tool,
            arguments=canonical_arguments(call.arguments),
            occurrence=self._site.ordinal if persists else call.ordinal,
        )

    def _bend(self, exchange: Exchange, strike: _Strike) -> Exchange:
        try:
            bent = self._drawn(exchange, strike.at)
        except NoSite as error:
            self.no_site.append(str(error))
            return exchange
        self.fired += 1
        original = exchange.response.body if exchange.response else None
        clean = self._site.result.encode() if self._site.result is not None else None
        self._injected(
            replace(
                self._injection(exchange.seq, strike),
                side="response",
                original=clean if original is None else original,
                mutated=bent.response.body if bent.response else None,
            )
        )
        return bent if self._operator.family == "sham" else replace(bent, answered_by="fault")

    def _drawn(self, exchange: Exchange, at: str) -> Exchange:
        """The bent exchange; a wrong value is drawn again until its fate can be told."""
        for draw in range(REDRAWS):
            bent = self._operator(exchange, rng(at, draw), self._fault.params)
            if self._operator.family != "V" or self._traceable(text(exchange), text(bent)):
                return bent
        raise NoSite(f"no wrong value in {REDRAWS} draws that occurs nowhere else")

    def _traceable(self, original: str, mutated: str) -> bool:
        introduced = atoms(mutated) - atoms(original)
        return bool(introduced) and not introduced & self._background

    def _rewrite(self, exchange: Exchange, results: tuple[Result, ...], lane: int) -> Exchange:
        dialect = lens(exchange.request)
        if dialect is None or not results:
            return exchange
        edits: list[Edit] = []
        struck: list[tuple[Result, _Strike]] = []
        for result in results:
            key = (result.call_id, result.text)
            call = self._watch.conversations.call(lane, result.call_id)
            if key not in self._lies and call is not None and self._strikes(call):
                strike = _Strike(call, self._address(call))
                if self._lie(exchange, result, strike):
                    struck.append((result, strike))
            if key in self._lies:
                body = exchange.request.body
                edits += dialect.replace(body, result.call_id, self._lies[key])
        edits = sorted(set(edits), key=lambda edit: edit.start)
        for result, strike in struck:
            self._injected(
                replace(
                    self._injection(exchange.seq, strike),
                    side="request",
                    edits=tuple(edits),
                    original=result.text.encode(),
                    mutated=self._lies[result.call_id, result.text].encode(),
                    rendered=not self._operator.forwards,
                    error_channel="none" if self._operator.channel == "none" else "text",
                )
            )
        return replace(exchange, edits=tuple(edits)) if edits else exchange

    def _lie(self, exchange: Exchange, result: Result, strike: _Strike) -> bool:
        """Decide what stands in place of a result from now on; False where nothing can."""
        try:
            if header(exchange.request.headers, "content-encoding") not in (None, "identity"):
                raise NoSite("the model request is compressed")
            lie = rendered(self._drawn(as_exchange(exchange.seq, result, strike.call), strike.at))
        except NoSite as error:
            self.no_site.append(str(error))
            return False
        self.fired += 1
        self._lies[result.call_id, result.text] = lie
        return True

    def _injection(self, seq: int, strike: _Strike) -> Injection:
        return Injection(
            id=f"{self._run}/{self.fired}",
            seq=seq,
            side="response",
            op=self._operator.name,
            family=self._operator.family,
            place=self._site.place,
            address=strike.at,
            tool=strike.call.tool,
            call_id=strike.call.id,
            arguments=strike.call.arguments,
            params=self._operator.effective(self._fault.params),
            persist=self._fault.persist,
            error_channel=self._operator.channel,
            sham=self._operator.family == "sham",
            repeat_of=f"{self._run}/1" if self.fired > 1 else None,
        )


def as_exchange(seq: int, result: Result, call: Call) -> Exchange:
    """A tool result as an exchange, so that one operator serves every place."""
    request = Request(method="CALL", url=f"tool:{call.tool}", body=call.arguments.encode())
    chunk = Chunk(at=0.0, data=result.text.encode("utf-8", "surrogatepass"))
    return Exchange(
        seq=seq, request=request, response=Response(status=200, chunks=(chunk,), ended=0.0)
    )


def rendered(bent: Exchange) -> str:
    """The text a client would show for a bent exchange: its body, or its status and body."""
    body = text(bent)
    status = bent.response.status if bent.response else 0
    return body if status < 400 else f"HTTP {status}: {body}"
