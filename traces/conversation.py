"""Lanes, open calls, attempts and joins: who is talking, and what is being waited for.

Exchanges are fed in the order in which things happened, while recording and while reading, by
the same code: `asked` when a request is whole, `answered` when its answer is over. A lane is
one growing conversation: a request belongs to the lane whose last request is the longest
prefix of it, else to the lane whose open call it answers (clients rewrite what was said before:
reminders, dates, dropped thoughts), else it begins a new lane. Everything here is derived and
can improve.

Where the provider keeps the conversation a request holds only what is new, and names the answer
it goes on from. What came before is put before it, from that answer and its own request, so
that all is as if the agent had sent it again. An answer that was never seen, or not to its end,
is named in `Placed.missing`, and nothing is guessed.
"""

import hashlib
import json
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from itertools import chain, count
from typing import Literal, NamedTuple
from urllib.parse import urlsplit

from traces.canonical import canonical
from traces.dialects import lens, mcp, text_history
from traces.encoding import plain
from traces.kind import Kind, unspoken
from traces.model import Chunk, Exchange, Mark, Request, Response, header
from traces.step import Answer, Asked, Lens, Message, Result, ToolCall

type Join = Literal["id", "map", "window", "args"]
"""How an exchange was found to belong to a call: the first of these that names just one.

    id      a header or a value of MCP's `_meta` is the call's id
    map     what the user said of the tool; for MCP the call's own tool and arguments
    window  no other call is open
    args    they share a word that looks like an id; one of several MCP calls that say the same
"""

TOLD = ("system", "developer", "user")
"""Roles whose messages are steps; what a model said is one when it is said."""

STRONG: tuple[Join, ...] = ("id", "map", "window")
"""Joins that a fault by tool name may rely on."""


def canonical_arguments(text: str) -> str:
    """Arguments in canonical JSON; the text itself where the model wrote no JSON."""
    try:
        return canonical(text or "{}").decode("utf-8", "replace")
    except ValueError:
        return text


@dataclass(slots=True, eq=False)
class Call:
    """A tool call the model asked for, and what is known of it so far."""

    id: str
    tool: str
    arguments: str
    """As the model wrote them."""
    lane: int
    asked_by: int
    """seq of the model exchange that asked for it."""
    prefix: str
    """Address of the conversation up to the request that asked for it."""
    ordinal: int
    """How many calls with the same tool and arguments came before it in the lane."""
    step: int = 0
    """The step that asked for it, as a story counts them."""
    over: Literal["http", "mcp"] | None = None
    """How its own requests went; None as long as it has made none."""
    server: str | None = None
    """The host of its first request, or the name of a server over stdio."""
    stdio: bool = False
    """Whether that server is one over stdio."""
    read_only: bool | None = None
    """Whether it changes nothing, as its MCP server says; None where that does not."""
    stage: str | None = None
    """The stage of a pipeline in which it was asked for."""
    exchanges: list[tuple[int, Join]] = field(default_factory=list)
    result: Result | None = None
    result_seq: int | None = None
    """seq of the first model request that carries the result."""

    @property
    def open(self) -> bool:
        """True until a model request has carried its result."""
        return self.result is None

    @property
    def place(self) -> Literal["http", "mcp", "local"]:
        """Where it is carried out, as far as is known."""
        return self.over or "local"


@dataclass(slots=True, eq=False)
class _Lane:
    number: int
    parent: int | None = None
    prefix: str = ""
    messages: int = 0
    told: int = 0
    """How many messages its request before the last one held."""
    turns: int = 0
    offers: bool = False


class Placed(NamedTuple):
    """Where an exchange belongs."""

    kind: Kind
    lane: int | None
    attempt_of: int | None = None
    call: Call | None = None
    join: Join | None = None
    messages: tuple[Message, ...] = ()
    """The whole conversation, also where the request holds only the end of it."""
    results: tuple[Result, ...] = ()
    """Those in the request itself."""
    returned: tuple[tuple[Call, Result], ...] = ()
    """The calls whose result no request before this one carried, with that result."""
    prefix: str = ""
    """Address of the conversation."""
    missing: str | None = None
    """The answer it goes on from, where that is not known; `messages` lacks what was before."""
    silent: bool = False
    """True for a warm-up, which is no step."""
    dialect: Lens | None = None
    """In which a model is asked; None also for what only opens a WebSocket to one."""
    turn: int = 0
    """Which of its lane's turns it is, from 1; that of the first attempt, where it is another."""
    step: int = 0
    """The step that its answer will be, as a story counts them."""
    offers: bool = False
    """True where its lane began by offering the model tools, in whatever form."""
    stage: str | None = None
    """The stage of a pipeline in which it was asked."""


class _Told(NamedTuple):
    """A conversation as a provider keeps it."""

    messages: tuple[Message, ...] = ()
    results: tuple[str, ...] = ()
    """The call ids of the results in it."""
    lane: int | None = None


TELLING = 12
"""Characters of a text that says more than chance would where it stands in two places."""
_OFFERED = re.compile(rb'"tools"\s*:\s*\[\s*\{')
"""Tools were handed over; inside a text the quotes would be escaped."""
_NOTHING = _Told()
_LATEST = 64
"""How many answers a live run may go on from, where the provider keeps the conversation."""


class Conversations:
    """All lanes of one trajectory. `tools` maps a tool name to `METHOD url-path-glob`.

    `live`: what was said is not kept longer than it takes to place what comes next, so that a
    run may go on for as long as it likes.
    """

    def __init__(self, tools: Mapping[str, str] | None = None, *, live: bool = False) -> None:
        self._tools = dict(tools or {})
        self._live = live
        self._readings: dict[str, Callable[[bytes], Asked]] = {}
        """What reads the requests of each dialect; it remembers what it has read."""
        self._lanes: list[_Lane] = []
        self._by_prefix: dict[int, dict[str, _Lane]] = {}
        """By the number of messages so far, which are few, and by their address."""
        self._calls: dict[tuple[int, str], Call] = {}
        self._failed: dict[tuple[object, ...], int] = {}
        self._asked: dict[int, _Told] = {}
        self._kept: dict[str, _Told] = {}
        self._asked_for: list[Call] = []
        self._listing: set[int] = set()
        self._offered: dict[str, dict[str, mcp.Tool]] = {}
        """By server, what it says of its tools."""
        self.placed: dict[int, Placed] = {}
        self.steps = 0
        """How many steps there were, as a story counts them."""
        self.last: Answer | None = None
        """The latest answer of a model, in any lane."""
        self.said: list[str] = []
        """What models said, in words, in that order."""
        self.stage: str | None = None
        """The stage of a pipeline that an agent is at; None between them."""

    @property
    def calls(self) -> tuple[Call, ...]:
        """All calls so far, in the order in which they were asked for."""
        return tuple(self._calls.values())

    def since(self, count: int) -> list[Call]:
        """The calls that were asked for after the first `count`, in that order."""
        return self._asked_for[count:]

    @property
    def lanes(self) -> int:
        """How many lanes there are."""
        return len(self._lanes)

    def parent(self, lane: int) -> int | None:
        """The lane that had a call open for this one when it began, as for a helper agent.

        None where none had: known by a text among the call's arguments that stands in what the
        new lane was first told, of several the longest.
        """
        return self._lanes[lane].parent

    def offered(self, call: Call) -> mcp.Tool | None:
        """What an MCP server says of the tool of a call; None where none that we know has it."""
        servers = self._offered
        if call.over == "mcp" and call.server is not None:
            servers = {call.server: servers.get(call.server, {})}
        return mcp.meant(call.tool, [tool for own in servers.values() for tool in own.values()])

    def open_calls(self) -> list[Call]:
        """The calls whose result no model request has carried yet."""
        return [call for call in self._calls.values() if call.open]

    def call(self, lane: int, call_id: str) -> Call | None:
        """The call of that id in a lane."""
        return self._calls.get((lane, call_id))

    def marked(self, mark: Mark) -> None:
        """Take in what the command of the run told: where a stage began, or its agent ended."""
        if mark.name == "stage":
            self.stage = str(mark.data.get("stage"))
        elif mark.name == "agent":
            self.stage = None

    def asked(self, exchange: Exchange) -> Placed:
        """Take in a request and say where it belongs."""
        dialect = lens(exchange.request)
        what = unspoken(exchange.request) if dialect is None else "model"
        if dialect is not None:
            placed = self._model(exchange, dialect)
        elif what == "tool":
            placed = self._tool(exchange)
        else:
            placed = Placed(what, None)
        self.placed[exchange.seq] = placed
        return placed

    def answered(self, exchange: Exchange) -> Answer | None:
        """Take in an answer; returns what a model answered, None for anything else."""
        placed = self.placed[exchange.seq]
        answer = _read(placed, exchange.response)
        if exchange.seq in self._listing:
            self._listed(exchange)
        if failed(exchange) or _unsaid(placed, answer):
            key = self._key(exchange, placed)
            self._failed.setdefault(key, placed.attempt_of or exchange.seq)
        elif self._failed:
            self._failed.pop(self._key(exchange, placed), None)
        told = self._asked.pop(exchange.seq, _NOTHING)
        if answer is None or exchange.response is None or placed.lane is None:
            return None
        if answer.id is not None and answer.finish is not None:
            messages = (*told.messages, *answer.said)
            self._kept[answer.id] = told._replace(messages=messages)
            if self._live and len(self._kept) > _LATEST:
                del self._kept[next(iter(self._kept))]
        if placed.silent:
            return None
        self.steps += 1
        if exchange.response.status < 400:
            self.last = answer
            if answer.message:
                self.said.append(answer.message)
            for call in answer.calls:
                self._open(call, self._lanes[placed.lane], exchange.seq)
        return answer

    def _listed(self, exchange: Exchange) -> None:
        self._listing.discard(exchange.seq)
        if (answer := exchange.response) is not None:
            own = self._offered.setdefault(urlsplit(exchange.request.url).netloc, {})
            own.update({tool.name: tool for tool in mcp.tools(answer.headers, answer.body)})

    def _model(self, exchange: Exchange, dialect: Lens) -> Placed:
        body = plain(exchange.request.headers, exchange.request.body) or b""
        asked = self._read(dialect, body)
        messages, results, state = asked.messages, asked.results, asked.state
        before = self._kept.get(state.previous or "", _NOTHING)
        if before.messages:
            messages = (*messages[: state.lead], *before.messages, *messages[state.lead :])
        lane = self._lane(messages, results, before.lane)
        if lane.turns == 0:
            lane.offers = dialect is text_history or _OFFERED.search(body) is not None
        missing = state.previous if state.previous not in self._kept else None
        new = messages[0 if missing else lane.told :]
        self.steps += sum(message.role in TOLD for message in new)
        returned = list[tuple[Call, Result]]()
        for name, result in _numbered(results, before.results) if results else ():
            call = self._calls.get((lane.number, name))
            if call is not None and call.open:
                call.result = replace(result, text="") if self._live else result
                call.result_seq = exchange.seq
                returned.append((call, result))
        ids = (*before.results, *[result.call_id for result in results])
        self._asked[exchange.seq] = _Told(messages[state.lead :], ids, lane.number)
        placed = Placed(
            "model",
            lane.number,
            messages=messages,
            results=results,
            returned=tuple(returned),
            prefix=lane.prefix,
            missing=missing,
            silent=state.silent,
            dialect=dialect,
            offers=lane.offers,
            stage=self.stage,
        )
        attempt = self._failed.get(_turn(placed)) if self._failed else None
        lane.turns += attempt is None and not state.silent
        return placed._replace(attempt_of=attempt, turn=lane.turns, step=self.steps + 1)

    def _read(self, dialect: Lens, body: bytes) -> Asked:
        if dialect.NAME not in self._readings:
            self._readings[dialect.NAME] = dialect.reading()
        return self._readings[dialect.NAME](body)

    def _lane(
        self, messages: tuple[Message, ...], results: tuple[Result, ...], before: int | None
    ) -> _Lane:
        address = _address(messages)
        lane = self._continued(messages, address) or self._begun(before)
        lane = lane or (self._answering(results) if results else None)
        if lane is None:
            lane = _Lane(len(self._lanes), self._calling(messages))
            self._lanes.append(lane)
        else:
            self._by_prefix[lane.messages].pop(lane.prefix, None)
        lane.told, lane.messages = lane.messages, len(messages)
        lane.prefix = address
        self._by_prefix.setdefault(lane.messages, {})[lane.prefix] = lane
        return lane

    def _continued(self, messages: tuple[Message, ...], address: str) -> _Lane | None:
        """The lane with the longest conversation that this one begins with."""
        most, lanes = len(messages), self._by_prefix
        for length in sorted([n for n in lanes if 0 < n <= most and lanes[n]], reverse=True):
            known = address if length == most else _address(messages[:length])
            if (lane := lanes[length].get(known)) is not None:
                return lane
        return None

    def _begun(self, before: int | None) -> _Lane | None:
        """The lane of the answer it goes on from, if nothing was said there: a bare warm-up."""
        lane = None if before is None else self._lanes[before]
        return lane if lane is not None and lane.messages == 0 else None

    def _answering(self, results: tuple[Result, ...]) -> _Lane | None:
        """The one lane that waits for some of these results."""
        given = {result.call_id for result in results}
        waiting = {call.lane for call in self.open_calls() if call.id in given}
        return self._lanes[waiting.pop()] if len(waiting) == 1 else None

    def _calling(self, messages: tuple[Message, ...]) -> int | None:
        """The lane whose open call says what these messages say; None where two say as much."""
        if not (waiting := self.open_calls()):
            return None
        told = "\n".join([message.content for message in messages])
        said = [(_most(call.arguments, told), call.lane) for call in waiting]
        most = max((length for length, _ in said), default=0)
        lanes = {lane for length, lane in said if length == most}
        return lanes.pop() if most >= TELLING and len(lanes) == 1 else None

    def _open(self, call: ToolCall, lane: _Lane, seq: int) -> None:
        arguments = canonical_arguments(call.arguments)
        ordinal = sum(
            other.tool == call.name and canonical_arguments(other.arguments) == arguments
            for (number, _), other in self._calls.items()
            if number == lane.number
        )
        id = self._unused(lane.number, call.id)
        if (lane.number, id) not in self._calls:
            found = Call(
                id, call.name, call.arguments, lane.number, seq, lane.prefix, ordinal, self.steps
            )
            found.read_only, found.stage = self._reads(found), self.stage
            self._calls[lane.number, id] = found
            self._asked_for.append(found)

    def _reads(self, call: Call) -> bool | None:
        tool = self.offered(call) if self._offered else None
        return tool.read_only if tool is not None else None

    def _unused(self, lane: int, id: str) -> str:
        """An id whose call was answered names another call when it comes again: `id#2`."""
        for name in chain([id], (f"{id}#{number}" for number in count(2))):
            call = self._calls.get((lane, name))
            if call is None or call.open:
                return name
        raise AssertionError("count never ends")

    def _tool(self, exchange: Exchange) -> Placed:
        said = mcp.message(exchange.request)
        if said is not None and said.call is None:
            if said.method == "tools/list":
                self._listing.add(exchange.seq)
            return Placed("tool", None)
        call, join = self._joined(exchange.request, said)
        lane = call.lane if call else (0 if len(self._lanes) == 1 else None)
        if call is not None and join is not None:
            if not call.exchanges:
                call.over = "http" if said is None else "mcp"
                call.server = urlsplit(exchange.request.url).netloc
                call.stdio = exchange.transport == "stdio"
                call.read_only = self._reads(call)
            call.exchanges.append((exchange.seq, join))
        placed = Placed("tool", lane, None, call, join)
        if not self._failed:
            return placed
        return placed._replace(attempt_of=self._failed.get(self._key(exchange, placed)))

    def _joined(
        self, request: Request, said: mcp.Message | None
    ) -> tuple[Call, Join] | tuple[None, None]:
        waiting = self.open_calls()
        told = {header(request.headers, "x-tool-call-id"), *(said.meta if said else ())} - {None}
        calls = self._calls.values() if told else ()
        if named := [call for call in calls if call.id.partition("#")[0] in told]:
            # One that is closed is meant only where no open one has that id, as in a late retry.
            return max(named, key=lambda call: call.open), "id"
        if said is not None and said.call is not None:
            mapped = [call for call in waiting if _means(call, said.call)]
            if len(mapped) > 1:
                return min(mapped, key=lambda call: len(call.exchanges)), "args"
        else:
            mapped = [call for call in waiting if self._maps(call.tool, request)]
        if len(mapped) == 1:
            return mapped[0], "map"
        if len(waiting) == 1:
            return waiting[0], "window"
        sharing = [call for call in waiting if _shares_atom(call.arguments, request)]
        return (sharing[0], "args") if len(sharing) == 1 else (None, None)

    def _maps(self, tool: str, request: Request) -> bool:
        method, _, glob = self._tools.get(tool, "").partition(" ")
        return request.method == method and fnmatchcase(urlsplit(request.url).path, glob)

    def _key(self, exchange: Exchange, placed: Placed) -> tuple[object, ...]:
        request = exchange.request
        if placed.kind == "model" and placed.lane is not None:
            return _turn(placed)
        call = placed.call.id if placed.call else None
        body = mcp.gist(request) if placed.kind == "tool" else None
        said = request.body if body is None else body
        return placed.kind, placed.lane, call, request.method, request.url, said


class Watch:
    """The tap that keeps `Conversations` up to date while traffic flows; first in the list.

    A client acts on the last words of a stream before the stream is over. So when a new
    request comes, every answer under way that already says how it finished is taken in first.
    """

    def __init__(self, tools: Mapping[str, str] | None = None) -> None:
        self.conversations = Conversations(tools, live=True)
        self._flowing: dict[int, _Flowing] = {}
        self._told: dict[int, Request] = {}

    def told(self, exchange: Exchange) -> Request:
        """What is asked once a tap before this one has edited it: the conversation as it is known.

        What later taps edit is no part of it.
        """
        return self._told.get(exchange.seq, exchange.request)

    def placed(self, exchange: Exchange) -> Placed:
        """Where an exchange belongs that this tap has seen and that is not over."""
        return self.conversations.placed[exchange.seq]

    def request(self, exchange: Exchange) -> Exchange:
        for seq, flowing in list(self._flowing.items()):
            answer = flowing.answer()
            said = _read(self.conversations.placed[seq], answer)
            if answer is not None and said is not None and said.finish is not None:
                self.conversations.answered(replace(flowing.exchange, response=answer))
                del self._flowing[seq]
        if exchange.edits:
            self._told[exchange.seq] = exchange.forwarded
        if self.conversations.asked(self._as_told(exchange)).kind == "model":
            self._flowing[exchange.seq] = _Flowing(self._as_told(exchange))
        return exchange

    def _as_told(self, exchange: Exchange) -> Exchange:
        told = self._told.get(exchange.seq)
        return exchange if told is None else replace(exchange, request=told, edits=())

    def head(self, exchange: Exchange) -> None:
        if exchange.seq in self._flowing:
            self._flowing[exchange.seq] = _Flowing(self._as_told(exchange))

    def chunk(self, exchange: Exchange, chunk: Chunk) -> None:
        if (flowing := self._flowing.get(exchange.seq)) is not None:
            flowing.chunks.append(chunk)

    def done(self, exchange: Exchange) -> None:
        if self._flowing.pop(exchange.seq, None) or self.placed(exchange).kind != "model":
            self.conversations.answered(self._as_told(exchange))
        self._told.pop(exchange.seq, None)
        del self.conversations.placed[exchange.seq]

    whole = done


@dataclass(slots=True, eq=False)
class _Flowing:
    """A model's answer under way."""

    exchange: Exchange
    """With the head of the answer, once that is there."""
    chunks: list[Chunk] = field(default_factory=list)

    def answer(self) -> Response | None:
        """The answer as if its last chunk so far were the last; None before there is any."""
        head = self.exchange.response
        if head is None or not self.chunks:
            return None
        return replace(head, chunks=tuple(self.chunks), ended=self.chunks[-1].at)


def _read(placed: Placed, answer: Response | None) -> Answer | None:
    """What a model has answered so far; None where that is nothing."""
    if placed.dialect is None or answer is None or not answer.chunks:
        return None
    return placed.dialect.read(answer.headers, answer.body)


def _unsaid(placed: Placed, answer: Answer | None) -> bool:
    """True where a model was asked and its answer is none, or has no end, whatever its status."""
    return (
        placed.lane is not None
        and placed.kind == "model"
        and (answer is None or answer.finish is None)
    )


def _turn(placed: Placed) -> tuple[object, ...]:
    """What a turn asks: its conversation. Who tries again may send other bytes around it, on
    another connection or to another model.
    """
    return placed.kind, placed.lane, placed.prefix, placed.silent


def failed(exchange: Exchange) -> bool:
    """True where a client may try the same again: no answer, a cut one, or a 4xx/5xx."""
    answer = exchange.response
    if answer is None or answer.status >= 400:
        return True
    cut = exchange.error is not None or (answer.ended is None and exchange.transport == "http")
    return cut and not mcp.replied(exchange)


def _numbered(
    results: tuple[Result, ...], before: tuple[str, ...] = ()
) -> Iterator[tuple[str, Result]]:
    """The results and the names of the calls they answer: ids may come again (see `_unused`)."""
    seen = Counter(before)
    for result in results:
        seen[result.call_id] += 1
        again = seen[result.call_id]
        yield result.call_id if again == 1 else f"{result.call_id}#{again}", result


def _address(messages: tuple[Message, ...]) -> str:
    """The address of a conversation: equal conversations, equal addresses."""
    said = b"".join([message.address for message in messages])
    return hashlib.blake2b(said, digest_size=16).hexdigest() if messages else ""


def _means(call: Call, asked: ToolCall) -> bool:
    """True if this message to an MCP server is what the model asked for."""
    same = canonical_arguments(call.arguments) == canonical_arguments(asked.arguments)
    return same and mcp.names(call.tool, asked.name)


def _most(arguments: str, told: str) -> int:
    """Characters of the longest text in a call's arguments that is told as well."""
    try:
        texts = _texts(json.loads(arguments or "{}"))
    except ValueError:
        texts = iter((arguments,))
    return max((len(text) for text in map(str.strip, texts) if text and text in told), default=0)


def _texts(value: object) -> Iterator[str]:
    match value:
        case str():
            yield value
        case list():
            for each in value:
                yield from _texts(each)
        case dict():
            for each in value.values():
                yield from _texts(each)


def _shares_atom(arguments: str, request: Request) -> bool:
    """True if an id-like word of the arguments (4 or more, with a digit) is in the request."""
    words = "".join(c if c.isalnum() or c in "-_" else " " for c in arguments).split()
    where = request.url.encode() + b" " + request.body
    return any(
        word.encode() in where
        for word in words
        if len(word) >= 4 and any(c.isdigit() for c in word)
    )
