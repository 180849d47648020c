"""Secrets of the user: from the environment and from files, and a key for redaction marks."""

import fcntl
import os
from collections.abc import Iterator, Mapping
from pathlib import Path

from stumble.user_data.paths import data_folder
from traces.redaction.detection import credential_files
from traces.redaction.detection.credential_names import map_secrets_to_names
from traces.redaction.fingerprints import KnownSecrets

_KEY_BYTES = 32


def load_user_secrets() -> KnownSecrets:
    """Load the user's secrets, with the names of their variables, and the user's key."""
    return KnownSecrets(
        _find_named_secrets(os.environ), key=load_user_key(data_folder() / "redaction.key")
    )


def find_known_secrets(environment: Mapping[str, str] | None = None) -> tuple[str, ...]:
    """Return the secrets in variables and credential files, longest first.

    The files are `.env` and the like in this folder, and those of cloud and command-line tools in
    the home; unreadable files are skipped.
    """
    secrets = _find_named_secrets(os.environ if environment is None else environment)
    return tuple(sorted(secrets, key=lambda value: (-len(value), value)))


def _find_named_secrets(environment: Mapping[str, str]) -> dict[str, tuple[str, ...]]:
    """Return the secrets with the names of their variables; secrets in files have none."""
    secrets = map_secrets_to_names(environment)
    for name, path in _list_credential_files(environment.get("HOME")):
        try:
            if path.stat().st_size <= credential_files.MAX_CREDENTIAL_FILE:
                values = credential_files.find_file_secrets(name, path.read_bytes())
                secrets |= {value: secrets.get(value, ()) for value in values}
        except OSError:
            continue
    return secrets


def _list_credential_files(home: str | None) -> Iterator[tuple[str, Path]]:
    for name in credential_files.PROJECT_CREDENTIAL_FILES:
        yield name, Path(name)
    for name in credential_files.HOME_CREDENTIAL_FILES if home else ():
        yield name, Path(home or "", name)


def load_user_key(path: Path) -> bytes:
    """Return the user's key for marks of weak secrets; create it at first use.

    If the file cannot be written, return a key for this process only: its tapes replay, but a
    password on them is not recognized again.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        file = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    except OSError:
        return os.urandom(_KEY_BYTES)
    with os.fdopen(file, "r+b") as key_file:
        fcntl.flock(key_file, fcntl.LOCK_EX)
        key = key_file.read(_KEY_BYTES)
        if len(key) < _KEY_BYTES:
            key = os.urandom(_KEY_BYTES)
            key_file.seek(0)
            key_file.write(key)
        return key
