"""Whose tape or pack it is: a stranger's may start nothing here until its user trusts it.

A tape names a command and the files that it works on, a pack the commands of a world too. Those
recorded or packed with this user's key, and those that stumble ships, are trusted; others by their
hash: the root hash of a pack, the SHA-256 of a tape. `$XDG_DATA_HOME/stumble/trusted` lists what
the user trusted or packed, a line for each.
"""

import os
from hashlib import file_digest
from importlib.resources import files
from pathlib import Path

from stumble.packs.pack_cache import packs_folder
from stumble.packs.pack_manifest import COMMENT_BYTES, COMMENT_PREFIX
from stumble.packs.zip_layout import read_comment
from stumble.user_data.known_secrets import load_user_key
from stumble.user_data.paths import data_folder
from traces.tape.origin_mark import is_origin_mark
from traces.tape.reader import Tape

HASH_DIGITS = 32
"""Hexadecimal digits by which a tape or pack is known, the first of its SHA-256."""
SHIPPED_PACKS = ("quickstart/lost_ack.stumble",)


def hash_tape(path: Path) -> str:
    """Return the hash of a tape; of one in an opened pack, the pack's."""
    root = packs_folder()
    if path.is_relative_to(root):
        return path.relative_to(root).parts[0]
    with path.open("rb") as file:
        return file_digest(file, "sha256").hexdigest()[:HASH_DIGITS]


def is_recorded_here(tape: Tape) -> bool:
    """Whether this user's key marks the tape, with its command and the name of its snapshot."""
    key = load_user_key(data_folder() / "redaction.key")
    return is_origin_mark(tape.origin, tape.trajectory, key)


def is_trusted_hash(hash: str) -> bool:
    """Whether the user trusted or packed it, or stumble ships it."""
    path = _trusted_file()
    lines = path.read_text().splitlines() if path.is_file() else []
    return hash in {line.split(" ")[0] for line in lines} or hash in _list_shipped_hashes()


def remember_trust(hash: str, name: str) -> None:
    """Trust a hash from now on. Raises OSError if that cannot be written."""
    path = _trusted_file()
    path.parent.mkdir(parents=True, exist_ok=True)
    file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    with os.fdopen(file, "a") as trusted:
        trusted.write(f"{hash[:HASH_DIGITS]} {name!r}\n")


def _trusted_file() -> Path:
    return data_folder() / "trusted"


def _list_shipped_hashes() -> set[str]:
    hashes = set()
    for name in SHIPPED_PACKS:
        with Path(str(files("stumble").joinpath(name))).open("rb") as pack:
            comment = read_comment(pack, COMMENT_BYTES)
        hashes.add(comment.removeprefix(COMMENT_PREFIX).decode()[:HASH_DIGITS])
    return hashes
