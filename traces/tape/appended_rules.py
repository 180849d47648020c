"""Append match rules to the tape of a finished run."""

import fcntl
import os
from collections.abc import Iterable
from pathlib import Path

from traces.tape import frames
from traces.tape.payload import pack

RULES = 11


def add_rules(path: Path, rules: Iterable[str]) -> None:
    """Append match rules, so that replays of this tape ignore more differences.

    The frames before are not changed. Raises BlockingIOError if the tape is being written, OSError
    if it cannot be.
    """
    frame = frames.encode_frame(RULES, pack(list(rules)))
    file = os.open(path, os.O_WRONLY | os.O_APPEND)
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        size = os.fstat(file).st_size
        if os.write(file, frame) < len(frame):
            os.ftruncate(file, size)
            raise OSError(f"{path}: no room for its rules")
        os.fsync(file)
    finally:
        os.close(file)
