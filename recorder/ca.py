"""The certificate authority with which the proxy intercepts TLS: one per user, outside any project.

Its key lets the holder impersonate any server to this user's agents. So only the user can read the
key, it is written atomically, and a replaced key is not retained. The files have mitmproxy's names,
so that mitmproxy's tools find them.
"""

import fcntl
import hashlib
import os
import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from msgspec import Struct

if TYPE_CHECKING:
    from mitmproxy.certs import CertStore

CA_FILE_PREFIX = "mitmproxy"
KEY_SIZE = 2048
CA_KEY_FILES = (f"{CA_FILE_PREFIX}-ca.pem", f"{CA_FILE_PREFIX}-ca.p12")
"""The files that contain the key; the first one is written last and marks the CA as complete."""
CA_RENEWAL_MARGIN = timedelta(days=30)
"""A CA with less time left than this is renewed before a run, not during one."""


class CaCertificateInfo(Struct, frozen=True, kw_only=True):
    """Where a CA's certificate is, its fingerprint and its expiry."""

    certificate: Path
    fingerprint: str
    """SHA-256 of the certificate, as openssl prints it."""
    expires: datetime

    @property
    def expires_soon(self) -> bool:
        """Return whether it has expired or expires within the renewal margin."""
        return self.expires - datetime.now(UTC) < CA_RENEWAL_MARGIN


def ensure_ca_certificate(folder: Path) -> Path:
    """Return the path of the CA certificate (PEM) in `folder`; create the CA if it is missing.

    Runs that start at the same time share one CA.
    """
    with _lock_ca_folder(folder):
        if not (folder / CA_KEY_FILES[0]).exists():
            _create_ca(folder)
    return folder / f"{CA_FILE_PREFIX}-ca-cert.pem"


def load_ca_store(folder: Path) -> "CertStore":
    """Load the CA with its key; create it if it is missing."""
    from mitmproxy.certs import CertStore

    ensure_ca_certificate(folder)
    return CertStore.from_store(folder, CA_FILE_PREFIX, KEY_SIZE)


def rotate_ca(folder: Path) -> CaCertificateInfo:
    """Replace the CA with a new one; nothing of the old key remains."""
    with _lock_ca_folder(folder):
        _create_ca(folder)
    return read_ca_info(folder)


def read_ca_info(folder: Path) -> CaCertificateInfo:
    """Read the CA certificate. Raises OSError or ValueError if it cannot be read."""
    path, context = ensure_ca_certificate(folder), ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    # With ssl, because importing the library that creates certificates takes longer than the
    # rest of the work before a run.
    context.load_verify_locations(cadata=path.read_text("ascii"))
    if not (certificates := context.get_ca_certs(binary_form=True)):
        raise ValueError(f"{path}: no certificate of an authority")
    expires = ssl.cert_time_to_seconds(str(context.get_ca_certs()[0]["notAfter"]))
    return CaCertificateInfo(
        certificate=path,
        fingerprint=hashlib.sha256(certificates[0]).digest().hex(":").upper(),
        expires=datetime.fromtimestamp(expires, UTC),
    )


def repair_ca_permissions(folder: Path) -> Iterator[str]:
    """Restrict the CA folder and its key files to the user; yield a line per changed path.

    Raises PermissionError if one of them belongs to another user.
    """
    modes = [(folder, 0o700), *((folder / name, 0o600) for name in CA_KEY_FILES)]
    for path, mode in modes:
        if not path.exists():
            continue
        status = path.stat()
        if status.st_uid != os.geteuid():
            raise PermissionError(f"{path} belongs to another user (uid {status.st_uid})")
        if status.st_mode & 0o777 & ~mode:
            path.chmod(mode)
            yield f"{path} had mode {status.st_mode & 0o777:04o}, now {mode:04o}"


@contextmanager
def _lock_ca_folder(folder: Path) -> Iterator[None]:
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _create_ca(folder: Path) -> None:
    from mitmproxy.certs import CertStore

    with TemporaryDirectory(dir=folder) as name:
        CertStore.create_store(
            Path(name), CA_FILE_PREFIX, KEY_SIZE, organization="stumble", cn="stumble"
        )
        # The file whose presence marks a complete CA is moved last.
        for file in sorted(Path(name).iterdir(), key=lambda path: path.name == CA_KEY_FILES[0]):
            file.replace(folder / file.name)
