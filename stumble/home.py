"""Where things are kept: the store of a project, and the certificate authority of a user."""

import fcntl
import os
import secrets
import time
from pathlib import Path


def store_root() -> Path:
    """`$STUMBLE_STORE`, else `.stumble` in this folder or the nearest one above that has it."""
    named = os.environ.get("STUMBLE_STORE")
    if named:
        return Path(named).absolute()
    here = Path.cwd()
    for folder in (here, *here.parents):
        if (folder / ".stumble").is_dir():
            return folder / ".stumble"
    return here / ".stumble"


def authority() -> Path:
    """The user's own certificate authority, mode 0700, outside any project."""
    base = os.environ.get("XDG_DATA_HOME") or str(Path.home() / ".local" / "share")
    folder = Path(base) / "stumble" / "ca"
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    return folder


def certificate(ca: Path) -> Path:
    """The authority's own certificate as PEM; the authority is made where there is none.

    Two runs that start at once share one: the lock is the one that the recorder takes.
    """
    from mitmproxy.certs import CertStore

    with (ca / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        CertStore.from_store(ca, "mitmproxy", 2048)
    return ca / "mitmproxy-ca-cert.pem"


def new_id() -> str:
    """A fresh trajectory id; ids sort by the second they were made in."""
    return time.strftime("%Y%m%dT%H%M%S", time.gmtime()) + "-" + secrets.token_hex(4)
