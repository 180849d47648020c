"""Loading, sealing and keeping of tape files, with warnings."""

import fcntl
import os
import shutil
from collections.abc import Callable
from pathlib import Path

from stumble.errors import UsageError
from stumble.notices import print_warning
from stumble.store.store_errors import unwritable_store
from traces.store.store_dir import StoreDirectory
from traces.tape.reader import Tape, read_tape
from traces.tape.seal import seal_tape

MAX_SEALED_BYTES = 1 << 26
_FICLONE = 0x4004_9409


def load_tape(path: Path, opened: Callable[[Path], Tape] = read_tape) -> Tape:
    """Load a tape; warn of unreadable parts. Raises UsageError (exit 2) if it is none.

    `opened` may be `read_tape_lazily`, which reads exchanges on access.
    """
    try:
        tape = opened(path)
    except ValueError as error:
        raise UsageError(str(error)) from None
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror}") from None
    for damage in tape.damage:
        print_warning(
            f"{path}: {damage.length} bytes at {damage.offset} could not be read ({damage.why})"
        )
    if tape.cut_at is not None:
        print_warning(f"{path}: the run was not closed: {describe_tape_cut(tape)}")
    return tape


def describe_tape_cut(tape: Tape) -> str:
    """Describe where an unclosed recording was cut, and which answers were completed."""
    words = f"cut at exchange {tape.cut_at} (it was killed, or still goes on)"
    if not tape.completed:
        return words
    names = ", ".join(map(str, tape.completed))
    return f"{words}; the end of {names} was not written, the content-length says it is whole"


def seal_finished_tape(path: Path) -> None:
    """Seal a finished tape; if that fails, leave it as it is and print a warning.

    A tape above MAX_SEALED_BYTES is left: it has few large bodies, of which sealing would need
    several copies in memory and save little.
    """
    if path.stat().st_size > MAX_SEALED_BYTES:
        return
    try:
        seal_tape(path)
    except OSError as error:
        print_warning(
            f"{path} was not sealed: {error.strerror}; it is whole, only larger than it could be"
        )


def keep_tape(store: StoreDirectory, tape: Path, id: str) -> None:
    """Copy a tape outside the store into it, under the run's id.

    A copy, since a user may write over a file that he named; it shares the blocks on file systems
    that can. Raises HarnessError if the store cannot be written.
    """
    try:
        kept = store.tapes / f"{id}.tape"
        if tape.resolve() == kept.resolve() or kept.exists():
            return
        part = kept.with_name(f".{kept.name}.{os.getpid()}.part")
        try:
            copy_file(tape, part)
            part.replace(kept)
        finally:
            part.unlink(missing_ok=True)
    except OSError as error:
        raise unwritable_store(store, error) from error


def copy_file(source: Path, target: Path) -> None:
    """Copy a file's bytes, by sharing its blocks if the file system can.

    Wire fact: FICLONE of linux/fs.h, `_IOW(0x94, 9, int)`.
    """
    with source.open("rb") as old, target.open("wb") as new:
        try:
            fcntl.ioctl(new, _FICLONE, old.fileno())
        except OSError:
            shutil.copyfileobj(old, new)
