"""The player: the tap that answers from a recording, and refuses rather than guess.

Three ways to play, one rule for a miss. *Strict*: everything comes from the tape. *Live*: the
named kinds go out, and each answer is held against the recorded one. *Fork*: the model comes
from the tape until a request carries the result of the struck call, from there on its lane is
live; with a world the tools are live from the start, without one they come from the tape.

What a strict replay proves: determinism. The tools were not contacted, so it says nothing
about recovery, and nothing here ever makes an outcome of it.
"""

import json
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Literal

from replay.calls import Asker, Served, served
from replay.cues import Cue, cues
from replay.difference import answer_differences
from replay.lanes import Fork, Lanes
from replay.match import BUILT_IN, Index, Match
from replay.misses import Misses
from replay.rules import SHORTEST, Rules
from traces.conversation import Placed, Watch
from traces.dialects import lens, mcp
from traces.encoding import plain
from traces.kind import Kind, kind
from traces.model import Chunk, Edit, Exchange, Headers, Request, Response, edited_chunks, header
from traces.noise import noise
from traces.tape import Shelf, Tape, over
from traces.websocket import declined, upgrades

type OnMiss = Literal["refuse", "live", "halt"]
"""What becomes of a request that the recording does not hold: it is refused, it goes out where
something can answer it, or it is refused and ends the agent."""

READING = ("GET", "HEAD")
"""Requests that change nothing: who asks again gets the answer that a fault kept from it."""
REFUSED = 422
"""No SDK retries it; the header says so to those that ask."""


class Player:
    """Answers from one recording, for one run."""

    def __init__(
        self,
        recording: Tape,
        watch: Watch,
        *,
        live: Collection[Kind] = (),
        fork: Fork | None = None,
        speed: float = 0,
        redact: Callable[[Request], Request] = lambda request: request,
        rules: Rules = BUILT_IN,
        on_miss: OnMiss = "refuse",
        halt: Callable[[], object] = lambda: None,
    ) -> None:
        told = playable(recording.exchanges)
        self._index = Index(told, rules, partial(served, recording))
        self._on_miss, self._halt = on_miss, halt
        self._watch, self._live, self._fork, self._speed = watch, live, fork, speed
        self._redact = redact
        self._lanes = Lanes(fork, watch.conversations)
        self._misses = Misses(self._index, unplayable(recording.exchanges), rules)
        self._played: dict[int, Exchange] = {}
        self._tokens: dict[str, str] = {}
        self._compare: dict[int, Exchange | None] = {}
        self._given: dict[int, int] = {}
        """The recorded answer, by its seq, that each request of a model was given."""
        self._told: set[int] = set()
        self._nobody = Asker(None, self._told)
        self._injected = False
        """Whether a fault of a fork has reached an answer of a tool: the client is live now."""
        self.diverged: list[str] = []
        """One explanation for each request that left the recording, however often it was tried."""
        self.missed: list[str] = []
        """Tool calls after the fork that a recording without a world cannot answer: each halts."""
        self.went_live: list[int] = []
        self.matched: dict[int, Match] = {}
        """What each request was answered with, by its seq."""
        self.saved: list[Exchange] = []
        """Model exchanges of the recording that did not have to be paid for again."""

    def request(self, exchange: Exchange) -> Exchange:
        """Answer from the recording, let it go live, or refuse it with an explanation."""
        placed = self._watch.placed(exchange)
        if exchange.response is not None or exchange.error is not None:
            self._answered_before(exchange, placed)
            return exchange
        if placed.kind == "other":
            return self._other(exchange)
        if upgrades(exchange.request):
            return self._open(exchange, placed)
        if self._goes_live(exchange, placed):
            return replace(exchange, cascade=True) if self._lanes.felt(placed) else exchange
        if placed.kind == "tool" and mcp.is_aside(exchange.request):
            return self._aside(exchange)
        return self._play(exchange, placed)

    def _answered_before(self, exchange: Exchange, placed: Placed) -> None:
        """A model's turn that was struck is over: what was recorded of it answers no other try.

        So a replay without a fork never goes on to the recorded end, and a fork is live from here.
        """
        self._see_fault(exchange, placed)
        if placed.kind == "model" and not self._lanes.live(placed):
            self._found(exchange)

    def response(self, exchange: Exchange) -> Exchange:
        """See a fault in an answer that was held back: the client may try again at once."""
        self._see_fault(exchange, self._watch.placed(exchange))
        return exchange

    def _see_fault(self, exchange: Exchange, placed: Placed) -> None:
        if self._fork and exchange.answered_by == "fault" and placed.kind == "tool":
            self._injected = True

    def _open(self, exchange: Exchange, placed: Placed) -> Exchange:
        """A WebSocket is opened as it was; where all is live it is declined, and clients go on."""
        if placed.kind not in self._live and not self._lanes:
            return self._play(exchange, placed)
        found = self._found(exchange)
        return self._answered(exchange, found) if found else declined(exchange)

    def _found(self, exchange: Exchange) -> Exchange | None:
        """The recorded exchange for this one, as it would go on, which is used up now.

        Where a result was struck on its way to the model, the recorded answer is to the true one.
        """
        match = self._index.find(exchange.forwarded, self._redact, self._asker(exchange))
        if match is None:
            return None
        self.matched[exchange.seq] = match
        return match.exchange

    def _asker(self, exchange: Exchange) -> Asker | None:
        """Whose request this is; None for one that is not of a tool."""
        placed = self._watch.placed(exchange)
        if placed.kind != "tool":
            return None
        call = placed.call
        asked_by = self._given.get(call.asked_by) if call is not None else None
        if call is None or asked_by is None:
            return self._nobody
        return Asker(Served(asked_by, call.id, placed.join == "id"), self._told)

    def _goes_live(self, exchange: Exchange, placed: Placed) -> bool:
        if placed.kind in self._live:
            self._expect(exchange)
            return True
        if self._fork is None:
            return False
        if placed.kind == "tool":
            if self._fork.world and not self._lanes:
                self._expect(exchange)
            return self._fork.world
        if not self._lanes.live(placed):
            return False
        self.went_live.append(exchange.seq)
        return True

    def _expect(self, exchange: Exchange) -> None:
        found = self._found(exchange)
        if self._injected:
            return
        if not mcp.is_aside(exchange.request):
            self._compare[exchange.seq] = found

    def _play(self, exchange: Exchange, placed: Placed) -> Exchange:
        found = self._found(exchange)
        if found is not None:
            if placed.kind == "model":
                self.saved.append(found)
                self._given[exchange.seq] = found.seq
                self._told.add(found.seq)
            return self._answered(exchange, found)
        if self._lanes and placed.kind == "model":
            self._lanes.cascade(placed.lane)
            self.went_live.append(exchange.seq)
            return replace(exchange, cascade=True)
        if self._on_miss == "live":
            self.went_live.append(exchange.seq)
            return exchange
        first = exchange.seq if placed.attempt_of is None else placed.attempt_of
        asked = self._redact(exchange.forwarded)
        if self._injected and placed.kind == "tool" and asked.method in READING:
            read = self._index.spent(asked, len(self._index.exchanges))
            if read is not None:
                return self._answered(exchange, read)
        again = self._misses.again(first, asked)
        why = self._misses.why(first, asked)
        forked = bool(self._lanes) or (self._injected and placed.kind == "tool")
        if not again:
            (self.missed if forked else self.diverged).append(why)
        if forked or self._on_miss == "halt":
            self._halt()
        return refuse(exchange, why)

    def _answered(self, exchange: Exchange, found: Exchange) -> Exchange:
        """The recorded answer, its times moved to now and scaled to the speed."""
        if exchange.transport == "stdio":
            self._played[exchange.seq] = found
            was, now = map(mcp.progress_token, (found.request, exchange.request))
            if was is not None and now is not None:
                self._tokens[was] = now

        def moved(at: float) -> float:
            ago = (at - found.started) / self._speed if self._speed else 0.0
            return exchange.started + ago

        answer = found.response
        if answer is not None:
            answer = _readdressed(answer, exchange.request, found.request)
            if self._index.names:
                answer = _renamed(answer, self._index.names)
            answer = _timed(answer, moved)
        return exchange.got(answer, found.error, "recorded")

    def _aside(self, exchange: Exchange) -> Exchange:
        """What nobody waits for is never diverged: where it is not recorded it is shrugged off.

        A listening stream lasts as long as its session, and a client opens another one when it
        ends. At full speed it would end at once, so the last one is held until the agent leaves.
        """
        request = exchange.request
        found = self._found(exchange)
        if found is None:
            at = exchange.started
            nothing = (("content-length", "0"),)
            answer = Response(status=_shrug(request), headers=nothing, at=at, ended=at)
            return replace(exchange, response=answer, answered_by="simulated")
        played = self._answered(exchange, found)
        if self._speed or not _streams(request, played.response) or self._again(found):
            return played
        endless = played.response and replace(played.response, ended=None)
        return replace(played, response=endless, error=played.error or "cancelled: by the agent")

    def _again(self, stream: Exchange) -> bool:
        """True where the recording opens the stream once more."""
        asked = stream.request
        left = (x.request for x in self._index.unused())
        return any((x.method, x.url) == (asked.method, asked.url) for x in left)

    def _other(self, exchange: Exchange) -> Exchange:
        found = self._found(exchange)
        if found is not None:
            return self._answered(exchange, found)
        status = 204 if noise(exchange.request.url) else 503
        headers: Headers = () if status == 204 else (("content-length", "0"),)
        at = exchange.started
        answer = Response(status=status, headers=headers, at=at, ended=at)
        return replace(exchange, response=answer, answered_by="simulated")

    @property
    def cascades(self) -> int:
        """Lanes that the fork was not made in and that are live."""
        return self._lanes.cascades

    def cues(self, start: Exchange) -> tuple[Cue, ...]:
        """When the chunks of a recorded START were said; none for one that was not played."""
        found = self._played.get(start.seq)
        return () if found is None else cues(found, self._index.exchanges, self._speed)

    def retold(self, message: bytes) -> bytes:
        """What a recorded START said, as this run knows the calls that it speaks of."""
        return mcp.retold(message, self._tokens)

    def unasked(self) -> tuple[Exchange, ...]:
        """What the recording holds that nobody asked for; noise and asides do not count.

        An agent that ends early has left the recording as well: it did not do what it did.
        """
        left = (x for x in self._index.unused() if kind(x.request) != "other")
        return tuple(x for x in left if not mcp.is_aside(x.request))

    def done(self, exchange: Exchange) -> None:
        """Hold a live answer of the shared prefix against the recorded one."""
        if exchange.seq not in self._compare:
            return
        recorded = self._compare.pop(exchange.seq)
        if exchange.answered_by == "fault":
            return
        if recorded is None:
            self.diverged.append(self._misses.why(exchange.seq, self._redact(exchange.request)))
        elif (why := drift(recorded, self._clean(exchange))) is not None:
            request = exchange.request
            self.diverged.append(f"live answer to {request.method} {request.url} {why}")

    def _clean(self, exchange: Exchange) -> Exchange:
        """The exchange with its answer as a tape holds it: secrets never were on the other one."""
        answer = exchange.response
        if answer is None or not answer.body:
            return exchange
        said = Request(method="", url="", headers=answer.headers, body=answer.body)
        body = self._redact(said).body
        if body == answer.body:
            return exchange
        whole = replace(answer, chunks=(Chunk(at=answer.at, data=body),))
        return replace(exchange, response=whole)


def _timed(answer: Response, moved: Callable[[float], float]) -> Response:
    """The answer at other times: `replace` in a third of its time, for each request."""
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


def playable(recorded: Sequence[Exchange]) -> Sequence[Exchange]:
    """Exchanges that are over and whole on the tape; the rest is refused, not guessed."""
    if isinstance(recorded, Shelf):
        return recorded.over()
    return tuple(exchange for exchange in recorded if over(exchange))


def unplayable(recorded: Sequence[Exchange]) -> Sequence[Exchange]:
    """The rest."""
    if isinstance(recorded, Shelf):
        return recorded.open()
    return tuple(exchange for exchange in recorded if not over(exchange))


def _shrug(request: Request) -> int:
    """What a server says to an aside that it can do without."""
    if mcp.listens(request):
        return 405
    return 200 if request.method == "DELETE" else 202


def _streams(request: Request, answer: Response | None) -> bool:
    said = header(answer.headers, "content-type") if answer else None
    return mcp.listens(request) and said is not None and said.startswith("text/event-stream")


def _readdressed(answer: Response, asked: Request, recorded: Request) -> Response:
    """The recorded answer with the id that was asked with, which may be another one now."""
    if lens(asked) is not None or asked.body == recorded.body or mcp.message(recorded) is None:
        return answer
    body = plain(answer.headers, answer.body)
    if body != answer.body and body is not None and answer.chunks:
        headers = tuple((k, v) for k, v in answer.headers if k.lower() != "content-encoding")
        chunk = replace(answer.chunks[-1], data=body)
        answer = replace(answer, headers=headers, chunks=(chunk,))
    edits = mcp.readdress(asked, recorded, answer.body)
    return replace(answer, chunks=edited_chunks(answer.chunks, edits))


def _renamed(answer: Response, names: Mapping[str, str]) -> Response:
    """The recorded answer with the values of this run in the place of those of the recording."""
    changed = {
        was.encode(): now.encode()
        for was, now in names.items()
        if was != now and len(was) >= SHORTEST
    }
    if not changed or header(answer.headers, "content-encoding") not in (None, "identity"):
        return answer
    any_of = re.compile(b"|".join(re.escape(was) for was in sorted(changed, key=len, reverse=True)))
    edits = tuple(
        Edit(start=found.start(), stop=found.end(), data=changed[found[0]])
        for found in any_of.finditer(answer.body)
    )
    return replace(answer, chunks=edited_chunks(answer.chunks, edits)) if edits else answer


def drift(recorded: Exchange, live: Exchange) -> str | None:
    """How a live answer differs from the recorded one; None where they say the same."""
    if mcp.replied(recorded) and mcp.replied(live):
        recorded, live = _response(recorded), _response(live)
    was, now = recorded.response, live.response
    if live.error != recorded.error or was is None or now is None:
        if (live.error is None) == (recorded.error is None) and (was is None) == (now is None):
            return None
        return f"was {_outcome(recorded)}, is {_outcome(live)}"
    for where, before, after in answer_differences(was, now):
        return f"was {before} at {where}, is {after}"
    return None


def _response(exchange: Exchange) -> Exchange:
    """The exchange with nothing but the response that is in its answer, stream or not."""
    assert exchange.response is not None
    chunk = Chunk(at=0.0, data=mcp.response(exchange) or b"")
    whole = replace(exchange.response, headers=(), chunks=(chunk,), ended=0.0)
    return replace(exchange, response=whole, error=None)


def _outcome(exchange: Exchange) -> str:
    return exchange.error or (str(exchange.response.status) if exchange.response else "no answer")


def refuse(exchange: Exchange, why: str) -> Exchange:
    """The exchange answered by a refusal that carries its explanation and is not retried."""
    error = {"error": {"type": "diverged", "message": why}}
    body = json.dumps(error).encode()
    at = exchange.started
    answer = Response(
        status=REFUSED,
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
