"""The mark by which a user's own recordings are known again.

A tape names a command, a folder and its snapshot, which a replay runs. The mark is a keyed hash of
them, so that only the holder of the key can make it; it says nothing about the answers.
"""

import hmac
import json
from hashlib import blake2b

from traces.model import Trajectory

MARK_BYTES = 16
_PURPOSE = b"tape origin"


def make_origin_mark(trajectory: Trajectory, key: bytes) -> bytes:
    """Return the mark of a recording (16 bytes) for the holder of a key of at most 64 bytes."""
    runs = [trajectory.id, trajectory.command, trajectory.workspace, trajectory.snapshot]
    text = json.dumps(runs).encode()  # ASCII: half a surrogate pair is escaped
    return blake2b(text, digest_size=MARK_BYTES, key=key, person=_PURPOSE).digest()


def is_origin_mark(mark: bytes | None, trajectory: Trajectory, key: bytes) -> bool:
    """Whether the holder of the key made the recording."""
    return mark is not None and hmac.compare_digest(mark, make_origin_mark(trajectory, key))
