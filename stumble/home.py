"""Where things are kept: the store of a project, and the certificate authority of a user."""

import os
import secrets
import time
from pathlib import Path
from uuid import uuid4

import click

from stumble.exits import Failed, Wrong

STALE = "what was told to trust the old one (a container, a keychain) has to be told again"


def store_root() -> Path:
    """`$STUMBLE_STORE`, else `.stumble` in this folder or the nearest one above that has it.

    Wrong where that is a link or somebody else's: tapes would land where another wants them.
    """
    named = os.environ.get("STUMBLE_STORE")
    if named:
        return Path(named).absolute()
    here = Path.cwd()
    for folder in (here, *here.parents):
        found = folder / ".stumble"
        if found.is_symlink():
            raise Wrong(f"{found} is a symbolic link; remove it, or set STUMBLE_STORE to a folder")
        if found.is_dir():
            check_own(found)
            return found
    return here / ".stumble"


def check_own(folder: Path) -> None:
    """Wrong for a store that belongs to another user."""
    if (owner := folder.stat().st_uid) != os.geteuid():
        raise Wrong(
            f"{folder} belongs to another user (uid {owner}); set STUMBLE_STORE to your own"
        )


def ca_folder() -> Path:
    """Where the user's own certificate authority is, outside any project."""
    base = os.environ.get("XDG_DATA_HOME") or str(Path.home() / ".local" / "share")
    return Path(base) / "stumble" / "ca"


def authority() -> Path:
    """The folder of the user's certificate authority, which is there, fresh and nobody else's.

    What had to be mended or renewed is said on standard error.
    """
    from recorder.authority import facts, mend, rotate

    folder = ca_folder()
    try:
        opened = list(mend(folder))
        for line in opened:
            click.echo(f"warning: {line}", err=True)
        if opened:
            click.echo("warning: others may have the key; see `stumble ca rotate`", err=True)
        known = facts(folder)
        if known.ends_soon:
            rotate(folder)
            said = f"the certificate authority, valid until {known.expires:%Y-%m-%d}, was renewed"
            click.echo(f"{said}; {STALE}", err=True)
    except PermissionError as error:
        raise Failed(f"the certificate authority: {error}") from None
    except (OSError, ValueError):
        said = f"the certificate authority in {folder} cannot be read"
        raise Failed(f"{said}; `stumble ca rotate` makes a new one") from None
    return folder


def new_id() -> str:
    """A fresh trajectory id; ids sort by the second they were made in."""
    return time.strftime("%Y%m%dT%H%M%S", time.gmtime()) + "-" + secrets.token_hex(4)


def new_experiment() -> str:
    """A fresh id of an experiment, which all tapes of one fork or campaign hold."""
    return uuid4().hex
