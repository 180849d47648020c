"""The tape of one conversation of a daemon, while it goes on and when it is over.

It is written below `incoming/` in the store, so that a kill loses nothing that an agent received,
and moved to the tapes when the conversation is over. Its sequence numbers and times are its own.
"""

import fcntl
import os
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from copy import replace
from pathlib import Path

from msgspec import Struct, field

from sandbox.kernel import PR_SET_PDEATHSIG, set_process_option
from stumble.daemon.rules import ConversationFacts, DaemonRules
from stumble.store.tape_files import seal_finished_tape
from stumble.user_data.paths import new_trajectory_id
from traces.conversation.volatile_fields import VOLATILE_VERSION
from traces.errors import TapeWriteError
from traces.model import Chunk, Exchange, Response, RunEnding, Trajectory
from traces.redaction.fingerprints import KnownSecrets
from traces.tape.writer import TapeWriter

INCOMING = "incoming"

type WriteExchange = Callable[[TapeWriter, Exchange], object]
"""A method of the writer that takes an exchange."""


class ConversationTape(Struct, eq=False):
    """An open tape; after a failed write it takes nothing more, and says so in `lost`."""

    id: str
    writer: TapeWriter | None
    """None if there was no room to begin it."""
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

    def write(self, method: WriteExchange, exchange: Exchange) -> None:
        """Write an exchange, or a part of it, by this method of the writer."""
        if self.writer is not None and self.lost is None:
            try:
                method(self.writer, self._to_own(exchange))
            except (TapeWriteError, OSError) as error:
                self.lose(str(error))

    def write_chunk(self, exchange: Exchange, chunk: Chunk) -> None:
        """Write a chunk of a response."""
        if self.writer is not None and self.lost is None:
            try:
                own = replace(chunk, at=chunk.at - self.zero)
                self.writer.chunk(self._to_own(exchange), own)
            except (TapeWriteError, OSError) as error:
                self.lose(str(error))

    def lose(self, why: str) -> None:
        """Record nothing more; what is on the tape stays."""
        self.lost = why
        if self.writer is not None:
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
        if self.writer is not None and self.lost is None:
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
    """Seal a finished tape and move it to the tapes of the store; return its size in bytes.

    In a handover its daemon and the next one may both find it finished: the second leaves it.
    """
    target = root / "tapes" / path.name
    target.parent.mkdir(parents=True, exist_ok=True)
    with _lock_folder(root / INCOMING):
        if path.exists():
            # One that is damaged, or for whose packing the disk has no room, is kept as it is.
            with suppress(ValueError, OSError):
                seal_finished_tape(path)
            path.replace(target)
    return target.stat().st_size


def end_with_parent(parent: int) -> None:
    """End this process with its parent, which may be killed, or be dead already."""
    set_process_option(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(1)


@contextmanager
def _lock_folder(folder: Path) -> Iterator[None]:
    """Hold a folder against other daemons; a lock on a tape would end where sealing replaces it."""
    file = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
    finally:
        os.close(file)


def recover_tapes(root: Path, report: Callable[[str], object]) -> list[Path]:
    """Keep the tapes that another daemon left; those of one that still writes them are locked."""
    kept = []
    for path in sorted((root / INCOMING).glob("*.tape")):
        try:
            if _is_finished(path):
                keep_tape(root, path)
                kept.append(root / "tapes" / path.name)
        except OSError as error:
            report(f"{path} stays where it is, until the next start: {error}")
    return kept


def _is_finished(path: Path) -> bool:
    """Return whether no daemon writes a tape that is still there."""
    try:
        file = os.open(path, os.O_RDONLY)
    except FileNotFoundError:
        return False
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    finally:
        os.close(file)
    return True
