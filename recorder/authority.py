"""The certificate authority by which we look into TLS: one per user, outside of any project.

Whoever has its key can pretend to be any server to the agents of this user, so the key is
readable by the user alone, there whole or not at all, and never kept once it was replaced.
The names of the files are mitmproxy's, whose tools find them there.
"""

import fcntl
import hashlib
import os
import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mitmproxy.certs import CertStore

NAME = "mitmproxy"
KEY_SIZE = 2048
KEYS = (f"{NAME}-ca.pem", f"{NAME}-ca.p12")
"""The files that hold the key; the first one is the authority itself."""
SPARE = timedelta(days=30)
"""An authority with less than this to go is renewed before a run, not in the middle of one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """What can be said of an authority."""

    certificate: Path
    fingerprint: str
    """SHA-256 of the certificate, as openssl prints it."""
    expires: datetime

    @property
    def ends_soon(self) -> bool:
        """It has expired, or would so soon that agents may see it."""
        return self.expires - datetime.now(UTC) < SPARE


def certificate(folder: Path) -> Path:
    """The certificate of the authority in `folder`, as PEM.

    It is made where there is none; runs that start at once share one.
    """
    with _locked(folder):
        if not (folder / KEYS[0]).exists():
            _make(folder)
    return folder / f"{NAME}-ca-cert.pem"


def store(folder: Path) -> "CertStore":
    """The authority itself, with its key."""
    from mitmproxy.certs import CertStore

    certificate(folder)
    return CertStore.from_store(folder, NAME, KEY_SIZE)


def rotate(folder: Path) -> Facts:
    """Put a new authority in the place of whatever is there; nothing of the old key stays."""
    with _locked(folder):
        _make(folder)
    return facts(folder)


def facts(folder: Path) -> Facts:
    """What stands in the certificate; OSError or ValueError where it cannot be read."""
    path, trusting = certificate(folder), ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    # Loading the library that makes certificates takes longer than all else before a run.
    trusting.load_verify_locations(cadata=path.read_text("ascii"))
    if not (held := trusting.get_ca_certs(binary_form=True)):
        raise ValueError(f"{path}: no certificate of an authority")
    expires = ssl.cert_time_to_seconds(str(trusting.get_ca_certs()[0]["notAfter"]))
    return Facts(
        certificate=path,
        fingerprint=hashlib.sha256(held[0]).digest().hex(":").upper(),
        expires=datetime.fromtimestamp(expires, UTC),
    )


def mend(folder: Path) -> Iterator[str]:
    """Take the key from the eyes of others; a line for everything that was open to them.

    PermissionError where the folder belongs to somebody else.
    """
    wanted = [(folder, 0o700), *((folder / name, 0o600) for name in KEYS)]
    for path, mode in wanted:
        if not path.exists():
            continue
        found = path.stat()
        if found.st_uid != os.geteuid():
            raise PermissionError(f"{path} belongs to another user (uid {found.st_uid})")
        if found.st_mode & 0o777 & ~mode:
            path.chmod(mode)
            yield f"{path} had mode {found.st_mode & 0o777:04o}, now {mode:04o}"


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _make(folder: Path) -> None:
    from mitmproxy.certs import CertStore

    with TemporaryDirectory(dir=folder) as aside:
        CertStore.create_store(Path(aside), NAME, KEY_SIZE, organization="stumble", cn="stumble")
        # What others look for comes last: once it is there, all of it is.
        for made in sorted(Path(aside).iterdir(), key=lambda path: path.name == KEYS[0]):
            made.replace(folder / made.name)
