"""The tap of a daemon: each exchange goes to the tape of its conversation.

The agents see nothing but their servers: whatever goes wrong with a tape, or here, is counted and
told, and the traffic passes on.
"""

import asyncio
import os
import shutil
import traceback
from collections.abc import Callable
from concurrent.futures import Future, ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

from msgspec import Struct

from stumble.daemon.conversation_index import (
    ConversationIndex,
    ConversationState,
    ReadRequest,
    read_answer,
)
from stumble.daemon.conversation_tape import (
    ConversationTape,
    WriteExchange,
    end_with_parent,
    keep_tape,
    open_conversation_tape,
)
from stumble.daemon.metrics import DaemonMetrics
from stumble.daemon.retention import TapeBudget
from stumble.daemon.rules import DaemonRules, should_keep
from stumble.user_data.paths import new_trajectory_id
from traces.bodies.content_encoding import read_content
from traces.conversation.classify import classify_request
from traces.conversation.tracker import is_failed_attempt
from traces.errors import TapeWriteError
from traces.model import Chunk, Exchange, find_header
from traces.redaction.fingerprints import KnownSecrets
from traces.tape.writer import TapeWriter

STRANGER_SECONDS = 60.0
"""So long after its start a daemon may get tool requests of calls that another one has seen: agents
that share a connection would be mixed on its tape, so each of these has a tape of its own."""
QUIET_SECONDS = 60.0
"""Seconds between two lines about a disk without room."""


class _Route(Struct):
    """Where an exchange under way is recorded."""

    tape: ConversationTape
    kind: str
    state: ConversationState | None = None
    read: ReadRequest | None = None


class _Conversation(Struct):
    """A key with its open tape."""

    tape: ConversationTape
    state: ConversationState | None = None


class ConversationRouter:
    """Routes exchanges to tapes; `say` gets a line for each problem."""

    def __init__(
        self,
        root: Path,
        rules: DaemonRules,
        secrets: KnownSecrets,
        metrics: DaemonMetrics,
        *,
        say: Callable[[str], object],
        budget: TapeBudget,
    ) -> None:
        self.rules, self.metrics = rules, metrics
        self._root, self._secrets, self._say, self._budget = root, secrets, say, budget
        self._index = ConversationIndex()
        self._open: dict[object, _Conversation] = {}
        """By key: a header's value, a connection, or the state of a lane."""
        self._routes: dict[int, _Route] = {}
        self._continues: dict[object, str] = {}
        self._pool: ProcessPoolExecutor | None = None
        """Seals tapes: not in a thread, since what redacts and packs belongs to the event loop."""
        self._free_until = self._quiet_until = 0.0

    # The tap.

    def request(self, exchange: Exchange) -> Exchange:
        """Choose the conversation and write the request."""
        self._guard(lambda: self._begin(exchange))
        return exchange

    def head(self, exchange: Exchange) -> None:
        """Write the status and headers."""
        if (route := self._routes.get(exchange.seq)) is not None:
            self._guard(lambda: route.tape.write(TapeWriter.head, exchange))

    def chunk(self, exchange: Exchange, chunk: Chunk) -> None:
        """Write a chunk."""
        if (route := self._routes.get(exchange.seq)) is not None:
            route.tape.size += len(chunk.data)
            self._guard(lambda: route.tape.write_chunk(exchange, chunk))

    def done(self, exchange: Exchange) -> None:
        """Write the end of an exchange."""
        if (route := self._routes.pop(exchange.seq, None)) is not None:
            self._guard(lambda: self._end(route, exchange, TapeWriter.done))

    def whole(self, exchange: Exchange) -> None:
        """Write a response in one piece, and its end."""
        if (route := self._routes.pop(exchange.seq, None)) is not None:
            if exchange.response is not None:
                route.tape.size += len(exchange.response.body)
            self._guard(lambda: self._end(route, exchange, TapeWriter.whole))

    def _guard(self, work: Callable[[], object]) -> None:
        """Do what may fail without harm to the agent; an error is a defect here, and is logged."""
        try:
            work()
        except Exception:
            self.metrics.add("unrecorded_exchanges_total", 'reason="defect"')
            self._say(f"a defect of stumble; the traffic passes on:\n{traceback.format_exc()}")

    # Begin and end of an exchange.

    def _begin(self, exchange: Exchange) -> None:
        kind = classify_request(exchange.request)
        key, state, read = self._find_key(exchange, kind)
        conversation = self._open.get(key)
        if conversation is not None and self._is_full(conversation.tape, exchange.started):
            self._continues[key] = conversation.tape.id
            self._finish(key, conversation, "continues on another tape")
            conversation = None
        if conversation is None:
            tape = self._open_tape(exchange.started, self._continues.pop(key, None))
            conversation = self._open[key] = _Conversation(tape, state)
        elif conversation.tape.writer is None:  # there may be room now
            conversation.tape = self._open_tape(exchange.started, None)
        tape = conversation.tape
        tape.open[exchange.seq] = tape.exchanges
        tape.exchanges += 1
        tape.touched = exchange.started
        tape.size += len(exchange.request.body)
        self._routes[exchange.seq] = _Route(tape, kind, state, read)
        if state is not None and read is not None and read.lens is not None:
            self._index.note_request(state, read, exchange.connection)
        tape.write(TapeWriter.request, exchange)

    def _find_key(
        self, exchange: Exchange, kind: str
    ) -> tuple[object, ConversationState | None, ReadRequest | None]:
        """Return the key of the conversation, with its lane and the model request, if any."""
        request, rules = exchange.request, self.rules
        if rules.header is not None and (value := find_header(request.headers, rules.header)):
            return ("header", value), None, self._read(exchange, kind)
        if rules.by_client or rules.header is not None:
            return ("client", exchange.connection), None, self._read(exchange, kind)
        if kind != "model":
            state = self._index.find_for_tool(request, exchange.connection)
            if state is None and exchange.started < STRANGER_SECONDS:
                return ("alone", exchange.seq), None, None
            return (("client", exchange.connection) if state is None else state), state, None
        read = self._read(exchange, kind)
        if read is None or read.lens is None or not read.length:
            return ("client", exchange.connection), None, read
        state = self._index.find_for_model(read, exchange.connection) or self._index.add()
        return state, state, read

    def _read(self, exchange: Exchange, kind: str) -> ReadRequest | None:
        if kind != "model":
            return None
        request = exchange.request
        return self._index.read(request, read_content(request))

    def _end(self, route: _Route, exchange: Exchange, write: WriteExchange) -> None:
        tape = route.tape
        lost_before = tape.lost is not None
        tape.write(write, exchange)
        tape.open.pop(exchange.seq, None)
        over = exchange.response.ended if exchange.response else None
        tape.touched = max(tape.touched, over or exchange.started)
        failed = is_failed_attempt(exchange)
        tape.facts.failed |= failed
        tape.facts.longest = max(tape.facts.longest, (over or exchange.started) - exchange.started)
        answer = read_answer(route.read, exchange) if route.read is not None else None
        if route.read is not None:
            tape.said_last = answer is not None and answer.finish is not None and not answer.calls
        if answer is not None:
            tape.facts.tools |= {call.name for call in answer.calls}
        if route.state is not None and route.read is not None:
            self._index.note_answer(route.state, answer, failed=failed)
        self.metrics.add(
            "exchanges_total", f'kind="{route.kind}",result="{"error" if failed else "ok"}"'
        )
        if tape.lost is not None:
            self.metrics.add("unrecorded_exchanges_total", 'reason="disk"')
            if not lost_before:
                self._say(f"conversation {tape.id} is recorded no further: {tape.lost}")

    # Tapes.

    def _is_full(self, tape: ConversationTape, now: float) -> bool:
        too_old = now - tape.zero >= self.rules.max_age
        return not tape.open and (too_old or tape.size >= self.rules.max_tape)

    def _open_tape(self, at: float, before: str | None) -> ConversationTape:
        """Open a tape; one that is lost from its beginning if the disk has no room."""
        try:
            if at >= self._free_until:
                if shutil.disk_usage(self._root).free < self.rules.min_free:
                    raise OSError(f"less than {self.rules.min_free:,} bytes are free")
                self._free_until = at + 1.0
            tape = open_conversation_tape(self._root, self.rules, self._secrets, at, before)
        except (OSError, TapeWriteError) as error:
            if at >= self._quiet_until:
                self._quiet_until = at + QUIET_SECONDS
                self._say(f"not recorded: {error} (printed once a minute)")
            return ConversationTape(new_trajectory_id(), None, at, touched=at, lost=str(error))
        self.metrics.add("conversations_started_total")
        return tape

    @property
    def open_count(self) -> int:
        """The number of conversations that are not over."""
        return len(self._open)

    def close_idle(self, now: float, *, all: bool = False) -> None:
        """End the conversations without traffic for too long, or all of them."""
        for key, conversation in list(self._open.items()):
            tape = conversation.tape
            idle = not tape.open and now - tape.touched >= self.rules.idle
            if all or idle:
                self._finish(key, conversation, "the daemon ended" if all else "no more traffic")
                if conversation.state is not None:
                    self._index.remove(conversation.state)

    def _finish(self, key: object, conversation: _Conversation, why: str) -> None:
        del self._open[key]
        tape = conversation.tape
        for seq in tape.open:
            self._routes.pop(seq, None)
        keep = should_keep(self.rules, tape.id, tape.facts)
        tape.finish(tape.touched, why)
        result = "lost" if tape.lost else "kept" if keep else "sampled_out"
        self.metrics.add("conversations_finished_total", f'result="{result}"')
        if tape.writer is None:
            return
        if result == "sampled_out":
            tape.writer.path.unlink()
            return
        if self._pool is None:
            self._pool = ProcessPoolExecutor(
                1, get_context("spawn"), end_with_parent, (os.getpid(),)
            )
        loop, path = asyncio.get_running_loop(), tape.writer.path
        self._budget.announce(path)
        stored = self._pool.submit(keep_tape, self._root, path)
        stored.add_done_callback(
            lambda future: loop.call_soon_threadsafe(self._note_stored, path, future)
        )

    def _note_stored(self, path: Path, stored: Future[int]) -> None:
        if (error := stored.exception()) is None:
            self._budget.add(self._root / "tapes" / path.name, stored.result())
        else:
            self._say(f"{path} stays where it is, until the next start: {error!r}")

    async def close(self) -> None:
        """End all conversations and wait for their tapes."""
        self.close_idle(0.0, all=True)
        if self._pool is not None:
            await asyncio.to_thread(self._pool.shutdown)
            await asyncio.sleep(0)  # what it stored is noted now
