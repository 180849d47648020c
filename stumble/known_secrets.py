"""The secrets that a user has: their values, their names, and the user's own key for marks."""

import fcntl
import os
from pathlib import Path

from stumble.home import data_folder
from traces.credentials import secrets
from traces.redact import KnownSecrets

_KEY = 32


def known_secrets() -> KnownSecrets:
    """The secrets of this process's environment, by name, with the key of its user."""
    names: dict[str, tuple[str, ...]] = {}
    for name, value in sorted(secrets(os.environ).items()):
        names[value] = (*names.get(value, ()), name)
    return KnownSecrets(names, key=user_key(data_folder() / "redaction.key"))


def user_key(path: Path) -> bytes:
    """The user's key for the marks of weak secrets, made when it is first needed.

    A user who cannot keep one gets one for this process: its tapes replay, but a password on
    them is not known again.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        file = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    except OSError:
        return os.urandom(_KEY)
    with os.fdopen(file, "r+b") as opened:
        fcntl.flock(opened, fcntl.LOCK_EX)
        key = opened.read(_KEY)
        if len(key) < _KEY:
            key = os.urandom(_KEY)
            opened.seek(0)
            opened.write(key)
        return key
