"""Paths of a project's store and of the user's data, and new ids."""

import os
import time
from pathlib import Path
from uuid import uuid4

from stumble.errors import HarnessError, UsageError
from stumble.notices import print_notice, print_warning

STALE_CA_NOTE = "whatever trusts the old one (a container, a keychain) has to be updated"


def store_root() -> Path:
    """Return `$STUMBLE_STORE`, else the nearest `.stumble` in this folder or above.

    Without one, `.stumble` in this folder. Raises UsageError if it is a link or belongs to another
    user, who could redirect the tapes, or if DuckDB could not open files in it.
    """
    named = os.environ.get("STUMBLE_STORE")
    store = Path(named).absolute() if named else _find_project_store(Path.cwd())
    if "?" in str(store) or not is_utf8(str(store)):
        path = str(store).encode(errors="backslashreplace").decode()
        raise UsageError(
            f"{path}: DuckDB opens no file in a folder whose path has a `?` or is not UTF-8; set "
            "STUMBLE_STORE to another folder"
        )
    return store


def is_utf8(text: str) -> bool:
    """Return whether a path or an argument of the operating system is UTF-8."""
    return not any("\ud800" <= character <= "\udfff" for character in text)


def _find_project_store(current: Path) -> Path:
    for folder in (current, *current.parents):
        store = folder / ".stumble"
        if store.is_symlink():
            raise UsageError(
                f"{store} is a symbolic link; remove it, or set STUMBLE_STORE to a folder"
            )
        if store.is_dir():
            check_store_owner(store)
            return store
    return current / ".stumble"


def check_store_owner(folder: Path) -> None:
    """Raise UsageError if a store belongs to another user."""
    if (owner := folder.stat().st_uid) != os.geteuid():
        raise UsageError(
            f"{folder} belongs to another user (uid {owner}); set STUMBLE_STORE to your own"
        )


def data_folder() -> Path:
    """Return the folder of the user's keys, outside any project."""
    base = os.environ.get("XDG_DATA_HOME") or str(Path.home() / ".local" / "share")
    return Path(base) / "stumble"


def cache_folder() -> Path:
    """Return the folder of what can be made again."""
    base = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return Path(base) / "stumble"


def ca_folder() -> Path:
    """Return the folder of the user's certificate authority, outside any project."""
    return data_folder() / "ca"


def publish_ca_certificate(certificate: Path) -> Path:
    """Copy the authority's certificate to where other users can read it; return that path.

    The folder of the authority is closed to them, as the key is in it.
    """
    public = data_folder() / "ca-certificate.pem"
    if not public.is_file() or public.read_bytes() != certificate.read_bytes():
        part = public.with_name(f".{public.name}.{os.getpid()}")
        part.write_bytes(certificate.read_bytes())
        part.replace(public)
    public.chmod(0o644)
    return public


def prepare_ca_folder() -> Path:
    """Return the folder of the user's certificate authority, valid and with private permissions.

    Repairs and a renewal are reported on standard error. Raises HarnessError if it is unreadable.
    """
    from recorder.ca import read_ca_info, repair_ca_permissions, rotate_ca

    folder = ca_folder()
    try:
        repairs = list(repair_ca_permissions(folder))
        for line in repairs:
            print_warning(line)
        if repairs:
            print_warning("others may have the key; see `stumble ca rotate`")
        info = read_ca_info(folder)
        if info.expires_soon:
            rotate_ca(folder)
            message = f"the certificate authority, valid until {info.expires:%Y-%m-%d}, was renewed"
            print_notice(f"{message}; {STALE_CA_NOTE}")
    except PermissionError as error:
        raise HarnessError(f"the certificate authority: {error}") from None
    except (OSError, ValueError):
        message = f"the certificate authority in {folder} cannot be read"
        raise HarnessError(f"{message}; `stumble ca rotate` makes a new one") from None
    return folder


def new_trajectory_id() -> str:
    """Return a new trajectory id; ids sort by their second of creation."""
    return time.strftime("%Y%m%dT%H%M%S", time.gmtime()) + "-" + os.urandom(4).hex()


def new_experiment_id() -> str:
    """Return a new experiment id, shared by all tapes of one fork or campaign."""
    return uuid4().hex
