"""The player against the plainest thing that could work: a list that is searched from the front.

Several conversations were recorded, one step of this and one of that; they ask the same tools the
same things and are told different ones. Now they come again in any other order and overlapping,
over HTTP and MCP, with the failures that were recorded and the retries after them, and among them
somebody asks for what nobody has recorded. Each request has to get what the list says, each
conversation its own recording, and nothing is ever said twice.
"""

import json
import socket
import tempfile
from collections import Counter
from collections.abc import Sequence
from contextlib import ExitStack
from copy import replace
from http.client import HTTPException, HTTPResponse
from itertools import count
from pathlib import Path

from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from recorder.proxy.server import ProxyServer
from replay.player import REFUSED_STATUS, TapePlayer
from tests.support.agents.concurrent_agents import (
    MODEL,
    SERVER,
    SHOP,
    Heard,
    Lane,
    Script,
    heard,
    key,
    recorded,
    said,
)
from tests.support.servers.replay_server_thread import Script as Seen
from tests.support.servers.replay_server_thread import (
    dial,
    eventually,
    on_stage,
)
from tests.support.tiers import examples
from traces.conversation.tracker import ConversationTap
from traces.model import Exchange, Request
from traces.taps import TapChain

STRANGER = -1

CALLS = st.tuples(st.sampled_from(["http", "mcp"]), st.sampled_from(["a", "a", "b"]))
FAILING = st.lists(st.sampled_from(["busy", "reset", "cut", "works"]), max_size=5).map(tuple)


def scripts(calls: int, prompts: Sequence[str]) -> st.SearchStrategy[list[Script]]:
    """Conversations with so many calls at once, which begin with these words."""
    turn = st.lists(CALLS, min_size=1, max_size=calls).map(tuple)
    turns = st.lists(turn, min_size=1, max_size=3)
    return st.lists(
        st.builds(Script, prompt=st.sampled_from(prompts), turns=turns.map(tuple), failing=FAILING),
        min_size=1,
        max_size=3,
    )


ORDERS = st.lists(st.integers(0, 5), max_size=40)


class Replayed(RuleBasedStateMachine):
    """All conversations once more, straight through the taps."""

    names = True

    @initialize(scripts=scripts(2, ["go", "stay"]), order=ORDERS)
    def begin(self, scripts: list[Script], order: list[int]) -> None:
        self.was = recorded(scripts, order, names=self.names)
        tape = self.was.tape
        self.requests = {key(x.request): x.request for x in tape.exchanges}
        self.left = list(tape.exchanges)
        self.lanes = [Lane(script.prompt, first=50, names=self.names) for script in scripts]
        self.due: dict[int, Exchange | None] = {}
        self.gone: set[int] = set()
        self.refused = 0
        self.watch = ConversationTap()
        self.player = TapePlayer(tape, self.watch)
        self.open()

    def open(self) -> None:
        self.taps, self.seqs = TapChain((self.watch, self.player)), count()
        self.played: dict[int, Exchange] = {}

    def ask(self, lane: int, request: Request) -> None:
        asked = Exchange(seq=next(self.seqs), request=request, started=0.0)
        self.played[lane] = self.taps.request(asked)

    def answer(self, lane: int) -> Heard:
        played = self.played.pop(lane)
        self.taps.done(played)
        return heard(played.response, played.error)

    @rule(number=st.integers(0, 5))
    def one_goes_on(self, number: int) -> None:
        """It asks, or takes the answer to what it asked."""
        if left := [n for n, lane in enumerate(self.lanes) if lane.asks is not None]:
            number = left[number % len(left)]
            self.go_on(number)
            while not self.lanes[number].at_rest:
                self.go_on(number)

    @rule(said=st.sampled_from(["z", '{"of": "a"}', "a b"]))
    def somebody_asks_for_what_was_never_said(self, said: str) -> None:
        self.stray(Request(method="POST", url=SHOP, body=said.encode()))

    @rule(number=st.integers(0, 40))
    def somebody_asks_too_often(self, number: int) -> None:
        """For a call that has all of its answers: those of other calls are not for it."""
        left = {key(x.request) for x in self.left}
        used = [r for k, r in self.requests.items() if k not in left and r.url != MODEL]
        if used:
            self.stray(used[number % len(used)])

    def go_on(self, number: int) -> None:
        lane = self.lanes[number]
        assert lane.asks is not None
        if not lane.waiting:
            lane.waiting, self.due[number] = True, self.expected(number, lane.asks)
            return self.ask(number, lane.asks)
        asked, got = lane.asks, self.answer(number)
        self.check(asked, self.due.pop(number), got)
        return lane.take(got)

    def expected(self, number: int, request: Request) -> Exchange | None:
        """What the list says: the first that is the same and was not used."""
        found = next((x for x in self.left if self.same(number, request, x)), None)
        self.left = [x for x in self.left if x is not found]
        return found

    def same(self, number: int, request: Request, recorded: Exchange) -> bool:
        return key(recorded.request) == key(request)

    def check(self, asked: Request, found: Exchange | None, got: Heard) -> None:
        if found is None:
            self.refused += 1
            assert got.status == REFUSED_STATUS
            return
        was = heard(found.response, found.error)
        assert got.whole == was.whole
        if was.whole:
            assert (got.status, said(got.body)) == (was.status, said(was.body))
        if was.good and asked.url == SERVER:
            assert json.loads(got.body)["id"] == json.loads(asked.body)["id"]

    def stray(self, request: Request) -> None:
        self.ask(STRANGER, request)
        self.check(request, None, self.answer(STRANGER))

    @invariant()
    def what_is_left_is_left(self) -> None:
        assert [x.seq for x in self.player.list_unasked()] == [x.seq for x in self.left]
        assert bool(self.player.diverged) == bool(self.refused)
        assert len(self.player.diverged) <= self.refused, "a retry is no other divergence"

    def teardown(self) -> None:
        for number, lane in enumerate(getattr(self, "lanes", ())):
            while lane.asks is not None:
                self.go_on(number)
        if hasattr(self, "lanes"):
            told = [tuple(x.kept) for n, x in enumerate(self.lanes) if n not in self.gone]
            assert not Counter(told) - Counter(self.was.heard)
            assert self.gone or not self.left


class Quiet(Replayed):
    """Requests do not say for which call they are; while one is open nobody else goes on."""

    names = False

    @initialize(scripts=scripts(1, ["go"]), order=ORDERS)
    def begin(self, scripts: list[Script], order: list[int]) -> None:
        apart = [replace(script, prompt=f"go {n}") for n, script in enumerate(scripts)]
        super().begin(apart, order)

    def same(self, number: int, request: Request, recorded: Exchange) -> bool:
        return super().same(number, request, recorded) and self.was.owners[recorded.seq] == number


class Performed(Replayed):
    """The same with a performer and sockets, where clients also leave."""

    def open(self) -> None:
        self.stack, self.lines, self.seen = ExitStack(), dict[int, socket.socket](), Seen()
        folder = self.stack.enter_context(tempfile.TemporaryDirectory())
        taps = (self.watch, self.player, self.seen)
        self.stage = self.stack.enter_context(on_stage(ProxyServer(confdir=Path(folder)), *taps))

    def ask(self, lane: int, request: Request) -> None:
        """Returns when it has arrived, so that the order is known."""
        line = self.lines.get(lane) or dial(self.stage)
        self.lines[lane] = line
        before = len(self.seen.asked)
        head = [f"{request.method} {request.url} HTTP/1.1", "host: x"]
        head += [f"{name}: {value}" for name, value in request.headers]
        head += [f"content-length: {len(request.body)}", "", ""]
        line.sendall("\r\n".join(head).encode() + request.body)
        assert eventually(lambda: len(self.seen.asked) > before)

    def answer(self, lane: int) -> Heard:
        line, answer = self.lines[lane], HTTPResponse(self.lines[lane])
        try:
            answer.begin()
            return Heard(answer.status, answer.read(), True)
        except (OSError, HTTPException):
            del self.lines[lane]
            line.close()
            return Heard(None, b"", False)
        finally:
            answer.close()

    @rule(number=st.integers(0, 5))
    def one_leaves_while_it_is_answered(self, number: int) -> None:
        """What it asked for is used up, and nobody else gets it."""
        waiting = [n for n, lane in enumerate(self.lanes) if lane.waiting]
        if not waiting:
            return
        number = waiting[number % len(waiting)]
        self.lines.pop(number).close()
        if self.due.pop(number) is None:
            self.refused += 1
        lane = self.lanes[number]
        lane.asks, lane.waiting = None, False
        self.gone.add(number)

    def teardown(self) -> None:
        try:
            super().teardown()
        finally:
            for line in getattr(self, "lines", {}).values():
                line.close()
            if hasattr(self, "stack"):
                self.stack.close()


# To make a failure as short as it can be takes minutes, so it is shown as it was found.
UNSHRUNK = settings(
    deadline=None,
    phases=(Phase.explicit, Phase.reuse, Phase.generate),
    report_multiple_bugs=False,
    suppress_health_check=[HealthCheck.too_slow],
)

TestReplayed = Replayed.TestCase
TestReplayed.settings = settings(UNSHRUNK, max_examples=examples(150), stateful_step_count=40)
TestQuiet = Quiet.TestCase
TestQuiet.settings = settings(UNSHRUNK, max_examples=examples(150), stateful_step_count=20)
TestPerformed = Performed.TestCase
TestPerformed.settings = settings(UNSHRUNK, max_examples=examples(15), stateful_step_count=30)
