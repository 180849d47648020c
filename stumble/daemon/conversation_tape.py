"""The tape of one conversation of a daemon, while it goes on and when it is over.

It is written below `incoming/` in the store, so that a kill loses nothing that an agent received,
and moved to the tapes when the conversation is over. Its sequence numbers and times are its own.
"""

import fcntl
import os
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path

from stumble.daemon.rules import ConversationFacts, DaemonRules
from stumble.store.tape_files import seal_finished_tape
from stumble.user_data.paths import new_trajectory_id
from traces.conversation.volatile_fields import VOLATILE_VERSION
from traces.errors import TapeWriteError
from traces.model import Chunk, Exchange, Response, RunEnding, Trajectory
from traces.redaction.redactor import KnownSecrets
from traces.tape import TapeWriter

INCOMING = "incoming"


@dataclass(slots=True, eq=False)
class ConversationTape:
    """An open tape; after a failed write it takes nothing more, and says so in `lost`."""

    id: str
    writer: TapeWriter
    zero: float
    """Time of its first request on the daemon's clock; its own times count from there."""
    touched: float = 0.0
    facts: ConversationFacts = field(default_factory=ConversationFacts)
    open: dict[int, int] = field(default_factory=dict)
    """Number of an exchange in the daemon to that on this tape, while it goes on."""
    seqs: list[int] = field(default_factory=list)
    lanes: set[int] = field(default_factory=set)
    exchanges: int = 0
    size: int = 0
    lost: str | None = None
    """Why nothing more is recorded of it."""
    said_last: bool = False
    """Whether the last word of the model was a final answer."""

    def write(self, method: Callable[[Exchange], object], exchange: Exchange) -> None:
        """Write an exchange, or a part of it, by this method of the writer."""
        if self.lost is None:
            try:
                method(self._to_own(exchange))
            except (TapeWriteError, OSError) as error:
                self.lose(str(error))

    def write_chunk(self, exchange: Exchange, chunk: Chunk) -> None:
        """Write a chunk of a response."""
        if self.lost is None:
            try:
                own = replace(chunk, at=chunk.at - self.zero)
                self.writer.chunk(self._to_own(exchange), own)
            except (TapeWriteError, OSError) as error:
                self.lose(str(error))

    def lose(self, why: str) -> None:
        """Record nothing more; what is on the tape stays."""
        self.lost = why
        with suppress(TapeWriteError, OSError):
            self.writer.close()

    def _to_own(self, exchange: Exchange) -> Exchange:
        answer = exchange.response
        return replace(
            exchange,
            seq=self.open[exchange.seq],
            started=exchange.started - self.zero,
            response=None if answer is None else _shift_response(answer, self.zero),
        )

    def finish(self, at: float, detail: str) -> None:
        """Write how it ended, and close it."""
        if self.lost is None:
            try:
                self.writer.write_ending(
                    RunEnding(
                        ended="final" if self.said_last else "harness",
                        at=at - self.zero,
                        detail=None if self.said_last else detail,
                    )
                )
                self.writer.close()
            except (TapeWriteError, OSError) as error:
                self.lose(str(error))


def _shift_response(answer: Response, zero: float) -> Response:
    return replace(
        answer,
        at=answer.at - zero,
        ended=None if answer.ended is None else answer.ended - zero,
        chunks=tuple(replace(chunk, at=chunk.at - zero) for chunk in answer.chunks),
    )


def open_conversation_tape(
    root: Path, rules: DaemonRules, secrets: KnownSecrets, at: float, before: str | None
) -> ConversationTape:
    """Begin a tape, which continues the conversation on the tape `before`.

    Raises OSError or TapeWriteError if there is no room for it.
    """
    id = new_trajectory_id()
    folder = root / INCOMING
    folder.mkdir(parents=True, exist_ok=True)
    head = Trajectory(
        id=id,
        recorded_at=time.time(),
        agent=rules.agent,
        world="none",
        source="resume" if before else "record",
        condition="clean",
        parent=before,
        tools=rules.tools,
        volatile=VOLATILE_VERSION,
    )
    writer = TapeWriter(folder / f"{id}.tape", head, secrets=secrets, sync=False)
    return ConversationTape(id=id, writer=writer, zero=at, touched=at)


def keep_tape(root: Path, path: Path) -> int:
    """Seal a finished tape and move it to the tapes of the store; return its size in bytes."""
    with suppress(ValueError):  # a damaged one is kept as it is
        seal_finished_tape(path)
    target = root / "tapes" / path.name
    target.parent.mkdir(parents=True, exist_ok=True)
    path.replace(target)
    return target.stat().st_size


def recover_tapes(root: Path) -> list[Path]:
    """Keep the tapes that a killed daemon left; those of one that still runs are locked."""
    kept = []
    for path in sorted((root / INCOMING).glob("*.tape")):
        file = os.open(path, os.O_RDONLY)
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            continue
        finally:
            os.close(file)
        keep_tape(root, path)
        kept.append(root / "tapes" / path.name)
    return kept
